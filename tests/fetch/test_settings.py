"""From the [fetch] table to the fetcher."""

import re
import time
from dataclasses import fields
from ipaddress import ip_network
from pathlib import Path

import pytest

from afresh.cli.build import fetcher_for
from afresh.config import FetchSettings, parse
from afresh.errors import ConfigError
from afresh.fetch.guard import Refused


def test_without_settings_nothing_private_is_reached_and_every_limit_is_set() -> None:
    http = fetcher_for(parse(""), time.time)
    assert http.user_agent.startswith("afresh/")
    assert (http.limits.seconds, http.limits.connect, http.limits.lookup) == (60.0, 15.0, 10.0)
    assert (http.limits.body, http.limits.redirects) == (16 * 1024 * 1024, 5)
    assert (http.guard.allow_private, http.guard.networks, http.guard.ports) == (False, (), frozenset())
    assert http.unverified_hosts == frozenset()
    assert not http.allow_downgrade


def test_every_setting_of_the_table_reaches_the_fetcher() -> None:
    http = fetcher_for(
        parse(
            """
            [fetch]
            contact = "https://example.org/crawler"
            timeout = "20s"
            connect_timeout = "4s"
            lookup_timeout = "3s"
            max_body = "1MiB"
            max_redirects = 2
            allow_downgrade = true
            allow_private = true
            allow_networks = "10.1.0.0/16, fd00::/8"
            allow_ports = "22 8443"
            unverified_hosts = "old.example, older.example"
            """
        ),
        time.time,
    )
    assert "(+https://example.org/crawler)" in http.user_agent
    assert (http.limits.seconds, http.limits.connect, http.limits.lookup) == (20.0, 4.0, 3.0)
    assert (http.limits.body, http.limits.redirects) == (1024 * 1024, 2)
    assert http.guard.networks == (ip_network("10.1.0.0/16"), ip_network("fd00::/8"))
    assert (http.guard.allow_private, http.guard.ports) == (True, {22, 8443})
    assert http.allow_downgrade
    assert http.unverified_hosts == {"old.example", "older.example"}


def test_a_network_that_is_opened_is_open_and_no_more() -> None:
    guard = fetcher_for(parse('[fetch]\nallow_networks = "10.1.0.0/16"'), time.time).guard
    guard.check_address("10.1.2.3")
    guard.check_address("::ffff:10.1.2.3")
    for closed in ("10.2.0.1", "127.0.0.1", "fd00::1"):
        with pytest.raises(Refused):
            guard.check_address(closed)


@pytest.mark.parametrize(
    "line",
    [
        'allow_networks = "10.1.0.0/33"',
        'allow_networks = "10.1.2.3/16"',
        'allow_networks = "home"',
        'allow_ports = "0"',
        'allow_ports = "65536"',
        'allow_ports = "-1"',
        'allow_ports = "ssh"',
        "allow_ports = 22",
    ],
)
def test_settings_that_make_no_sense_are_named(line: str) -> None:
    with pytest.raises(ConfigError, match=line.split(" ", maxsplit=1)[0]):
        parse(f"[fetch]\n{line}")


def test_the_security_page_names_every_reason_and_every_setting() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "security.md").read_text()
    source = "".join(path.read_text() for path in (root / "src/afresh/fetch").glob("*.py"))
    reasons = set(re.findall(r'(?:Spoiled|Refused)\("(\w+)"', source)) | set(re.findall(r'"(tls\w*|dns\w*)"', source))
    assert len(reasons) > 15
    assert {each for each in reasons if f"`{each}`" not in page} == set()
    assert {each.name for each in fields(FetchSettings) if f"`{each.name}`" not in page} == set()
