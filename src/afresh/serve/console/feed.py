"""The feed of changes: JSON lines, events that go on, and Atom.

A reader names the last number that it has taken up, and gets what was stored behind that, in order. Numbers grow and
are never used twice, so nothing is missed, and nothing comes twice to who remembers the number. What was stored long
ago may have left the bounded history (`store.history` crawls of a page): within that, a feed can be resumed.
"""

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode
from uuid import NAMESPACE_URL, uuid5
from xml.sax.saxutils import escape, quoteattr

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from afresh.errors import AfreshError
from afresh.frontier.glob import Glob
from afresh.serve.console.facts import Facts, LookBack, Object, Reading
from afresh.serve.console.offers import MAX_WITH_BLOCKS
from afresh.serve.receive.bodies import Refused
from afresh.units import as_json, show_count

LOOK_SECONDS = 0.5  # between two looks for what is new, while anybody listens
RECENT = 2_000  # changes in memory, for those who follow closely
BATCH = 500
REST_TIMES = 1.0  # as long as reading what was took it rests: half a core at most
BEAT_SECONDS = 15.0  # after which a quiet stream says that it is alive
MAX_LISTENERS = 500
MAX_EMPTY = 40  # parts that are looked through for one answer of lines
MAX_LOOKED_AT = 200_000  # changes, for the latest ones that match
LOOK_BACK = 5_000  # of these at a time
LOOK_BACK_SECONDS = 2.0  # after which such a search ends
MAX_BLOCKS_KEPT = 100  # changes
MAX_LINES_CHARACTERS = 4 << 20  # of an answer of lines, but for one line
LINES_SECONDS = 10.0  # after which such an answer ends with the line that it has
TELLING_SECONDS = 4.0  # for what the entries of an Atom feed say
ENTRY_BLOCKS, ENTRY_BLOCK = 10, 300  # of a change that such an entry shows, and characters of each
MAX_BLOCK_CHARACTERS = 64 << 10  # of one change, before and after together

Told = TypeVar("Told")
Has = Callable[[str], bool]  # whether changes of an address are wanted
Line = tuple[Object, str]  # a change, and the same as JSON


@dataclass(frozen=True, slots=True)
class Part:
    """Some changes behind a number that match, in order; and the number of the last that was looked at."""

    found: list[Line]
    last: int
    has_more: bool


@dataclass(frozen=True, slots=True)
class Latest:
    """The latest changes that match; and how far they were looked for, where there may be more before that."""

    found: list[Object]
    back_to: float | None


