"""Plays cases of what an HTTP cache must do: an origin that answers as a case says, and a reader that checks.

The form of the cases is that of the public ones (http-tests/cache-tests): a list of requests, each with what is sent,
what the origin answers, and what is expected. Everything goes through the cache, the case itself too.
"""

import asyncio
import json
import time
import uuid
from collections.abc import Iterable
from email.utils import formatdate
from typing import Any

from serving import HOST, Got, Reader

Case = dict[str, Any]
Pairs = list[list[Any]]
DATED = {"date", "expires", "last-modified", "if-modified-since", "if-unmodified-since"}
PAUSE = 3.0
AT_ONCE = 25


def _date(seconds: float, *, old: bool) -> str:
    if not old:
        return formatdate(int(seconds), usegmt=True)
    parts = time.gmtime(int(seconds))
    return time.strftime("%A, %d-%b-%y %H:%M:%S GMT", parts)


def _meant(name: str, value: Any, now: float, base: str, step: Case) -> str:
    """What a number stands for in a date, and a name in a place."""
    lower = name.lower()
    if lower in DATED and isinstance(value, int) and not isinstance(value, bool):
        return _date(now + value, old=lower in step.get("rfc850date", []))
    if lower in ("location", "content-location") and step.get("magic_locations"):
        return f"{base}/{value}" if value else base
    return str(value)


class CaseOrigin:
    """The origin: /config/ID takes a case, /test/ID answers as it says, /state/ID tells what was heard."""

    def __init__(self) -> None:
        self.cases: dict[str, list[Case]] = {}
        self.heard: dict[str, list[dict[str, Any]]] = {}

    async def start(self, port: int = 0) -> int:
        self._tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._server = await asyncio.start_server(accept, HOST, port, limit=1 << 20)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                raw = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = raw[:-4].split("\r\n")
                fields: dict[str, str] = {}
                for line in lines:
                    name, _, value = line.partition(":")
                    key = name.lower()
                    fields[key] = f"{fields[key]}, {value.strip()}" if key in fields else value.strip()
                body = await reader.readexactly(int(fields.get("content-length", "0")))
                method, target, _ = first.split(" ")
                if not await self._answer(writer, method, target, fields, body):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            pass
        finally:
            writer.close()

    async def _answer(
        self, writer: asyncio.StreamWriter, method: str, target: str, fields: dict[str, str], body: bytes
    ) -> bool:
        _, kind, name, *_ = [*target.partition("?")[0].split("/"), ""]
        if kind == "config":
            self.cases[name] = json.loads(body)
            return self._say(writer, method, 201, [("Content-Type", "text/plain")], b"OK")
        if kind == "state":
            said = json.dumps(self.heard.get(name, [])).encode()
            return self._say(writer, method, 200, [("Content-Type", "text/plain")], said)
        if kind != "test" or name not in self.cases:
            return self._say(writer, method, 409, [], b"")
        return await self._play(writer, method, target, fields, name)

    async def _play(
        self, writer: asyncio.StreamWriter, method: str, target: str, fields: dict[str, str], name: str
    ) -> bool:
        steps, heard = self.cases[name], self.heard.setdefault(name, [])
        sent = fields.get("req-num", "")
        number = int(sent) if sent.isdigit() else len(heard) + 1
        if number > len(steps):
            return self._say(writer, method, 409, [], b"")
        step, before = steps[number - 1], steps[number - 2] if number > 1 else {}
        await asyncio.sleep(step.get("response_pause", 0))
        for interim in step.get("interim_responses", []):
            lines = "".join(f"{each[0]}: {each[1]}\r\n" for each in (interim[1] if len(interim) > 1 else []))
            writer.write(f"HTTP/1.1 {interim[0]} Early\r\n{lines}\r\n".encode("latin-1"))
        now = int(time.time() * 1000)
        status = step.get("response_status", [200])[0]
        if step.get("expected_type", "").endswith("validated"):
            known = {each[0].lower(): each[1] for each in before.get("response_headers", [])}
            same = [("last-modified", "if-modified-since"), ("etag", "if-none-match")]
            status = 304 if any(known.get(a) and fields.get(b) == known[a] for a, b in same) else 999
        lines = [("Server-Base-Url", target), ("Server-Request-Count", str(len(heard) + 1))]
        lines += [("Client-Request-Count", sent or "NaN"), ("Server-Now", str(now))]
        saved: dict[str, list[str]] = {}
        for each in step.get("response_headers", []):
            each[1] = _meant(each[0], each[1], now / 1000, target, step)
            lines.append((each[0], each[1]))
            if len(each) < 3 or each[2] is True:
                saved.setdefault(each[0], []).append(each[1])
        heard.append(
            {"number": int(sent) if sent.isdigit() else None, "method": method, "fields": fields, "saved": saved}
        )
        told = {each[0].lower() for each in lines}
        lines += [("Content-Type", "text/plain")] if "content-type" not in told else []
        lines += [("Date", formatdate(usegmt=True))] if "date" not in told else []
        lines.append(("Request-Numbers", " ".join(str(each["number"] or "") for each in heard)))
        if step.get("disconnect"):
            writer.transport.abort()
            return False
        body = (step.get("response_body") or name).encode() if status not in (204, 304) else b""
        return self._say(writer, method, status, lines, body)

    @staticmethod
    def _say(writer: asyncio.StreamWriter, method: str, status: int, lines: Iterable[Any], body: bytes) -> bool:
        some = [(name, value) for name, value in lines]
        told = {name.lower() for name, _ in some}
        close = "transfer-encoding" in told or "connection" in told
        if "transfer-encoding" in told:
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        elif "content-length" not in told and status not in (204, 304):
            some.append(("Content-Length", str(len(body))))
        elif status not in (204, 304):
            close = True
        head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in some)
        end = "Connection: close\r\n" if close and "connection" not in told else ""
        writer.write((head + end + "\r\n").encode("latin-1", "replace") + (b"" if method == "HEAD" else body))
        if close:
            writer.close()
        return not close


