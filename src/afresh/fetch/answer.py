"""One answer as it arrives: the head, then the body piece by piece, for the code that waits for it."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar, overload

ENOUGH = 1 << 16  # bytes of body worth waking the reader for
TOO_MUCH = 1 << 17  # bytes unread at which nothing more is taken from the network
MOST_PIECES = 1024  # unread; of a body that comes byte by byte
LONGEST_LINE = 16 * 1024  # of a head
MOST_HEADERS = 256
LARGEST_HEAD = 1 << 20  # all lines together
CHUNK_COST = 256  # bytes that every chunk of a body counts for besides its own
MOST_INTERIM = 20  # answers before the answer (100, 103), which may be sent without end

Lines = list[tuple[bytes, bytes]]
_Other = TypeVar("_Other")


class Unanswered(ConnectionError):
    """A question that was not looked at: it may be asked again on another connection."""


class Headers(Mapping[str, str]):
    """The headers of an answer, by name in any case; of several with one name the first, unless all are asked for.

    >>> headers = Headers([(b"Vary", b"a"), (b"VARY", b"b")])
    >>> headers["vary"], headers.all("Vary"), headers.get("Age", "")
    ('a', ['a', 'b'], '')
    """

    __slots__ = ("_values", "lines")

    def __init__(self, lines: Lines) -> None:
        self.lines = lines  # as they came
        self._values: dict[str, list[str]] = {}
        for name, value in lines:
            key = name.decode("latin-1").lower()
            self._values.setdefault(key, []).append(value.decode("utf-8", "surrogateescape"))

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()][0]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    @overload
    def get(self, name: str, /) -> str | None: ...
    @overload
    def get(self, name: str, /, default: str | _Other) -> str | _Other: ...
    def get(self, name: str, /, default: object = None) -> object:
        """The first value of a header, or what stands for none."""
        values = self._values.get(name.lower())
        return values[0] if values else default

    def all(self, name: str) -> list[str]:
        """All values of a header, in their order."""
        return self._values.get(name.lower(), [])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


_NONE = Headers([])


class Answer:
    """What came so far. One side puts in (`begin`, `feed`, `finish`, `fail`), the other waits (`head`, `more`)."""

    __slots__ = (
        *("_error", "_pieces", "_resume", "_waiter", "eager", "ended"),
        *("headers", "interim", "over_at", "received", "status", "unread", "until_close"),
    )

    def __init__(self, resume: Callable[[], None]) -> None:
        """`resume` is told whenever what was unread has been taken: more may come."""
        self._resume = resume
        self.status = 0  # until the head is there
        self.headers = _NONE
        self.received = 0  # bytes of body
        self.until_close = False  # whether nothing but the end of the connection says where the body ends
        self.ended = False
        self.eager = False  # whether the reader wants every piece as soon as it is there
        self.interim: Callable[[bytes], None] | None = None  # is told of each answer before the answer, as it came
        self.over_at: float | None = None  # when its end, or what failed, was heard, however late it is read
        self._error: Exception | None = None
        self._pieces: list[bytes] = []
        self.unread = 0
        self._waiter: asyncio.Future[None] | None = None

    def begin(self, status: int, headers: Headers, *, until_close: bool = False) -> None:
        """The head is there."""
        self.status, self.headers, self.until_close = status, headers, until_close
        self._wake()

    def feed(self, piece: bytes) -> None:
        """Some of the body is there."""
        self._pieces.append(piece)
        self.unread += len(piece)
        self.received += len(piece)
        if self.eager or self.unread >= ENOUGH or len(self._pieces) >= MOST_PIECES:
            self._wake()

    def finish(self) -> None:
        """All of the body is there."""
        if self._error is None:
            self.ended = True
            self._wake()

    def fail(self, error: Exception) -> None:
        """No more will come, for this reason."""
        if not self.ended and self._error is None:
            self._error = error
            self._wake()

    @property
    def crowded(self) -> bool:
        """Whether so much is unread that no more should be put in."""
        return self.unread >= TOO_MUCH or len(self._pieces) >= 2 * MOST_PIECES

    @property
    def over(self) -> bool:
        """Whether nothing more will come, be it the end or a failure."""
        return self.ended or self._error is not None

    async def head(self) -> None:
        """Wait until the head is there; raises what failed before that."""
        while not self.status:
            if self._error is not None:
                raise self._error
            await self._wait()

    async def more(self) -> list[bytes]:
        """Wait for more of the body; nothing if that was all."""
        enough = 1 if self.eager else ENOUGH
        while not self.over and self.unread < enough and len(self._pieces) < MOST_PIECES:
            await self._wait()
        if self._error is not None:
            raise self._error
        pieces, self._pieces = self._pieces, []
        if self.unread:
            self.unread = 0
            self._resume()
        return pieces

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
