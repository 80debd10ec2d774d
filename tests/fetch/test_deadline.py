"""One limit for many things under way, beside asyncio's own."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.fetch.deadline import Deadlines

SHORT = 0.05


async def timed(limits: Deadlines, seconds: float) -> tuple[str, float]:
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        with limits.limit():
            await asyncio.sleep(seconds)
    except TimeoutError:
        return "late", loop.time() - began
    return "done", loop.time() - began


def test_each_has_its_own_time_however_they_overlap() -> None:
    async def go() -> list[tuple[str, float]]:
        limits, tasks = Deadlines(0.2), []
        for number in range(30):
            tasks.append(asyncio.create_task(timed(limits, 5.0 if number % 3 else 0.05)))
            await asyncio.sleep(0.01)
        return await asyncio.gather(*tasks)

    for number, (how, took) in enumerate(asyncio.run(go())):
        assert how == ("late" if number % 3 else "done")
        assert (0.19 if number % 3 else 0.04) < took < 1.0


def test_nothing_is_left_behind() -> None:
    async def go() -> None:
        limits = Deadlines(SHORT)
        assert (await timed(limits, 5.0))[0] == "late"
        for _ in range(1000):
            with limits.limit():
                pass
        assert not limits._running
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(2 * SHORT)
        assert limits._timer is None
        assert (await timed(limits, 5.0))[0] == "late"  # and it goes on from there
        with limits.limit():
            limits.close()

    asyncio.run(go())


def test_who_cancels_is_obeyed() -> None:
    async def go() -> None:
        limits = Deadlines(5.0)
        task = asyncio.create_task(timed(limits, 5.0))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        limits.close()

    asyncio.run(go())


def test_it_holds_in_every_loop() -> None:
    limits = Deadlines(SHORT)

    async def left() -> None:
        with limits.limit():
            asyncio.get_running_loop().stop()
            await asyncio.sleep(5.0)

    for _ in range(3):
        with pytest.raises(RuntimeError):  # the loop ends in the midst of it
            asyncio.run(left())
        assert asyncio.run(timed(limits, 1.0))[0] == "late"


def test_it_is_for_tasks_only() -> None:
    with pytest.raises(RuntimeError), Deadlines(1.0).limit():
        pass


Way = Callable[[], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]


async def outcome(inner: str, limit: Any, *, ours: bool, cancelled: float | None) -> str:
    """What becomes of a task that does this within a limit, and is maybe cancelled after a while."""

    async def work() -> str:
        if inner == "fail":
            await asyncio.sleep(0)
            raise ValueError
        try:
            await asyncio.sleep(3 * SHORT if inner != "short" else 0)
        except asyncio.CancelledError:
            if inner == "turn":
                raise KeyError from None
            raise
        return "done"

    async def run() -> str:
        if ours:
            with limit:
                return await work()
        async with limit:
            return await work()

    task = asyncio.create_task(run())
    if cancelled is not None:
        await asyncio.sleep(cancelled)
        task.cancel()
    (result,) = await asyncio.gather(task, return_exceptions=True)
    return f"{result if isinstance(result, str) else type(result).__name__} {task.cancelling()}"


@settings(deadline=None, max_examples=15)
@given(st.sampled_from(["short", "long", "fail", "turn"]), st.sampled_from([None, 0.0, 0.02, 0.1]))
def test_it_ends_as_with_the_limit_of_asyncio(inner: str, cancelled: float | None) -> None:
    async def go() -> None:
        limits = Deadlines(SHORT)
        mine = await outcome(inner, limits.limit(), ours=True, cancelled=cancelled)
        theirs = await outcome(inner, asyncio.timeout(SHORT), ours=False, cancelled=cancelled)
        limits.close()
        assert mine == theirs

    asyncio.run(go())
