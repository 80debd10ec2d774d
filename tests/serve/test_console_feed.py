"""The feed under those who ask for much: nobody is missed out, nobody else waits, and what is held is bounded."""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from afresh.errors import StoreError
from afresh.serve.console import facts as facts_module
from afresh.serve.console import feed as module
from afresh.serve.console.facts import Facts, LookBack, Reading
from afresh.serve.console.feed import Feed, atom, looked_back_to, matching
from afresh.serve.receive.bodies import Refused

Object = dict[str, Any]


class Changes:
    """Facts that know changes alone."""

    def __init__(self, changes: int) -> None:
        self.kept = [self.change(number) for number in range(1, changes + 1)]
        self.at_once = self.most_at_once = 0
        self.told: Counter[int] = Counter()
        self.looks: list[int] = []
        self.given = 0  # numbers, those of crawls that are gone included
        self.before_they_are_given: Callable[[int], None] = lambda after: None
        self.text: Callable[[], str] = lambda: "new"
        self.lock = threading.Lock()

    @staticmethod
    def change(number: int) -> Object:
        url = f"https://{'rare' if number % 1000 == 0 else 'a'}.example/{number}"
        return {"number": number, "url": url, "time": float(number), "change": "changed", "back": False}

    def changes(self, after: int, limit: int) -> list[Object]:
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        found = [each for each in self.kept if each["number"] > after][:limit]
        self.before_they_are_given(after)
        with self.lock:
            self.at_once -= 1
        return found

    def latest(self, limit: int) -> list[Object]:
        return self.kept[::-1][:limit]

    def last_number(self) -> int:
        return max(len(self.kept), self.given)

    def latest_of(self, has: Callable[[str], bool], limit: int, before: int | None, looked_at: int) -> LookBack:
        some = [each for each in self.kept[::-1] if before is None or each["number"] < before][:looked_at]
        self.looks.append(len(some))
        found = [each for each in some if has(each["url"])][:limit]
        if not some or some[-1]["number"] == 1:
            return LookBack(found)
        return LookBack(found, some[-1]["number"], some[-1]["time"])

    def text_of_change(self, change: Object) -> Object:
        self.told[change["number"]] += 1
        return {"title": "T", "words": {"removed": 0, "added": 1}, "blocks": [[None, self.text()]]}

    def close(self) -> None: ...


def run(known: Changes, test: Callable[[Feed], Awaitable[None]]) -> None:
    async def go() -> None:
        reading = Reading(lambda: cast(Facts, known))
        feed = Feed(reading)
        try:
            async with asyncio.timeout(60):
                await test(feed)
        finally:
            await feed.close()
            reading.close()

    asyncio.run(go())


async def asked(feed: Feed, *, stream: bool, **said: Any) -> Response:
    headers = [(b"accept", b"text/event-stream")] if stream else []
    request = Request({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers})
    wanted = {"after": None, "limit": 1000, "host": "", "pattern": "", "blocks": False} | said
    return await feed.answer(request, wanted)


async def events(feed: Feed, **said: Any) -> AsyncIterator[Object]:
    response = await asked(feed, stream=True, **said)
    assert isinstance(response, StreamingResponse)
    async for piece in response.body_iterator:
        for line in bytes(cast(bytes, piece)).decode().splitlines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


async def some(feed: Feed, count: int, **said: Any) -> list[Object]:
    found: list[Object] = []
    async for each in events(feed, **said):
        found.append(each)
        if len(found) == count:
            break
    return found


def test_many_who_read_all_that_was_read_one_at_a_time_and_nobody_else_waits_for_them() -> None:
    known = Changes(5_000)
    known.before_they_are_given = lambda after: time.sleep(0.002)

    async def test(feed: Feed) -> None:
        many = [asyncio.create_task(some(feed, 5, after=0, host="rare.example")) for _ in range(300)]
        await asyncio.sleep(0.05)
        began = time.monotonic()
        assert await feed.reading.ask(lambda facts: facts.latest(1))
        assert time.monotonic() - began < 1.0
        wanted = [1000 * nth for nth in range(1, 6)]
        for found in await asyncio.gather(*many):
            assert [each["number"] for each in found] == wanted
        assert known.most_at_once <= 2, "one for what was, and one for what is new"

    run(known, test)


def test_what_a_change_was_about_is_found_once_for_all_who_listen() -> None:
    known = Changes(20)
    known.text = lambda: time.sleep(0.01) or "new"  # type: ignore[func-returns-value]

    async def test(feed: Feed) -> None:
        every = await asyncio.gather(*(some(feed, 20, after=0, blocks=True) for _ in range(250)))
        assert all([each["number"] for each in found] == list(range(1, 21)) for found in every)
        assert every[0][0]["blocks"] == [[None, "new"]]
        assert set(known.told.values()) == {1}

    run(known, test)


def test_a_change_whose_text_takes_too_long_is_told_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_module, "SECONDS", 0.2)
    known = Changes(2)
    known.text = lambda: time.sleep(0.5) or "new"  # type: ignore[func-returns-value]

    async def test(feed: Feed) -> None:
        found = await some(feed, 2, after=0, blocks=True)
        assert [(each["number"], each["blocks"], each["words"]) for each in found] == [(1, None, None), (2, None, None)]

    run(known, test)


