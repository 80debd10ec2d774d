"""Signals that others post: who may, in which forms, and within which limits; stored before they are acknowledged."""

import asyncio
import gzip
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from afresh.checks import OUR_SENDERS
from afresh.errors import ConfigError, InboxFull, InputError, SignalError
from afresh.serve.receive import listener, tokens
from afresh.serve.receive.meter import Meter
from afresh.signals.hooks import read_hook
from afresh.signals.strict_json import read_json
from afresh.store import Memory
from receiving import NOW, Receiving, raw, receiving

A, B = "https://e.org/a", "https://e.org/b"


def play(folder: Path, act: Callable[[Receiving], Awaitable[object]], **options: object) -> None:
    async def go() -> None:
        async with receiving(folder, **options) as it:  # type: ignore[arg-type]
            await act(it)

    asyncio.run(go())


@pytest.mark.parametrize(
    ("kind", "body", "heard"),
    [
        ("text/plain", f"{A}\n\n {B} \n", [[A, NOW, "cms"], [B, NOW, "cms"]]),
        ("", f"{A}\n", [[A, NOW, "cms"]]),
        ("application/json", json.dumps(A), [[A, NOW, "cms"]]),
        ("application/json", json.dumps([A, {"url": B, "sender": "ci"}]), [[A, NOW, "cms"], [B, NOW, "ci"]]),
        ("application/json", json.dumps({"urls": [A, A, B], "time": 12.5}), [[A, 12.5, "cms"], [B, 12.5, "cms"]]),
        ("application/json", json.dumps({"url": A, "time": "1970-01-02T00:00:00Z"}), [[A, 86400.0, "cms"]]),
        ("application/json", json.dumps({"url": A, "time": NOW + 1e6}), [[A, NOW, "cms"]]),  # a clock that is wrong
        ("application/json", json.dumps({"url": A, "time": (NOW - 5) * 1000}), [[A, NOW - 5, "cms"]]),
        ("", f'{{"url": "{A}"}}\n{{"url": "{B}"}}\n', [[A, NOW, "cms"], [B, NOW, "cms"]]),
        ("application/x-ndjson", f'"{A}"\n{{"url": "{B}"}}\n', [[A, NOW, "cms"], [B, NOW, "cms"]]),
        (
            "application/cloudevents+json",
            json.dumps({"specversion": "1.0", "id": "7", "source": "https://e.org", "subject": "a", "type": "x"}),
            [[A, NOW, "cms"]],
        ),
    ],
)
def test_signals_come_in_every_usual_form(tmp_path: Path, kind: str, body: str, heard: list[object]) -> None:
    async def act(it: Receiving) -> None:
        answered = await it.ask("POST", "/signal", body, f"Content-Type: {kind}")
        assert (answered.status, answered.json["signals"]) == (202, len(heard)), answered.body
        assert it.heard() == heard
        assert it.woken

    play(tmp_path, act)


def test_what_cannot_be_used_is_said_and_nothing_of_it_is_kept(tmp_path: Path) -> None:
    async def act(it: Receiving) -> None:
        for status, words, path, body, *headers in [
            (400, "character 8", "/signal", '{"url": NaN}'),
            (400, "neither url nor urls", "/signal", '{"uri": "https://e.org/"}'),
            (400, "list in a list", "/signal", '[["https://e.org/"]]'),
            (400, "No address", "/signal", ""),
            (400, "Line 2", "/signal", b"https://e.org/\n\xff"),
            (400, "time", "/signal", '{"url": "https://e.org/", "time": "soon"}'),
            *((400, "no name for a sender", f"/signal?sender={name}", A) for name in [*sorted(OUR_SENDERS), "ETag"]),
            (400, "no name for a sender", "/signal", json.dumps({"url": A, "sender": "Last-Modified"})),
            (400, "character 24", "/signal", '{"url": "https://e.org/"'),
            (400, "Idempotency-Key", "/signal", A, f"Idempotency-Key: {'k' * 101}"),
            (400, "gzip", "/signal", b"no gzip", "Content-Encoding: gzip"),
            (415, "Content-Encoding", "/signal", A, "Content-Encoding: br"),
            (413, "larger", "/signal", b"x" * 70_000),
            (413, "larger", "/signal", gzip.compress(b"x" * 1_000_000), "Content-Encoding: gzip"),
            (422, "never", "/signal", "https://never.test/"),
            (422, "not a web address", "/signal", "ftp://e.org/\njavascript:alert(1)\nhttps://u:p@e.org/"),
            (404, "nothing here", "/other", A),
        ]:
            answered = await it.ask("POST", str(path), body, *headers)  # type: ignore[arg-type]
            assert answered.status == status, (answered.status, words, answered.body)
            assert words in answered.json["error"], answered.body
        assert (await it.ask("GET", "/signal")).status == 405
        assert it.heard() == []

    play(tmp_path, act, max_body=65_536, never=["never.test"])


