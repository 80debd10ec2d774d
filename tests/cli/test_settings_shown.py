"""Settings are shown as they would be written: whoever copies one into afresh.toml gets the same."""

from dataclasses import fields
from pathlib import Path

from afresh.cli.settings_shown import _shown, settings_in
from afresh.config import Config, load

WRITTEN = """
[crawl]
budget = "240/min"
budget_hours = ["mon-fri 08:00-18:00 Europe/Berlin = 10/min", "22:00-06:00 = 5/s"]
max_unwritten = "5MB"
gone_retry = "90min"
sweep = 0.25
[fetch]
timeout = "20s"
allow_ports = "8443, 22"
allow_networks = "10.1.0.0/16, fd00::/8"
allow_private = true
[files]
budget = "12 min/h"
[receive]
indexnow = "100/min"
[console]
listen = "127.0.0.1:8601"
[[site]]
host = "example.com"
importance = "x5"
longest_interval = "2h"
shortest_interval = "250ms"
budget = "100/h"
[[kind]]
name = "news"
cost = "200 kB"
[[notify]]
name = "me"
to = "https://me:secret@hooks.example/T0/B0/longsecret?key=hidden"
quiet = "22:00-08:00"
digest = "mon-fri 08:00, 18:00 Europe/Berlin"
"""


def test_values_are_shown_as_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "afresh.toml"
    file.write_text(WRITTEN)
    changed = {f"{each['table']} {each['name']}": each["value"] for each in settings_in(load(file)) if each["changed"]}
    assert (changed.pop("[store] path"), changed.pop("[receive] tokens")) == (
        str(tmp_path / "afresh.db"),
        str(tmp_path / "afresh.tokens"),
    )
    assert changed == {
        "[crawl] budget": "4/s",
        "[crawl] budget_hours": "mon-fri 08:00-18:00 Europe/Berlin = 10/min, 22:00-06:00 = 5/s",
        "[crawl] max_unwritten": "5MB",
        "[crawl] gone_retry": "90min",
        "[crawl] sweep": "0.25",
        "[fetch] timeout": "20s",
        "[fetch] allow_ports": "22, 8443",
        "[fetch] allow_networks": "10.1.0.0/16, fd00::/8",
        "[fetch] allow_private": "true",
        "[files] budget": "0.2 s/s",
        "[receive] indexnow": "100/min",
        "[console] listen": "127.0.0.1:8601",
        "[[site]] 1 host": "example.com",
        "[[site]] 1 importance": "x5",
        "[[site]] 1 longest_interval": "2h",
        "[[site]] 1 shortest_interval": "250ms",
        "[[site]] 1 budget": "100/h",
        "[[kind]] 1 name": "news",
        "[[kind]] 1 cost": "200kB",
        "[[notify]] 1 name": "me",
        "[[notify]] 1 to": "https://hooks.example/…",
        "[[notify]] 1 quiet": "22:00-08:00",
        "[[notify]] 1 digest": "mon-fri 08:00, 18:00 Europe/Berlin",
    }


def test_what_is_shown_is_read_as_the_same() -> None:
    config = Config()
    for table in fields(config):
        part = getattr(config, table.name)
        if isinstance(part, tuple):
            continue
        for each in fields(part):
            value, read = getattr(part, each.name), each.metadata["read"]
            if isinstance(value, float | int) and not isinstance(value, bool):
                text = _shown(value, read)
                assert read(text if isinstance(each.metadata["written"], str) else type(value)(text)) == value, (
                    each.name
                )
