"""Channels against real servers and processes on loopback: good ones, and those that lie, hang and flood."""

import asyncio
import base64
import email
import email.policy
import hmac
import json
import resource
import shutil
import ssl
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

from afresh.errors import ConfigError
from afresh.notify import Rule
from afresh.notify.channels.base import Channel, Undelivered
from afresh.notify.channels.mail import Mail, MailServer
from afresh.notify.channels.opening import channel_for, kind_of, shown
from afresh.notify.channels.webhook import signed
from afresh.notify.message import Item, Letter
from certificates import openssl, serving
from hook import hook
from mail_server import mailbox

ITEM = Item("https://e.org/a", "e.org", 7, 100.0, "changed", 0.25, "Sale\r\nBcc: all@e.org\x1b[31m — é", 1, 2)
LETTER = Letter("00ff", "prices", 1_795_000_000.0, [ITEM])


def send(channel: Channel) -> None:
    async def go() -> None:
        try:
            await channel.send(LETTER)
        finally:
            await channel.close()

    asyncio.run(go())


def problem_of(channel: Channel) -> Undelivered:
    with pytest.raises(Undelivered) as caught:
        send(channel)
    return caught.value


def post(rule: Rule, seconds: float = 5.0) -> None:
    send(channel_for(rule, MailServer(""), seconds=seconds))


def refused(rule: Rule, seconds: float = 5.0) -> Undelivered:
    with pytest.raises(Undelivered) as caught:
        post(rule, seconds)
    return caught.value


