"""Results that another process has got itself, because somebody was waiting: they go through the inbox like evidence.

A runner learns from one as from a crawl of its own. Where none runs, the result becomes the copy.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import zstandard

from afresh.store.base import MAX_ENTRY_BYTES, Entry, PageState, Record
from afresh.types import Answer, Copy, Crawl, Fetched, Outcome, Page, Spent, Validators

if TYPE_CHECKING:
    from afresh.store.base import Store

GOT = "got"  # the kind of such an entry
MAX_BODY = 64 << 20  # bytes, unpacked


@dataclass(frozen=True, slots=True)
class Handed:
    """A page and what was got of it, or what was spent on it in vain."""

    page: Page
    fetched: Fetched

    @property
    def fingerprint(self) -> int:
        """Of the content, reckoned by who got it."""
        return self.fetched.validators.fingerprint

    @property
    def brings_content(self) -> bool:
        """Whether there is a result; else it says what was spent in vain."""
        return self.fetched.answer is Answer.NEW


def of_result(page: Page, fetched: Fetched, received: float) -> Entry | None:
    """A result as an entry, with its fingerprint in the validators; None if it is too large for one.

    Without a fingerprint it says what was spent alone.
    """
    body = zstandard.ZstdCompressor(level=3).compress(fetched.body)
    said = {
        "url": page.url,
        "host": page.host,
        "depth": page.depth,
        "started": fetched.started,
        "took": fetched.took,
        "type": fetched.content_type,
        "fingerprint": fetched.validators.fingerprint,
        "spent": [fetched.cost.seconds, fetched.cost.bytes, fetched.cost.calls, fetched.cost.money],
        "meta": dict(fetched.meta),
        "body": base64.b85encode(body).decode(),
    }
    text = json.dumps([said])
    return Entry(GOT, text, received) if len(text) <= MAX_ENTRY_BYTES else None


def of_cost(page: Page, fetched: Fetched, received: float) -> list[Entry]:
    """What was spent without a result that could be handed over, as entries."""
    entry = of_result(page, Fetched(page.url, fetched.started, fetched.took, spent=fetched.cost), received)
    return [] if entry is None else [entry]


def result_in(entry: Entry) -> Handed:
    """What an entry holds; ValueError and the like if that makes no sense."""
    (said,) = json.loads(entry.body)
    packed = base64.b85decode(str(said["body"]))
    try:
        size = zstandard.frame_content_size(packed)
        if not 0 <= size <= MAX_BODY:
            raise ValueError("a body of that size")
        body = zstandard.ZstdDecompressor().decompress(packed) if size else b""
    except zstandard.ZstdError as error:
        raise ValueError("a body that cannot be unpacked") from error
    seconds, received, calls, money = (float(each) for each in said["spent"])
    started, took, fingerprint = float(said["started"]), float(said["took"]), int(said["fingerprint"])
    if not (0 < started <= entry.received + 1.0 and 0 <= took < 1e6 and 0 <= fingerprint < 1 << 64):
        raise ValueError("a moment, a time or a mark that cannot be")
    if not all(0 <= each < 1e15 for each in (seconds, received, calls, money)):
        raise ValueError("a cost that cannot be")
    meta: Mapping[str, str] = {str(name): str(value) for name, value in said["meta"].items()}
    url = str(said["url"])
    fetched = Fetched(
        url,
        started,
        took,
        body=body,
        content_type=str(said["type"]),
        validators=Validators(fingerprint=fingerprint),
        answer=Answer.NEW if fingerprint else Answer.FAILED,
        received=int(received),
        spent=Spent(seconds, int(received), calls, money),
        meta=meta,
    )
    return Handed(Page(url, str(said["host"]), started, depth=int(said["depth"])), fetched)


def record_of(handed: Handed, store: "Store") -> Record | None:
    """The result as the copy, where no runner learns from it; None if the store has a newer one."""
    fetched, url = handed.fetched, handed.page.url
    if not handed.brings_content:
        return None
    before = store.state(url) or PageState(handed.page)
    if before.checked is not None and before.checked >= fetched.started:
        return None
    outcome = Outcome.NEW
    if before.validators.fingerprint:
        same = before.validators.fingerprint == handed.fingerprint
        outcome = Outcome.UNCHANGED if same else Outcome.CHANGED
    elapsed = None if before.checked is None else fetched.started - before.checked
    crawl = Crawl(url, fetched.started, outcome, elapsed, took=fetched.took, size=len(fetched.body))
    started = fetched.started
    copy = Copy(url, fetched.body, fetched.content_type, started, started, fetched.validators, fetched.meta)
    after = replace(
        before,
        validators=fetched.validators,
        fetched=started,
        checked=started,
        signals=0,
        crawls=before.crawls + 1,
        changes=before.changes + (outcome is Outcome.CHANGED),
        failures=0,
    )
    return Record(crawl, after, copy)
