"""`[[notify]]` as people use it: a run over a synthetic web tells a webhook; `notify test`, `list`, and no secrets."""

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from afresh.store import Sqlite
from afresh.store.outbox import GATHERED, Message, Outbox
from command_line import COMMAND, SETTINGS, synthetic_web
from hook import hook

SECRET = "hush-hush-hush"


def test_a_run_tells_a_webhook_of_changes_and_shows_no_secret(tmp_path: Path) -> None:
    environment = {**os.environ, "COLUMNS": "200", "HOOK_SECRET": SECRET}

    def afresh(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120, env=environment
        )

    with synthetic_web(pages=3, hosts=1, seed=4, day=4.0, change_factor=3.0) as web, hook() as there:
        rule = f'[[notify]]\nname = "all"\nto = "{there.url}?key={SECRET}"\nsecret = "$HOOK_SECRET"\n'
        rule += 'on = ["new", "changed"]\n'
        (tmp_path / "afresh.toml").write_text(SETTINGS + rule)
        tested = afresh("notify", "test")
        assert tested.stdout == "all          http://127.0.0.1:" + there.url.split(":")[2][:-5] + "/…: delivered\n"
        assert there.messages[0]["type"] == "test"
        assert afresh("add", *web.urls()).returncode == 0
        assert afresh("notify", "list").stdout.startswith("Nobody was told of anything yet")
        ran = afresh("run", "--seconds", "5s", "--budget", "6/s", "--log", "run.log")
        assert ran.returncode == 0, ran.stderr
        told = [message for message in there.messages if message["type"] != "test"]
        changes = [json.loads(line) for line in afresh("changes").stdout.splitlines()]
        assert {each["number"] for each in changes} == {each["changes"][0]["number"] for each in told}
        assert any(each["changes"][0]["change"] == "changed" for each in told)
        status = json.loads(afresh("status", "--json").stdout)["notify"]
        assert (status[0]["rule"], status[0]["delivered"], status[0]["waiting"]) == ("all", len(told), 0)
        there.status = 500
        failed = afresh("notify", "test", "all")
        assert failed.returncode == 2
        assert failed.stdout.endswith("did not arrive: HTTP 500\n")
        said = afresh("status").stdout + afresh("notify", "list", "all").stdout + (tmp_path / "run.log").read_text()
        assert "messages delivered" in said
        assert "is in the settings" in afresh("notify", "forget", "all").stderr
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.name.startswith("afresh.db"))
    assert SECRET.encode() not in kept
    assert SECRET not in said + ran.stderr + tested.stdout + failed.stdout + failed.stderr


def test_rules_that_reach_nobody_are_refused(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for rule, sentence, hint in (
        ('to = "mailto:me@e.org"', "there is no mail server", "[mail]"),
        ('to = "me"', "is no place for messages", "https://"),
    ):
        (tmp_path / "afresh.toml").write_text(f'[[notify]]\nname = "r"\n{rule}\n')
        done = afresh("notify", "test")
        assert done.returncode == 2
        assert sentence in done.stderr
        assert hint in done.stderr
    (tmp_path / "afresh.toml").write_text("")
    assert "Nobody is to be told" in afresh("notify", "test").stderr


def test_it_is_said_when_the_next_digest_goes(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rules = '[[notify]]\nname = "daily"\nto = "screen:"\ndigest = "21:49, 21:57"\n'
    (tmp_path / "afresh.toml").write_text(f'{rules}[[notify]]\nname = "each"\nto = "screen:"\n')
    due = datetime(2036, 11, 19, 21, 57, tzinfo=UTC).timestamp()
    with Sqlite(tmp_path / "afresh.db") as kept:
        outbox = Outbox(kept)
        outbox.begin(["daily", "each"])
        outbox.add([Message("daily", str(nth), 0.0, due, "{}", GATHERED) for nth in range(8)], {})
    assert "8 for the next digest, at 2036-11-19 21:57:00 UTC" in " ".join(afresh("notify", "list").stdout.split())
    daily, each = json.loads(afresh("notify", "list", "--json").stdout)["rules"]
    assert (daily["next_digest"], each["next_digest"]) == (due, None)