def test_only_who_has_a_token_for_it_may_send(tmp_path: Path) -> None:
    async def act(it: Receiving) -> None:
        assert (await it.ask("POST", "/signal", A, token="afresh_wrong")).status == 401
        refused = await it.ask("POST", "/signal", A, token="")
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
        basic = await it.ask("POST", "/signal", A, "Authorization: Basic YTpi", token="")
        assert refused.json["error"] == basic.json["error"] == "No token was sent."
        reads, acts = tokens.new(it.file, "eyes", "read"), tokens.new(it.file, "all", "act")
        await asyncio.sleep(tokens.LOOK_SECONDS)
        assert (await it.ask("POST", "/signal", A, token=reads)).status == 403
        assert (await it.ask("POST", "/signal", A, token=acts)).status == 202
        tokens.revoke(it.file, "cms")
        await asyncio.sleep(tokens.LOOK_SECONDS)
        assert (await it.ask("POST", "/signal", A)).status == 401
        assert [signal[2] for signal in it.heard()] == ["all"]

    play(tmp_path, act)


def test_tokens_are_kept_as_hashes_that_nobody_else_reads(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    token = tokens.new(file, "cms", "signal")
    assert file.stat().st_mode & 0o777 == 0o600
    assert token not in file.read_text()
    assert [(each.name, each.scope) for each in tokens.listed(file)] == [("cms", "signal")]
    for name, scope in (("cms", "signal"), ("a b", "signal"), ("x", "root")):
        with pytest.raises(InputError):
            tokens.new(file, name, scope)
    with pytest.raises(InputError):
        tokens.revoke(file, "other")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="Others can read"):
        tokens.listed(file)
    assert tokens.Tokens(file).find(token) is None
    file.chmod(0o600)
    assert tokens.Tokens(file).find(token) is not None
    file.write_text("cms signal\n")
    with pytest.raises(ConfigError, match="Line 1"):
        tokens.listed(file)


def test_the_same_again_counts_once_and_too_much_is_refused(tmp_path: Path) -> None:
    async def act(it: Receiving) -> None:
        for more in ({}, {"repeated": True}, {"repeated": True}):
            answered = await it.ask("POST", "/signal", A, "Idempotency-Key: 7")
            assert (answered.status, answered.json) == (202, {"signals": 1, **more})
        assert len(it.heard()) == 1
        for _ in range(2):
            assert (await it.ask("POST", "/signal", json.dumps({"url": B, "key": "8"}))).status == 202
        assert len(it.heard()) == 2
        strange = await it.ask("POST", "/signal", "https://e.org/strange", "Idempotency-Key: 9")
        assert strange.json == {"signals": 0, "not_kept": 1}, "nobody keeps that page"
        many = "\n".join(f"https://e.org/{nth}" for nth in range(50))
        assert (await it.ask("POST", "/signal", many)).status == 202
        full = await it.ask("POST", "/signal", many)
        assert full.status == 429
        assert int(full.headers["retry-after"]) > 0
        assert len(it.heard()) == 53

    play(tmp_path, act, rate=6.0)