def test_a_webhook_gets_signed_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOOK_SECRET", "hush")
    with hook() as there:
        post(Rule("prices", there.url, "$HOOK_SECRET"))
        (tmp_path / "url").write_text(f"{there.url}?token=1\n")
        post(Rule("prices", f"@{tmp_path}/url"))
        (headers, body), (others, _) = there.received
    assert headers["webhook-id"] == "00ff"
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    said = b"00ff." + headers["webhook-timestamp"].encode() + b"." + body
    mac = base64.b64encode(hmac.new(b"hush", said, sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{mac}"
    assert "webhook-signature" not in others
    assert there.paths == ["/hook", "/hook?token=1"]
    message = json.loads(body)
    assert (message["type"], message["id"], message["rule"]) == ("page.changed", "00ff", "prices")
    assert message["changes"][0]["number"] == 7


def test_signatures_are_those_of_the_public_specification() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # its own example, which everybody knows
    name = "msg_p5jXN8AQM9LWM0D4loKWxJek"
    expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert signed(secret, name, 1_614_265_330, b'{"test": 2432232314}') == expected
    with pytest.raises(Undelivered, match="not in base64"):
        signed("whsec_!", name, 1, b"")


def test_a_webhook_that_redirects_fails_or_floods_gets_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", "hush")
    with hook() as there, hook() as elsewhere:
        rule = Rule("prices", there.url, "$HOOK_SECRET")
        there.status, there.headers = 307, {"Location": elsewhere.url}
        assert "redirects" in refused(rule).problem
        assert elsewhere.asked == 0
        there.status, there.headers = 429, {"Retry-After": "120"}
        late = refused(rule)
        assert (late.retry_after, late.refused) == (120.0, False)
        there.status = 410
        assert refused(rule).refused
        there.status, there.headers = 500, {}
        assert refused(rule).problem == "HTTP 500"
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        there.status, there.endless = 200, True
        began = time.monotonic()
        post(rule)  # it has taken the message, whatever it says besides
        assert time.monotonic() - began < 4
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB of a gigabyte
        there.endless, there.seconds = False, 5.0
        assert refused(rule, 0.3).problem == "timeout"
    assert refused(rule).problem == "no_connection"
    monkeypatch.delenv("HOOK_SECRET")
    assert refused(rule).problem == "there is no $HOOK_SECRET in the environment"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_mail_goes_by_tls_and_its_headers_are_one_line_each(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path_factory.mktemp("certificates")
    new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3"]
    site = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    openssl(*new, *site, "-keyout", "own.key", "-out", "own.pem", where=made)
    trusting = ssl.create_default_context(cafile=made / "own.pem")
    monkeypatch.setenv("MAIL_PASSWORD", "hush")
    with mailbox(tls=serving(made, "own")) as box:
        server = MailServer(f"smtp://me%40e.org@localhost:{box.port}", "$MAIL_PASSWORD", tls=trusting)
        send(Mail("you@e.org", server, 5.0))
        assert box.logins == [("me@e.org", "hush")]
        assert [line.split()[0] for line in box.plain_lines] == [b"ehlo", b"STARTTLS"]
        untrusting = MailServer(server.url, "$MAIL_PASSWORD")
        assert "certificate" in problem_of(Mail("you@e.org", untrusting, 5.0)).problem
        assert len(box.mails) == len(box.logins) == 1
    mail = email.message_from_bytes(box.mails[0], policy=email.policy.default)
    assert mail["Bcc"] is None
    assert mail["Subject"] == "afresh prices: Sale Bcc: all@e.org?[31m — é changed: 1 word gone, 2 new"
    assert mail["Message-ID"] == "<00ff@e.org>"
    assert (mail["From"], mail["To"]) == ("me@e.org", "you@e.org")
    assert "https://e.org/a" in mail.get_content()
    assert "\x1b" not in mail.get_content()


def test_mail_servers_that_refuse_or_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "hush")
    with mailbox(refuses=b"550 no hush here") as box:  # on this machine, without TLS
        server = MailServer(f"smtp://127.0.0.1:{box.port}", sender="me@e.org")
        gone = problem_of(Mail("you@e.org", server, 5.0))
        assert (gone.problem, gone.refused) == ("the mail server refuses the recipient", True)
        named = MailServer(f"smtp://me@127.0.0.1:{box.port}", "$MAIL_PASSWORD")
        assert problem_of(Mail("you@e.org", named, 5.0)).problem == "the password is not sent without TLS"
        assert not box.logins
        box.refuses = b""
        send(Mail("you@e.org", server, 5.0))
        assert len(box.mails) == 1
    with mailbox(silent=True) as box:
        began = time.monotonic()
        said = problem_of(Mail("you@e.org", MailServer(f"smtp://127.0.0.1:{box.port}", sender="me@e.org"), 0.4))
        assert time.monotonic() - began < 3
        assert "did not take it" in said.problem or "does not answer" in said.problem
    assert "no connection" in problem_of(Mail("you@e.org", server, 5.0)).problem


def test_a_mail_server_that_never_ends_its_greeting_costs_no_memory() -> None:
    with mailbox() as box:
        box.endless = b"220-" + b"x" * 500 + b"\r\n"
        began = time.monotonic()
        said = problem_of(Mail("you@e.org", MailServer(f"smtp://127.0.0.1:{box.port}", sender="me@e.org"), 10.0))
        assert time.monotonic() - began < 5
        assert (said.problem, said.refused) == ("the mail server says too much", False)


def command(program: str, seconds: float = 5.0) -> Channel:
    rule = Rule("prices", f"command:{sys.executable} -c '{program}'")
    return channel_for(rule, MailServer(""), seconds=seconds)


def test_a_command_reads_json_and_no_shell_reads_titles(tmp_path: Path) -> None:
    out = tmp_path / "out"
    send(command(f'import os, sys; open("{out}", "w").write(sys.stdin.read() + os.environ["AFRESH_SUBJECT"])'))
    body, _, subject = out.read_text().partition("}]}")
    assert json.loads(f"{body}}}]}}")["changes"][0]["url"] == "https://e.org/a"
    assert subject.startswith("afresh prices: Sale Bcc: all@e.org?[31m")
    send(command("pass"))  # it need not read
    said = problem_of(command('import sys; sys.stderr.write("no \\x1b[1m way" * 1000000); sys.exit(3)'))
    assert said.problem.endswith("way") or said.problem.endswith("…")
    assert "ended with 3: no ?[1m way" in said.problem
    missing = channel_for(Rule("r", "command:/no/such/program"), MailServer(""))
    assert "cannot be run: No such file" in problem_of(missing).problem


def test_a_command_that_hangs_is_ended_with_all_that_it_began(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    child = f'import time; time.sleep(1.5); open("{mark}", "w")'
    program = f'import subprocess, sys, time; subprocess.Popen([sys.executable, "-c", {child!r}]); time.sleep(60)'
    (tmp_path / "hang.py").write_text(program)
    rule = Rule("prices", f"command:{sys.executable} {tmp_path / 'hang.py'}")
    began = time.monotonic()
    said = problem_of(channel_for(rule, MailServer(""), seconds=0.7))
    assert "did not end in 0.7 s" in said.problem
    assert time.monotonic() - began < 1.5
    time.sleep(2.0)
    assert not mark.exists()


def test_targets_are_shown_without_their_secrets() -> None:
    assert shown("https://u:p@hooks.e.org/T0/B1?key=x") == "https://hooks.e.org/…"
    assert shown("command:notify --token x") == "command:notify"
    for bad in (
        "",
        "ftp://e.org/x",
        "mailto:nobody",
        "mailto:a@e.org, b@e.org",
        "command:",
        "command:'",
        "apprise:x",
        "me",
    ):
        with pytest.raises(ConfigError, match="is no place for messages"):
            kind_of(bad)


def test_apprise_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)  # as where it is not installed
    channel = channel_for(Rule("r", "apprise:json://127.0.0.1:1/"), MailServer(""))
    assert "is not installed" in problem_of(channel).problem