class Unexpected(Exception):
    """What came is not what a case expects."""


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise Unexpected(what)


async def play(case: Case, host: str, port: int) -> None:
    """One case through a cache; Unexpected if it does what it must not."""
    name, steps, answers = str(uuid.uuid4()), json.loads(json.dumps(case["requests"])), []
    await _ask(host, port, "PUT", f"/config/{name}", [("Content-Type", "application/json")], json.dumps(steps).encode())
    for number, step in enumerate(steps, start=1):
        sent: Pairs = [["Pragma", "foo"], ["Cache-Control", "nothing-to-see-here"]]
        for key, value in step.get("request_headers", []):
            if step.get("magic_ims") and key.lower() == "if-modified-since":
                value = _meant(key, value, int(answers[-1]["server-now"]) / 1000, "", step)
            sent.append([key, str(value)])
        sent += [["Req-Num", str(number)]]
        path = f"/test/{name}" + (f"/{step['filename']}" if "filename" in step else "")
        path += f"?{step['query_arg']}" if "query_arg" in step else ""
        body = (step.get("request_body") or "").encode()
        got = await _ask(host, port, step.get("request_method", "GET"), path, sent, body)
        answers.append(got)
        _check(step, number, got, name)
        if step.get("pause_after"):
            await asyncio.sleep(PAUSE)
    heard = json.loads((await _ask(host, port, "GET", f"/state/{name}", [])).body or b"[]")
    _check_heard(steps, heard, answers)


async def _ask(host: str, port: int, method: str, path: str, sent: Iterable[Any], body: bytes = b"") -> Got:
    reader = Reader(*await asyncio.open_connection(host, port, limit=1 << 20))
    lines: dict[str, str] = {"Host": f"{host}:{port}", "Connection": "close", "Accept": "*/*", "Accept-Language": "*"}
    lines |= {"Accept-Encoding": "gzip, deflate", "User-Agent": "node"}
    seen: set[str] = set()
    for name, value in sent:
        key = next((each for each in lines if each.lower() == name.lower()), name)
        lines[key] = f"{lines[key]}, {value}" if key.lower() in seen else str(value)
        seen.add(key.lower())
    try:
        async with asyncio.timeout(10):
            return await reader.ask(path, lines, method=method, body=body)
    finally:
        reader.close()


