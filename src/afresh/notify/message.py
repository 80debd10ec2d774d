"""What a message says of changes, as JSON for programs and as text for people; all of it bounded."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from afresh.detect.diff import NEW, OLD, SAME, Piece, Row, counted
from afresh.notify.rules import FAILING, WELL
from afresh.reading.title import one_line, title_in
from afresh.types import BACK, Copy, Crawl, Outcome
from afresh.units import show_count

MAX_BLOCKS = 10  # of a change that are told,
MAX_BLOCK = 300  # with so many characters each
FULL_ITEMS = 50  # changes of a digest that are told as if they came alone; those beyond it are told so briefly:
BRIEF_BLOCKS, BRIEF_BLOCK = 3, 160
MAX_SUBJECT = 240
MAX_REASON = 200
NEAR = 40  # characters of what stays, on each side of what differs
MAX_LINE = 2_000  # characters, of a text for people
MAX_SHOWN = 100  # changes of a digest whose text is shown to people; of the others the address
_BRACKETS = {SAME: ("", ""), OLD: ("[-", "-]"), NEW: ("{+", "+}")}


@dataclass(frozen=True, slots=True)
class Item:
    """One change."""

    url: str
    host: str
    number: int
    time: float
    change: str
    significance: float = 0.0
    title: str = ""
    removed: int = 0  # words
    added: int = 0
    blocks: tuple[tuple[str | None, str | None], ...] = ()  # text before and after
    lines: tuple[str, ...] = ()  # the same for people
    more: int = 0  # blocks that differ and are not here
    back: bool = False  # it was gone, and is as it was before
    reason: str = ""  # why a page fails
    failures: int = 0  # crawls in a row that failed, of a page that fails, or is well again

    def facts(self) -> dict[str, Any]:
        """For programs."""
        return {
            "url": self.url,
            "host": self.host,
            "number": self.number,
            "time": self.time,
            "change": self.change,
            "back": self.back,
            "significance": self.significance,
            "title": self.title,
            "words": {"removed": self.removed, "added": self.added},
            "blocks": [{"before": before, "after": after} for before, after in self.blocks],
            "lines": list(self.lines),
            "more_blocks": self.more,
            "reason": self.reason,
            "failures": self.failures,
        }

    def brief(self) -> "Item":
        """The same in fewer words, for a long digest."""
        few, lines = self.blocks[:BRIEF_BLOCKS], self.lines[:BRIEF_BLOCKS]
        blocks = tuple((cut(before, BRIEF_BLOCK), cut(after, BRIEF_BLOCK)) for before, after in few)
        shown = tuple(cut(line, 2 * BRIEF_BLOCK) or "" for line in lines)
        return replace(self, blocks=blocks, lines=shown, more=self.more + len(self.blocks) - len(few))

    @classmethod
    def recalled(cls, facts: Mapping[str, Any]) -> "Item":
        """The same again."""
        words, blocks = facts["words"], tuple((each["before"], each["after"]) for each in facts["blocks"])
        names = ("url", "host", "number", "time", "change", "significance", "title")
        said = {name: facts[name] for name in names}
        lines, more = tuple(facts["lines"]), facts["more_blocks"]
        said |= {name: facts[name] for name in ("back", "reason", "failures") if name in facts}  # since later versions
        return cls(**said, removed=words["removed"], added=words["added"], blocks=blocks, lines=lines, more=more)


@dataclass(frozen=True, slots=True)
class Letter:
    """A message as it is handed to a channel."""

    id: str
    rule: str
    made: float
    items: Sequence[Item]
    test: bool = False

    def to_json(self) -> bytes:
        """For programs: the same bytes at each attempt."""
        kind = "test" if self.test else "page.changed" if len(self.items) == 1 else "digest"
        when = datetime.fromtimestamp(self.made, UTC).isoformat(timespec="seconds")
        changes = [item.facts() for item in self.items]
        said = {"type": kind, "id": self.id, "timestamp": when, "rule": self.rule, "changes": changes}
        return json.dumps(said).encode()

    @property
    def subject(self) -> str:
        """One line for people."""
        if self.test:
            return one_line(f"afresh {self.rule}: a test", MAX_SUBJECT)
        if len(self.items) == 1:
            item = self.items[0]
            return one_line(f"afresh {self.rule}: {item.title or item.url} {happened(item)}", MAX_SUBJECT)
        hosts = sorted({item.host for item in self.items})
        where = hosts[0] if len(hosts) == 1 else f"{len(hosts)} hosts"
        return one_line(f"afresh {self.rule}: {len(self.items):,} changes on {where}", MAX_SUBJECT)

    @property
    def text(self) -> str:
        """For people."""
        if self.test:
            return f"This is a test of the rule {self.rule}. Messages about changes arrive like this one.\n"
        return "\n".join(one_line(line, MAX_LINE) for line in self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        for nth, item in enumerate(self.items):
            if nth:
                yield ""
            yield f"{item.title} {happened(item)}" if item.title else happened(item).capitalize()
            yield item.url
            if item.failures:
                yield f"{'After ' if item.change == WELL else ''}{show_count(item.failures, 'crawl')} that failed"
            elif nth < MAX_SHOWN and item.change != Outcome.NEW and not item.back:  # all of it is new
                yield from item.lines
                if item.more:
                    yield f"… {item.more:,} more blocks"


def item_of(
    crawl: Crawl,
    host: str,
    number: int,
    *,
    before: Copy | None,
    after: Copy | None,
    rows: Sequence[Row] | None,
    title: str = "",
) -> Item:
    """What is told of a change, given what is known of its text; `title` is that of the page, where no copy says it."""
    shown = after or before
    differing = [row for row in rows or () if row.kind != SAME]
    removed, added = counted(differing)
    first = differing[:MAX_BLOCKS]
    blocks = tuple((cut(row.before, MAX_BLOCK), cut(row.after, MAX_BLOCK)) for row in first)
    return Item(
        url=crawl.url,
        host=host,
        number=number,
        time=crawl.time,
        change=crawl.outcome.value,
        significance=round(crawl.significance, 6),
        title=title if shown is None else title_in(shown.body, shown.content_type) or title,
        removed=removed,
        added=added,
        blocks=blocks,
        lines=tuple(map(_line, first)),
        more=len(differing) - len(first),
        back=crawl.reason == BACK,
    )


def trouble_item(crawl: Crawl, host: str, number: int, kind: str, failures: int, why: str, title: str) -> Item:
    """What is told of a page that fails, for a reason in words, or is well again."""
    reason = one_line(crawl.reason, MAX_REASON) if kind == FAILING else ""
    lines = (one_line(why, MAX_REASON),) if why else ()
    told = {"title": title, "lines": lines, "reason": reason, "failures": failures}
    return Item(crawl.url, host, number, crawl.time, kind, **told)  # type: ignore[arg-type]


def cut(text: str | None, longest: int) -> str | None:
    """Text of bounded length; None stays None."""
    return text if text is None or len(text) <= longest else f"{text[: longest - 1]}…"


def happened(item: Item) -> str:
    """What happened to a page, in a few words."""
    if item.back:
        return "is back"
    if item.change == FAILING:
        return f"fails: {item.lines[0]}" if item.lines else "fails"
    if item.change == WELL:
        return "is well again"
    if item.change == Outcome.CHANGED and (item.removed or item.added):
        gone = f"{item.removed:,} word{'' if item.removed == 1 else 's'} gone"
        return f"changed: {gone}, {item.added:,} new"
    return {"new": "is new", "gone": "is gone"}.get(item.change, "changed")


def _line(row: Row) -> str:
    """A block that differs, for people; what differs in it is in brackets."""
    if row.kind != "changed":
        sign = "-" if row.kind == "removed" else "+"
        return f"{sign} {one_line((row.before if row.after is None else row.after) or '', MAX_BLOCK)}"
    last = len(row.pieces) - 1
    parts = [
        f"{_BRACKETS[each.kind][0]}{_near(each, nth == 0, nth == last)}{_BRACKETS[each.kind][1]}"
        for nth, each in enumerate(row.pieces)
    ]
    return f"~ {one_line(''.join(parts), 2 * MAX_BLOCK)}"


def _near(piece: Piece, first: bool, last: bool) -> str:
    """What stays the same in a long block, as far as it is near to what differs."""
    text = piece.text
    if piece.kind != SAME or len(text) <= 3 * NEAR:
        return text
    before, after = ("" if first else text[:NEAR]), ("" if last else text[-NEAR:])
    return f"{before}…{after}"
