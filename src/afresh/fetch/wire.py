"""One question and one answer over a connection that may be used again."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from afresh.fetch.answer import Answer, Unanswered
from afresh.fetch.connect import Dialer
from afresh.fetch.http1 import FORM, Http1
from afresh.fetch.target import Target

SECONDS_TO_CLOSE = 1.0


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked besides for a page of the usual size."""

    form: bytes | None = None  # to be posted
    most: int = 0  # bytes that may come, where that is more than usual
    kind: str = FORM  # the content type of what is posted
    headers: Mapping[str, str] = field(default_factory=dict)  # that go along
    status_alone: bool = False  # of the answer nothing else is wanted


PAGE = Question()
_Key = tuple[str, int, bool, bool]  # host, port, whether it is secure, whether its certificate is checked


class Wire:
    """Asks over connections, a limited number at once, and keeps one for each origin for a while.

    One is enough: a host is asked one thing at a time.
    """

    def __init__(
        self,
        dialer: Dialer,
        *,
        most: int,
        most_idle: int,
        keep_alive: float,
        permit: Callable[[], None] = lambda: None,
    ) -> None:
        """`permit` is called right before a question goes out, and raises what hinders it."""
        self.dialer = dialer
        self._permit = permit
        self._most_idle = most_idle
        self._keep_alive = keep_alive
        self._places = asyncio.Semaphore(most)
        self._busy: set[Http1] = set()
        self._idle: dict[_Key, Http1] = {}  # the longest idle first
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses that a connection to a host would be tried at."""
        return [str(each["host"]) for each in await self.dialer.names.find(host, port)]

    async def place(self) -> None:
        """Wait until one more may be asked; `ask` must follow."""
        await self._places.acquire()

    async def ask(
        self, where: Target, headers: Mapping[str, str], *, verified: bool = True, question: Question = PAGE
    ) -> tuple[Http1, Answer]:
        """Ask for a page after `place`, and wait for the head of its answer. `release` must follow."""
        try:
            return await self._exchange(where, headers, verified, question)
        except BaseException:
            self._places.release()
            raise

    def release(self, where: Target, connection: Http1, *, verified: bool = True) -> None:
        """Have done with an answer; its connection is used again if nothing of the answer is left in it."""
        self._places.release()
        connection.drop()
        self._busy.discard(connection)
        if connection.closed or self._closed:
            return
        key = _key(where, verified)
        if (other := self._idle.pop(key, None)) is not None:
            other.close()
        self._idle[key] = connection
        connection.idle_since = asyncio.get_running_loop().time()
        if len(self._idle) > self._most_idle:
            self._idle.pop(next(iter(self._idle))).close()
        if self._sweeping is None:
            self._sweep()

    async def close(self) -> None:
        """Let go of all connections."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        connections = [*self._busy, *self._idle.values()]
        self._busy, self._idle = set(), {}
        for connection in connections:
            connection.close()
        if connections:
            await asyncio.wait([connection.gone for connection in connections], timeout=SECONDS_TO_CLOSE)
        await self.dialer.names.close()

    async def _exchange(
        self, where: Target, headers: Mapping[str, str], verified: bool, question: Question
    ) -> tuple[Http1, Answer]:
        """Ask, and once more if the connection was closed just before it was used. That says nothing about the page."""
        kept = self._idle.pop(_key(where, verified), None)
        if kept is not None:
            try:
                return await self._ask(kept, where, headers, question)
            except Unanswered:
                pass
        connection = await self.dialer.dial(where, verified=verified)
        if self._closed:
            connection.close()
        return await self._ask(connection, where, headers, question)

    async def _ask(
        self, connection: Http1, where: Target, headers: Mapping[str, str], question: Question
    ) -> tuple[Http1, Answer]:
        try:
            self._permit()
        except BaseException:
            connection.close()
            raise
        self._busy.add(connection)
        try:
            answer = connection.ask(
                where.authority, where.path, headers, form=question.form, kind=question.kind, most=question.most
            )
            await answer.head()
        except BaseException:
            self._busy.discard(connection)
            connection.drop()
            raise
        return connection, answer

    def _sweep(self) -> None:
        """Close what has been idle for long, and look again when the next will have been."""
        loop = asyncio.get_running_loop()
        self._sweeping = None
        while self._idle:
            key, oldest = next(iter(self._idle.items()))
            left = oldest.idle_since + self._keep_alive - loop.time()
            if left > 0 and not oldest.closed:
                self._sweeping = loop.call_later(left, self._sweep)
                return
            self._idle.pop(key).close()


def _key(where: Target, verified: bool) -> _Key:
    return where.host, where.port, where.secure, verified