def test_a_full_inbox_says_so_and_loses_nothing(tmp_path: Path) -> None:
    class Full(Memory):
        full = True

        def post(self, entries):  # type: ignore[no-untyped-def]
            if self.full:
                raise InboxFull("The inbox has no room.", hint="Later.")
            return super().post(entries)

    store = Full()

    async def act(it: Receiving) -> None:
        answered = await it.ask("POST", "/signal", A)
        assert (answered.status, answered.headers["retry-after"]) == (503, "5")
        store.full = False
        assert (await it.ask("POST", "/signal", A)).status == 202
        assert len(it.heard()) == 1

    play(tmp_path, act, store=store)


def test_endless_and_slow_senders_hold_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "HEAD_SECONDS", 0.3)

    async def act(it: Receiving) -> None:
        head = f"POST /signal HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {it.token}\r\n"
        endless = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
        writer.write(endless)
        for _ in range(200):  # it answers in the middle, and hangs up
            writer.write(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
            try:
                await writer.drain()
            except ConnectionError:
                break
        with suppress(ConnectionError):  # as more of it comes, the answer may be lost with the connection
            assert (await reader.read(12)) in (b"HTTP/1.1 413", b"")
        writer.close()
        assert (await raw(it.port, f"{head}Content-Length: {1 << 30}\r\n\r\n".encode())).status == 413
        assert (await raw(it.port, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 300 + b"\r\n")).status == 400
        assert (await raw(it.port, b"GET / HTTP/1.1\r\nX: " + b"y" * 60_000 + b"\r\n\r\n")).status == 400
        slow, idle = [await asyncio.open_connection("127.0.0.1", it.port) for _ in range(2)]
        slow[1].write(b"POST /sig")
        began = time.monotonic()
        with pytest.raises((ConnectionError, AssertionError)):
            assert await slow[0].read(1)
        with pytest.raises((ConnectionError, AssertionError)):
            assert await idle[0].read(1)
        assert time.monotonic() - began < 3.0
        assert (await it.ask("POST", "/signal", A)).status == 202
        for each in (slow, idle):
            each[1].close()

    play(tmp_path, act)


@pytest.mark.parametrize(
    "text",
    [
        *("[1,]", '{"a":1,}', '["\x00"]', '["\\u00"]', "[1 2]", '["a\nb"]', "[NaN]", "[Infinity]", "[-Infinity]"),
        *('{"a":1,"a":2}', '["\\ud800"]', '["\\udc00\\ud800"]', "[" * 100_000, '{"a":' * 100_000, "", "[", '"', "[01]"),
        *("[1e]", "[+1]", "[.1]", "[0x1]", "['a']", "[True]", "{a:1}", "[1]x", "\ufeff[1]", f"[{'1' * 5000}]"),
    ],
)
def test_g8_json_that_is_wrong_is_refused_with_a_position(text: str) -> None:
    with pytest.raises(SignalError, match=r"at (?:character|byte) \d+"):
        read_json(text.encode("utf-8", "surrogatepass"))


def test_json_that_is_not_utf_8_is_refused() -> None:
    for body in (b'["\xff"]', '["a"]'.encode("utf-16"), b'["\xed\xa0\x80"]'):
        with pytest.raises(SignalError, match=r"at byte \d+"):
            read_json(body)


def test_a_body_names_only_so_many_pages() -> None:
    with pytest.raises(SignalError, match="10,000"):
        read_hook(b"https://e.org/\n" * 10_001)


def test_a_sender_gets_its_rate_back() -> None:
    meter = Meter(rate=10.0, burst=100.0)
    assert meter.take("a", 250.0, 0.0) == 0  # more than the bucket holds, once it is full
    assert meter.take("a", 1.0, 0.0) == 16
    assert meter.take("b", 100.0, 0.0) == 0
    assert meter.take("a", 1.0, 16.0) == 0