def test_a_change_that_is_stored_while_others_are_found_gone_is_not_missed() -> None:
    known = Changes(5)

    async def test(feed: Feed) -> None:
        def another(after: int) -> None:
            if after == 3:  # what the listener asks for: its page is gone, and a change is stored right now
                known.before_they_are_given = lambda after: None
                known.kept.append(known.change(6))
                deadline = time.monotonic() + 10
                while feed._newest < 6:
                    assert time.monotonic() < deadline
                    time.sleep(0.01)

        keeps_looking = asyncio.create_task(some(feed, 1))
        await asyncio.sleep(0.1)
        del known.kept[3:]
        known.before_they_are_given = another
        async with asyncio.timeout(20):
            assert [each["number"] for each in await some(feed, 1, after=3)] == [6]
        assert [each["number"] for each in await keeps_looking] == [6]

    run(known, test)


def test_a_stream_whose_store_cannot_be_read_ends_and_the_next_one_goes_on() -> None:
    known = Changes(10)

    async def test(feed: Feed) -> None:
        def broken(after: int) -> None:
            raise StoreError("The store is locked.")

        keeps_looking = asyncio.create_task(some(feed, 1))
        await asyncio.sleep(0.1)
        known.before_they_are_given = broken
        assert await some(feed, 1, after=0) == []
        known.before_they_are_given = lambda after: None
        assert len(await some(feed, 10, after=0)) == 10
        keeps_looking.cancel()

    run(known, test)


def test_lines_are_bounded_in_all_and_who_filters_gets_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINES_CHARACTERS", 10_000)
    known = Changes(30_000)

    async def test(feed: Feed) -> None:
        answer = await asked(feed, stream=False, limit=10_000)
        numbers = [json.loads(line)["number"] for line in bytes(answer.body).splitlines()]
        assert numbers == list(range(1, len(numbers) + 1))
        assert 50 < len(numbers) < 200
        assert answer.headers["afresh-next"] == str(numbers[-1])
        answer = await asked(feed, stream=False, limit=3, host="rare.example")
        assert [json.loads(line)["number"] for line in bytes(answer.body).splitlines()] == [1000, 2000, 3000]
        assert answer.headers["afresh-next"] == "3000"
        answer = await asked(feed, stream=False, limit=3, host="nowhere.example")
        assert (bytes(answer.body), answer.headers["afresh-next"]) == (b"", "20000")
        answer = await asked(feed, stream=False, limit=3, after=29_999)
        assert (len(bytes(answer.body).splitlines()), answer.headers["afresh-next"]) == (1, "30000")

    run(known, test)


def test_long_texts_end_an_answer_of_lines_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINES_SECONDS", 0.2)
    known = Changes(100)
    known.text = lambda: time.sleep(0.1) or "new"  # type: ignore[func-returns-value]

    async def test(feed: Feed) -> None:
        answer = await asked(feed, stream=False, blocks=True)
        count = len(bytes(answer.body).splitlines())
        assert 1 <= count <= 10
        assert answer.headers["afresh-next"] == str(count)

    run(known, test)


def test_the_latest_changes_of_a_quiet_host_are_looked_for_further_back(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Changes(20_999)

    async def of_rare(limit: int) -> list[int]:
        found = await feeds[-1].latest(limit, matching("rare.example", ""))
        ends.append(found.back_to)
        told = replace(found, found=[each | {"title": ""} for each in found.found])
        text = atom(told, "urn:a", "http://console.example", "rare.example", "", 5.0)
        assert text.count("<entry>") == len(found.found)
        assert (found.back_to is None) == ("<subtitle>" not in text)
        return [each["number"] for each in found.found]

    async def test(feed: Feed) -> None:
        feeds.append(feed)
        assert await of_rare(50) == [1000 * nth for nth in range(20, 0, -1)], "all there are"
        known.looks.clear()
        assert await of_rare(2) == [20_000, 19_000]
        assert known.looks == [500, 5000], "no further than it must"
        monkeypatch.setattr(module, "MAX_LOOKED_AT", 10_000)
        assert await of_rare(50) == [1000 * nth for nth in range(20, 10, -1)]
        monkeypatch.setattr(module, "LOOK_BACK_SECONDS", 0.0)
        assert await of_rare(50) == []
        assert ends == [None, None, 10_500.0, 20_500.0]

    feeds: list[Feed] = []
    ends: list[float | None] = []
    run(known, test)


def test_a_search_that_somebody_else_waits_with_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_BACK_SECONDS", 0.2)

    async def test(feed: Feed) -> None:
        async with feed._one_looks_back:
            found = await feed.latest(50, matching("rare.example", ""))
        assert looked_back_to(found.back_to or 0.0).startswith("Looked back to 1970-01-01T00:41:41Z")

    run(Changes(3000), test)


def test_a_number_that_was_not_given_yet_is_refused_and_one_whose_page_is_removed_is_not() -> None:
    known = Changes(5)
    known.given = 9

    async def refused(**said: Any) -> str:
        with pytest.raises(Refused) as caught:
            await asked(feeds[-1], **said)
        assert caught.value.status == 409
        return f"{caught.value} {caught.value.hint}"

    async def test(feed: Feed) -> None:
        feeds.append(feed)
        for stream in (False, True):
            said = await refused(stream=stream, after=10)
            assert said.startswith("No change has the number 10 yet: the last one that was given is 9. ")
            assert said.endswith("Begin with after=0.")
            for number in (0, 5, 9):
                await asked(feed, stream=stream, after=number)
        headers = [(b"accept", b"text/event-stream"), (b"last-event-id", b"1200")]
        request = Request({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers})
        with pytest.raises(Refused, match="1200"):
            await feed.answer(request, {"after": 1, "host": "", "pattern": "", "blocks": False})

    feeds: list[Feed] = []
    run(known, test)