class Feed:
    """Hands changes on.

    Invariants: every listener gets what matches in the order of its numbers, each once, however slow it is; what is
    kept in memory for all of them together is bounded, and one look serves all who listen. However many there are, one
    thread reads for them what was, one what is new, one the latest that match,
    and one what changes said: nobody else waits for that.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.listeners = 0
        self._recent: deque[Line] = deque(maxlen=RECENT)
        self._from = 0  # behind this number, `_recent` is whole
        self._newest = -1  # the last number that was seen; -1: nobody has looked yet
        self._more = asyncio.Condition()
        self._looking: asyncio.Task[None] | None = None
        self._first_look: asyncio.Task[None] | None = None
        self._one_looks, self._one_replays, self._one_tells = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()
        self._one_looks_back, self._one_asks_last = asyncio.Lock(), asyncio.Lock()
        self._given = 0  # so many numbers, at least
        self._blocks: OrderedDict[int, asyncio.Task[tuple[Object, str]]] = OrderedDict()
        self._is_closed = False

    async def answer(self, request: Request, said: Object) -> Response:
        """What somebody asks for: a stream of events where they accept that, else lines."""
        has = matching(said["host"], said["pattern"])
        accepts = request.headers.get("accept", "")
        if "text/event-stream" in accepts:
            after = said["after"]
            last = request.headers.get("last-event-id", "")
            if last:
                if not (last.isascii() and last.isdecimal() and len(last) < 19):
                    raise Refused(400, "Last-Event-ID is no number of a change.", "Send the last one that you got.")
                after = int(last)
            await self._require_given(after or 0)
            return await self._events(after, has, blocks=said["blocks"])
        await self._require_given(said["after"] or 0)
        limit = min(said["limit"], MAX_WITH_BLOCKS) if said["blocks"] else said["limit"]
        part = BATCH if said["host"] or said["pattern"] else min(limit, BATCH)  # who filters may have to pass many by
        return await self._lines(said["after"] or 0, limit, has, part, blocks=said["blocks"])

    async def _require_given(self, number: int) -> None:
        """Refused if no crawl was given this number yet: it is of another store, and all that comes up to it would be
        passed by without a word."""
        async with self._one_asks_last:  # where many come back at once, the first one asks
            if number > self._given:
                self._given = await self._asked_soon(lambda facts: facts.last_number())
        if number > self._given:
            raise Refused(
                409,
                f"No change has the number {number} yet: the last one that was given is {self._given}.",
                "It is of another store, or this one was begun anew or set back. Begin with after=0.",
            )

    async def _lines(self, after: int, limit: int, has: Has, size: int, *, blocks: bool) -> Response:
        found: list[str] = []
        until, room = time.monotonic() + LINES_SECONDS, MAX_LINES_CHARACTERS

        def is_enough() -> bool:
            return len(found) == limit or (bool(found) and (room <= 0 or time.monotonic() > until))

        for _ in range(MAX_EMPTY):
            part = await self._replay(after, size, has)
            for change, line in part.found:
                if is_enough():
                    break
                found.append((await self._with_blocks(change))[1] if blocks else line)
                after, room = change["number"], room - len(found[-1])
            else:
                after = part.last
                if part.has_more and not is_enough():
                    continue
            break
        body = "".join(f"{line}\n" for line in found)
        # Who filters learns from this where to go on, also where nothing matched.
        return Response(body, media_type="application/x-ndjson", headers={"Afresh-Next": str(after)})

    async def _with_blocks(self, change: Object) -> tuple[Object, str]:
        """A change with what it was about, also as JSON. The latest of these are kept in memory; all who ask for one
        wait for the same answer."""
        number = change["number"]
        task = self._blocks.get(number)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._blocks[number] = asyncio.create_task(self._tell(change))
            task.add_done_callback(_noted)
            while len(self._blocks) > MAX_BLOCKS_KEPT:
                self._blocks.popitem(last=False)
        return await asyncio.shield(task)

    async def _tell(self, change: Object) -> tuple[Object, str]:
        def tell(facts: Facts) -> tuple[Object, str]:
            found = facts.text_of_change(change)
            title = found["title"] or change["title"]  # of that version; where it is not kept, of the page
            told = change | found | bounded(found["blocks"]) | {"title": title}
            return told, as_json(told)

        try:
            async with self._one_tells:
                return await self._asked(tell)
        except TimeoutError:  # it can be told that there was a change, and not what it was
            told = change | {"words": None} | bounded(None)
            return told, as_json(told)

    async def _events(self, after: int | None, has: Has, *, blocks: bool) -> Response:
        if self.listeners >= MAX_LISTENERS:
            raise Refused(503, "Too many listen already.", "Connect again later.", Retry_After="30")
        if self._looking is None or self._looking.done():  # what is newest may be known from long ago
            if self._first_look is None or self._first_look.done():
                self._first_look = asyncio.create_task(self._look())
                self._first_look.add_done_callback(_noted)
            await asyncio.shield(self._first_look)
        stream = self._stream(self._newest if after is None else after, has, blocks=blocks)
        headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    async def _stream(self, after: int, has: Has, *, blocks: bool) -> AsyncIterator[bytes]:
        if self.listeners >= MAX_LISTENERS:  # they came all at once
            yield b"retry: 30000\n\n"
            return
        self.listeners += 1
        self._begin()
        try:
            yield b"retry: 3000\n\n"
            told = time.monotonic()
            while not self._is_closed:
                newest = self._newest
                if newest <= after:
                    try:
                        async with asyncio.timeout(BEAT_SECONDS):
                            await self._wait(after)
                    except TimeoutError:
                        # The place goes with it: who filters need not read all of it again after a break.
                        yield f": alive\nid: {after}\n\n".encode() if after >= 0 else b": alive\n\n"
                    continue
                if after >= self._from and self._recent:
                    found = [each for each in self._behind(after) if has(each[0]["url"])]
                    after = newest
                else:
                    part = await self._replay(after, BATCH, has)
                    found = part.found
                    # Where there is nothing, what was up to the newest of before is gone with its pages.
                    after = part.last if part.last > after else newest
                async for events in self._told_apart(found) if blocks else _at_once(found):
                    yield events
                    told = time.monotonic()
                if time.monotonic() - told > BEAT_SECONDS:  # much is passed by
                    yield f": alive\nid: {after}\n\n".encode()
                    told = time.monotonic()
        except Refused:
            return  # the store cannot be read for a moment: whoever listens comes again with the last number
        finally:
            self.listeners -= 1

    async def _told_apart(self, found: list[Line]) -> AsyncIterator[bytes]:
        for change, _ in found:
            yield event_of(change["number"], (await self._with_blocks(change))[1])
            await asyncio.sleep(0)  # others have their turn, also where all of it is in memory

    def _behind(self, after: int) -> list[Line]:
        """What is in memory behind a number, in order."""
        found = []
        for each in reversed(self._recent):
            if each[0]["number"] <= after:
                break
            found.append(each)
        return found[::-1]

    async def _wait(self, after: int) -> None:
        async with self._more:
            await self._more.wait_for(lambda: self._newest > after or self._is_closed)

    def _begin(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._keep_looking())

    async def _keep_looking(self) -> None:
        while self.listeners:
            with suppress(Refused):  # the store cannot be read for a moment
                await self._look()
            await asyncio.sleep(LOOK_SECONDS)
        self._recent.clear()
        self._newest = -1  # whoever listens next begins with what is newest then

    async def _look(self) -> None:
        """See what is new, for all who listen."""
        async with self._one_looks:
            if self._newest < 0:
                latest = await self._latest(1)
                self._newest = self._from = latest[0]["number"] if latest else 0
            while True:
                part = await self._read(self._newest, BATCH, lambda url: True)
                if not part.found:
                    return
                for each in part.found:
                    if len(self._recent) == RECENT:
                        self._from = self._recent[0][0]["number"]
                    self._recent.append(each)
                self._newest = part.last
                async with self._more:
                    self._more.notify_all()

    async def _replay(self, after: int, limit: int, has: Has) -> Part:
        """What was, for one who asks after the other; in between there is time for all else."""
        async with self._one_replays:
            began = time.monotonic()
            part = await self._read(after, limit, has)
            await asyncio.sleep(REST_TIMES * (time.monotonic() - began))
            return part

    async def _read(self, after: int, limit: int, has: Has) -> Part:
        def read(facts: Facts) -> Part:
            changes = facts.changes(after, limit)
            found = [(change, as_json(change)) for change in changes if has(change["url"])]
            return Part(found, changes[-1]["number"] if changes else after, len(changes) == limit)

        try:
            return await self._asked(read)
        except TimeoutError:
            raise Refused(503, "The answer takes too long.", "Ask for less, or later.", Retry_After="10") from None

    async def _asked(self, question: Callable[[Facts], Told]) -> Told:
        try:
            return await self.reading.ask_apart(question)
        except AfreshError as error:
            raise Refused(503, error.message, error.hint, Retry_After="10") from None

    async def latest(self, limit: int, has: Has) -> Latest:
        """The latest changes that match, the newest first.

        Of one host they may lie far back: they are looked for one part after the other, for one who asks after the
        other, until there are enough, or the search takes too long.
        """
        until = time.monotonic() + LOOK_BACK_SECONDS
        try:
            part = await self.reading.ask(lambda facts: facts.latest_of(has, limit, None, BATCH))
            found, looked_at = part.found, BATCH
            while part.time is not None and len(found) < limit:
                if looked_at >= MAX_LOOKED_AT:
                    return Latest(found, part.time)
                try:
                    async with asyncio.timeout(until - time.monotonic()):
                        part = await self._before(part.last, limit - len(found), has)
                except TimeoutError:
                    return Latest(found, part.time)
                found, looked_at = found + part.found, looked_at + LOOK_BACK
        except AfreshError as error:
            raise Refused(503, error.message, error.hint, Retry_After="10") from None
        return Latest(found, None)

    async def _before(self, number: int, limit: int, has: Has) -> LookBack:
        async with self._one_looks_back:
            began = time.monotonic()
            part = await self.reading.ask_apart(lambda facts: facts.latest_of(has, limit, number, LOOK_BACK))
            await asyncio.sleep(REST_TIMES * (time.monotonic() - began))
            return part

    async def _latest(self, limit: int) -> list[Object]:
        return await self._asked_soon(lambda facts: facts.latest(limit))

    async def _asked_soon(self, question: Callable[[Facts], Told]) -> Told:
        try:
            return await self.reading.ask(question)
        except AfreshError as error:
            raise Refused(503, error.message, error.hint, Retry_After="10") from None

    async def told(self, changes: list[Object]) -> list[Object]:
        """The same with what they were about, as far as that is soon known; who asks again gets the rest."""
        until, found = time.monotonic() + TELLING_SECONDS, list[Object]()
        for each in changes:
            try:
                async with asyncio.timeout(max(until - time.monotonic(), 0.0)):
                    found.append((await self._with_blocks(each))[0])
            except TimeoutError:
                found.append(each)
        return found

    async def close(self) -> None:
        """End all streams, and look no more."""
        self._is_closed = True
        async with self._more:
            self._more.notify_all()
        if self._looking is not None:
            self._looking.cancel()


def bounded(pairs: list[list[str | None]] | None) -> Object:
    """Blocks of a change, as many as there is room for, and whether there are more.

    >>> bounded([["old", "new"], [None, "x" * MAX_BLOCK_CHARACTERS]])
    {'blocks': [['old', 'new']], 'blocks_left_out': 1}
    """
    if pairs is None:
        return {"blocks": None, "blocks_left_out": 0}
    room, found = MAX_BLOCK_CHARACTERS, []
    for pair in pairs:
        room -= sum(len(text or "") for text in pair)
        if room < 0:
            break
        found.append(pair)
    return {"blocks": found, "blocks_left_out": len(pairs) - len(found)}


def event_of(number: int, line: str) -> bytes:
    """A change as an event, whose id is its number."""
    return f"id: {number}\nevent: change\ndata: {line}\n\n".encode()


def _noted(task: asyncio.Task[Any]) -> None:
    """Whoever waits hears of what went wrong; where nobody waits any more, it is of no interest."""
    if not task.cancelled():
        task.exception()


async def _at_once(found: list[Line]) -> AsyncIterator[bytes]:
    if found:
        yield b"".join(event_of(change["number"], line) for change, line in found)


def matching(host: str, pattern: str) -> Has:
    """What is wanted of changes.

    >>> matching("", "https://a.example/n*")("https://a.example/news")
    True
    >>> matching("a.example", "")("https://b.example/")
    False
    """
    glob = Glob(pattern) if pattern else None

    def has(url: str) -> bool:
        if host and not (url.partition("://")[2].partition("/")[0] == host or url.startswith(f"{host}/")):
            return False
        return glob is None or glob.matches(url)

    return has


def atom(latest: Latest, name: str, base: str, host: str, pattern: str, now: float) -> str:
    """The latest changes as an Atom feed (RFC 4287) with a name of its own, whose links begin with `base`."""
    changes = latest.found
    query = urlencode({name: value for name, value in (("host", host), ("pattern", pattern)) if value})
    of = f" of {host or pattern}" if host or pattern else ""
    own = f"{base}/changes.atom" + (f"?{query}" if query else "")
    updated = changes[0]["time"] if changes else now
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<title>{_text(f'Changes{of}')}</title><id>{_text(name)}</id><updated>{_moment(updated)}</updated>",
        f'<link rel="self" href={quoteattr(_text(own))}/><author><name>afresh</name></author>',
    ]
    if latest.back_to is not None:
        parts.append(f"<subtitle>{_text(looked_back_to(latest.back_to))}</subtitle>")
    for change in changes:
        url = str(change["url"])
        link = f"{base}/page?url={quote(url, safe='')}"
        title = _text(f"{'back' if change['back'] else change['change']}: {change['title'] or url}")
        parts.append(
            f"<entry><title>{title}</title><id>{entry_id(change)}</id><updated>{_moment(change['time'])}</updated>"
            f'<link href={quoteattr(_text(link))}/><content type="text">{_text(content_of(change))}</content></entry>'
        )
    return "\n".join([*parts, "</feed>\n"])


def feed_id(identity: str, host: str, pattern: str) -> str:
    """The name of a collection's feed, by whatever name or address the console was asked.

    >>> feed_id("one", "", "") == feed_id("one", "", "") != feed_id("two", "", "")
    True
    """
    return uuid5(NAMESPACE_URL, f"afresh changes\n{identity}\n{host}\n{pattern}").urn


def entry_id(change: Object) -> str:
    """The name of a change in feeds, by whatever name or address the console was asked.

    >>> change = {"number": 1, "url": "https://a.example/", "time": 5.0}
    >>> entry_id(change) == entry_id(dict(change)) != entry_id(change | {"time": 6.0})
    True
    """
    return uuid5(NAMESPACE_URL, f"{change['url']}\n{change['time']!r}\n{change['number']}").urn


def content_of(change: Object) -> str:
    """What an entry says: the page, how many words, and the first blocks.

    >>> change = {"url": "https://a.example/", "words": {"removed": 1, "added": 2}, "blocks": [["old", "new"]]}
    >>> content_of(change | {"blocks_left_out": 0}).splitlines()
    ['https://a.example/', '1 word gone, 2 words new', '- old', '+ new']
    """
    lines, words, pairs = [str(change["url"])], change.get("words"), change.get("blocks") or []
    if words:
        lines.append(f"{show_count(words['removed'], 'word')} gone, {show_count(words['added'], 'word')} new")
    for before, after in pairs[:ENTRY_BLOCKS]:
        lines += [f"- {_short(before)}"] * (before is not None) + [f"+ {_short(after)}"] * (after is not None)
    more = len(pairs[ENTRY_BLOCKS:]) + change.get("blocks_left_out", 0)
    return "\n".join([*lines, f"… {show_count(more, 'more block')}"] if more else lines)


def looked_back_to(when: float) -> str:
    """Where a search for the latest changes ended.

    >>> looked_back_to(0.0)
    'Looked back to 1970-01-01T00:00:00Z: earlier changes may match, too.'
    """
    since = "" if math.isnan(when) else f" to {_moment(when)}"
    return f"Looked back{since}: earlier changes may match, too."


def _short(text: str | None) -> str:
    said = " ".join((text or "").split())
    return said if len(said) <= ENTRY_BLOCK else f"{said[: ENTRY_BLOCK - 1]}…"


def _text(text: str) -> str:
    """Text that XML can hold."""
    return escape("".join(each if _fits(each) else "?" for each in text))


def _fits(character: str) -> bool:
    return character == "\n" or (
        (" " <= character < "\ud800" or character > "\udfff") and character not in "\ufffe\uffff"
    )


def _moment(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
