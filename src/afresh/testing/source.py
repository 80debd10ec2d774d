"""What every source must do: a battery for those that ship and for yours."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from afresh.detect.fingerprint import mark
from afresh.sources import Known, Later, Source
from afresh.sources.base import MAX_LEADS, MAX_META_BYTES
from afresh.types import Answer, Blame, Fetched

PATIENCE = 20.0  # seconds, for all that one `get` may need
MAX_TURNS = 20  # that a source may want before it answers
_NONSENSE = ["", " ", "\0", "nobody-knows:this", "//", "\udcff", "a" * 100_000, "http://[", "file:", "%00", "…"]


@dataclass(frozen=True, slots=True)
class SourceWorld:
    """A source and what it looks at, which the battery changes."""

    source: Source
    text: str  # what a person writes for something that is there
    foreign: str  # what is none of this source's
    change: Callable[[], object]  # the thing has another content from now on
    remove: Callable[[], object]  # and is not there any more; None as an answer: it is never gone
    missing: str = ""  # the text of something that was never there; "": there is no such thing


def check_source(make: Callable[[], SourceWorld]) -> None:
    """Try all that `Source` promises; AssertionError says which promise was broken. `make` builds a fresh world."""
    asyncio.run(_check(make()))


def _require(holds: bool, promise: str) -> None:
    if not holds:
        raise AssertionError(promise)


async def _check(world: SourceWorld) -> None:
    source = world.source
    _require(isinstance(source.kind, str) and bool(source.kind), "kind is the name of a kind of thing")
    key = _names(world)
    first = await _got(source, key, Known())
    _require(first.answered is Answer.NEW, f"without a copy the content must come, not {first.answered} {first.reason}")
    _check_fetched(source, key, first)
    known = Known(replace(first.validators, fingerprint=mark(first.body)), first.started, first.started)
    again = await _got(source, key, known)
    _check_fetched(source, key, again)
    same = again.answered is Answer.SAME or (again.answered is Answer.NEW and again.body == first.body)
    _require(same, f"what did not change is the same, not {again.answered} {again.reason}")
    world.change()
    changed = await _got(source, key, known)
    _check_fetched(source, key, changed)
    _require(changed.answered is Answer.NEW, f"a change is new content, not {changed.answered}")
    _require(changed.body != first.body, "a change is new content")
    both = await asyncio.gather(_got(source, key, Known()), _got(source, key, Known()))
    _require(all(each.body == changed.body for each in both), "two may be asked for at once")
    asked = asyncio.ensure_future(source.get(key, Known()))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked], timeout=PATIENCE)
    _require(asked.done(), "a get that is cancelled ends")
    world.remove()
    gone = await _got(source, key, known)
    _check_fetched(source, key, gone)
    _require(gone.answered is Answer.GONE, f"what was removed is gone, not {gone.answered} {gone.reason}")
    if world.missing:
        never = source.key(world.missing)
        if never is None:
            raise AssertionError(f"{world.missing} is a key of its own")
        missing = await _got(source, never, Known())
        _require(missing.answered not in (Answer.NEW, Answer.SAME), "what was never there has no content")
    await source.close()
    await source.close()


def _names(world: SourceWorld) -> str:
    """Keys, lanes and purses; the key of the world's text."""
    source, key = world.source, world.source.key(world.text)
    if key is None:
        raise AssertionError(f"{world.text} is a key of its own")
    _require(source.key(key) == key, "key is idempotent")
    _require(bool(key.partition(":")[1]), "a key begins with a scheme")
    _require(source.key(world.foreign) is None, f"{world.foreign} is no key of its own")
    for nonsense in _NONSENSE:
        made = source.key(nonsense)
        _require(made is None or source.key(made) == made, f"key is idempotent also of {nonsense[:20]!r}")
    for name, of in (("lane", source.lane), ("purse", source.purse)):
        _require(bool(of(key)) and of(key) == of(key), f"a key has one {name}")
    return key


async def _got(source: Source, key: str, known: Known) -> Fetched:
    """What comes, once the lane has had its turns for other things."""
    for _ in range(MAX_TURNS):
        async with asyncio.timeout(PATIENCE):
            got = await source.get(key, known)
        if not isinstance(got, Later):
            return got
        _require(got.gap >= 0, "a gap is a time")
        if got.failure is not None:
            return got.failure
        await asyncio.sleep(min(got.gap, 0.1))
    raise AssertionError(f"{key} is put off again and again")


def _check_fetched(source: Source, key: str, got: Fetched) -> None:
    _require(got.url == key, "an answer is about what was asked")
    _require(got.took >= 0, "a fetch takes time")
    _require(got.started > 0, "and began at some moment")
    cost = got.cost
    _require(min(cost.seconds, cost.bytes, cost.calls, cost.money) >= 0, "a cost is not below nothing")
    _require(cost.calls > 0, "something was asked, and that is a cost")
    _require(got.blame is None or isinstance(got.blame, Blame), "blame is a Blame")
    _check_meta(got.meta)
    _require(len(got.leads) <= MAX_LEADS, f"at most {MAX_LEADS} leads")
    for lead in got.leads:
        _require(source.key(lead) == lead, f"{lead} is led to, and no key of this source")
    if got.answered is not Answer.NEW:
        _require(not got.body, f"{got.answered} has no content")


def _check_meta(meta: Mapping[str, str]) -> None:
    _require(all(isinstance(each, str) for pair in meta.items() for each in pair), "meta is text")
    size = sum(len(name.encode()) + len(value.encode()) for name, value in meta.items())
    _require(size <= MAX_META_BYTES, f"meta has {size} bytes")