def _check(step: Case, number: int, got: Got, name: str) -> None:
    """One answer."""
    count = got["server-request-count"].split(",")[0]
    numbers = got["request-numbers"].split()
    _expect(len(numbers) == len(set(numbers)), "asked twice")
    kind = step.get("expected_type")
    if kind == "cached":
        _expect((got.status == 304 and not count) or (bool(count) and int(count) < number), f"{number} is not a hit")
    if kind == "not_cached":
        _expect(count == str(number), f"{number} is a hit")
    wanted = step.get("expected_status", step.get("response_status", [200])[0])
    _expect(wanted is None or got.status == wanted, f"{number} has status {got.status}")
    now, base = int(got["server-now"] or 0) / 1000, got["server-base-url"]
    for each in step.get("expected_response_headers", []):
        if isinstance(each, str):
            _expect(each.lower() in got.headers, f"{number} lacks {each}")
        elif len(each) == 2:
            _expect(got[each[0].lower()] == _meant(each[0], each[1], now, base, step), f"{number}: {each[0]}")
        elif each[1] == "=":
            _expect(got[each[0].lower()] == got[each[2].lower()], f"{number}: {each[0]}")
        else:
            _expect(int(got[each[0].lower()] or 0) > each[2], f"{number}: {each[0]} is too small")
    for each in step.get("expected_response_headers_missing", []):
        _expect(not isinstance(each, str) or each.lower() not in got.headers, f"{number} has {each}")
    if "expected_interim_responses" in step:
        _expect(got.interim == [each[0] for each in step["expected_interim_responses"]], f"{number}: interim answers")
    if step.get("check_body", True) and step.get("request_method") != "HEAD" and got.status not in (204, 304):
        text = step.get("expected_response_text", step.get("response_body") or name)
        _expect(text is None or got.body.decode("utf-8", "replace") == text, f"{number}: body")


def _check_heard(steps: list[Case], heard: list[dict[str, Any]], answers: list[Got]) -> None:
    """What the origin was asked."""
    left = iter(heard)
    for number, (step, got) in enumerate(zip(steps, answers, strict=True), start=1):
        kind = step.get("expected_type")
        if kind == "cached":
            continue
        asked = next(left, None)
        _expect(kind != "not_cached" or (asked is not None and asked["number"] == number), f"{number} was not asked")
        fields = asked["fields"] if asked else {}
        if kind in ("etag_validated", "lm_validated"):
            needed = "if-none-match" if kind == "etag_validated" else "if-modified-since"
            _expect(needed in fields, f"{number} has no {needed}")
        for each in step.get("expected_request_headers", []):
            name, value = (each, None) if isinstance(each, str) else each
            _expect(
                name.lower() in fields and value in (None, fields[name.lower()]), f"{number} is asked without {name}"
            )
        for each in step.get("expected_request_headers_missing", []):
            name, value = (each, None) if isinstance(each, str) else each
            _expect(
                name.lower() not in fields or (value is not None and fields[name.lower()] != value), f"{number}: {name}"
            )
        if asked:
            _expect(step.get("expected_method", asked["method"]) == asked["method"], f"{number}: {asked['method']}")
            for name, values in asked["saved"].items():
                _expect(name.lower() == "date" or got[name.lower()] == ", ".join(values), f"{number}: {name} is lost")


async def play_all(cases: list[Case], host: str, port: int) -> dict[str, str]:
    """What went wrong in each case; "" if nothing did."""
    found: dict[str, str] = {}

    async def one(case: Case) -> None:
        try:
            await play(case, host, port)
            found[case["id"]] = ""
        except (Unexpected, OSError, TimeoutError, asyncio.IncompleteReadError, ValueError) as error:
            found[case["id"]] = str(error) or type(error).__name__

    for start in range(0, len(cases), AT_ONCE):
        await asyncio.gather(*(one(case) for case in cases[start : start + AT_ONCE]))
    return found


def passed(cases: list[Case], found: dict[str, str]) -> set[str]:
    """The cases that went well, and all on which they depend."""
    by_name = {case["id"]: case for case in cases}

    def holds(name: str, seen: tuple[str, ...]) -> bool:
        needs = [each for each in by_name[name].get("depends_on", []) if each in by_name and each not in seen]
        return not found.get(name, "it was not played") and all(holds(each, (*seen, name)) for each in needs)

    return {name for name in by_name if holds(name, ())}
