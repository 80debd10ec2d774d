"""What takes long is found once for all who ask, and is never told when its time has run out."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from itertools import count
from typing import cast

import pytest

from afresh.serve.console import facts as module
from afresh.serve.console.facts import Facts, Reading
from afresh.serve.receive.bodies import Refused


class Nothing:
    """Facts that know nothing: the questions of these tests count how often they are asked."""

    runs = True

    def is_run(self) -> bool:
        return self.runs

    def close(self) -> None: ...


def run(test: Callable[[Reading], Awaitable[None]]) -> None:
    async def go() -> None:
        reading = Reading(lambda: cast(Facts, Nothing()))
        try:
            await test(reading)
        finally:
            reading.close()

    asyncio.run(go())


def test_an_answer_is_told_while_its_time_lasts_and_not_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRESH_SECONDS", 0.3)
    asked = count(1)

    async def test(reading: Reading) -> None:
        async def told() -> int:
            return await reading.ask_long("n", lambda facts: next(asked))

        assert [await told(), await told()] == [1, 1]
        await asyncio.sleep(0.4)
        assert await told() == 2, "who asks first afterwards gets the new one, and not the old one"

    run(test)


def test_all_who_ask_at_the_same_time_wait_for_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRESH_SECONDS", 0.05)
    monkeypatch.setattr(module, "REST_TIMES", 0.0)
    asked, goes_on = count(1), threading.Event()

    def search(facts: Facts) -> int:
        nth = next(asked)
        if nth == 2:
            assert goes_on.wait(30)
        return nth

    async def test(reading: Reading) -> None:
        assert await reading.ask_long("n", search) == 1
        await asyncio.sleep(0.1)
        waiting = [asyncio.create_task(reading.ask_long("n", search)) for _ in range(5)]
        with pytest.raises(Refused):
            await reading.ask_long("n", search, seconds=0.05)
        with pytest.raises(Refused):
            await reading.ask_long("n", search, seconds=0.05, older=0.01)
        assert await reading.ask_long("n", search, seconds=0.05, older=60.0) == 1, "whoever wants has the old one"
        assert not any(each.done() for each in waiting)
        goes_on.set()
        assert await asyncio.gather(*waiting) == [2] * 5

    run(test)


def test_what_took_long_is_kept_for_longer_but_not_for_what_it_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRESH_SECONDS", 0.05)
    asked, rest = count(1), threading.Event()

    def slow(facts: Facts) -> int:
        rest.wait(0.2)
        return next(asked)

    async def test(reading: Reading) -> None:
        quick = asked.__next__
        first = asyncio.create_task(reading.ask_long("slow", slow))
        await asyncio.sleep(0)
        assert await reading.ask_long("quick", lambda facts: quick()) == 2, "one long question at a time"
        assert await first == 1
        await asyncio.sleep(0.1)
        assert await reading.ask_long("slow", slow) == 1, "it is kept for 20 times 0.2 s"
        assert await reading.ask_long("quick", lambda facts: quick()) == 3

    run(test)


def test_a_search_that_fails_is_told_and_tried_again() -> None:
    asked = count(1)

    def fails(facts: Facts) -> int:
        if next(asked) == 1:
            raise ValueError("the store cannot be read")
        return 7

    async def test(reading: Reading) -> None:
        with pytest.raises(ValueError, match="cannot be read"):
            await reading.ask_long("n", fails)
        assert await reading.ask_long("n", fails) == 7

    run(test)


def test_questions_that_anybody_makes_up_hold_up_none_of_the_consoles_own() -> None:
    goes_on = threading.Event()

    def waits(facts: Facts) -> int:
        assert goes_on.wait(30)
        return 1

    async def test(reading: Reading) -> None:
        made_up = [
            asyncio.create_task(reading.ask_long(f"plan {nth}", waits, made_up=True))
            for nth in range(module.MAX_MADE_UP)
        ]
        await asyncio.sleep(0.05)
        with pytest.raises(Refused) as refused:
            await reading.ask_long("plan x", waits, made_up=True)
        assert refused.value.status == 503
        same = asyncio.create_task(reading.ask_long("plan 0", waits, made_up=True))  # this one is being found already
        assert await reading.ask_long("collection", lambda facts: 7) == 7
        goes_on.set()
        assert await asyncio.gather(*made_up, same) == [1] * (module.MAX_MADE_UP + 1)
        assert await reading.ask_long("plan x", lambda facts: 3, made_up=True) == 3

    run(test)


def test_programs_that_ask_the_runner_without_pause_are_bounded_and_no_browser_waits_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, refused, ended = count(), list[Refused](), threading.Event()

    async def test(reading: Reading) -> None:
        async def program() -> None:
            while not ended.is_set():
                try:
                    await reading.ask_runner(lambda facts: next(asked))
                except Refused as error:
                    refused.append(error)
                    await asyncio.sleep(0.05)

        loop, waits = asyncio.get_running_loop(), list[float]()
        start = loop.time()
        programs = [asyncio.create_task(program()) for _ in range(100)]
        await asyncio.sleep(0.5)
        for _ in range(15):  # as somebody clicks
            began = loop.time()
            await reading.ask_runner(lambda facts: None, by_browser=True)
            waits.append(loop.time() - began)
            await asyncio.sleep(0.1)
        ended.set()
        await asyncio.gather(*programs)
        assert 30 + 15 * 2 <= next(asked) <= 30 + 15 * (loop.time() - start) + 1
        assert {(each.status, each.headers["Retry-After"]) for each in refused} == {(503, "4")}
        assert max(waits) < 0.5
        monkeypatch.setattr(Nothing, "runs", False)
        began = loop.time()
        for _ in range(200):
            await reading.ask_runner(lambda facts: None)
        assert loop.time() - began < 5.0, "where nobody crawls, nobody is slowed down for it"

    run(test)
