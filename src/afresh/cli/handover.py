"""How a command hands wishes and evidence over: to the runner through the inbox, or to the store if none runs."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from afresh.errors import InboxFull, StoreLocked
from afresh.store import Entry, LastingStore
from afresh.store.messages import EVIDENCE, carry_out, drain
from afresh.store.socket_file import wake

TAKEN_SECONDS = 2.0  # how long a command waits to see its wish taken up; it is safe before
STUCK_SECONDS = 30.0  # how long it waits for room in a full inbox that no runner empties
PIECE = 50  # entries at a time


@dataclass(frozen=True, slots=True)
class Handed:
    """What became of it."""

    running: bool  # somebody runs on the store
    taken: bool  # it has taken effect; otherwise it is safe in the inbox
    new_pages: int = 0
    new_entries: int = 0  # that were not sent before


def hand_over(kept: LastingStore, entries: Sequence[Entry]) -> Handed:
    """Make entries durable. Without a runner, wishes take effect immediately; evidence waits for a runner."""
    try:
        kept.claim(brief=True)
    except StoreLocked:
        new = _post(kept, entries)
        return Handed(running=True, taken=_taken(kept, TAKEN_SECONDS), new_entries=new)
    drain(kept)  # what others wanted before
    evidence = [entry for entry in entries if entry.kind in EVIDENCE]
    new = kept.post(evidence) if evidence else 0
    wishes = [entry for entry in entries if entry.kind not in EVIDENCE]
    pages = sum(carry_out(entry, kept) for entry in wishes)
    new = new if evidence else len(wishes)
    return Handed(running=False, taken=not evidence, new_pages=pages, new_entries=new)


def _post(kept: LastingStore, entries: Sequence[Entry]) -> int:
    """Post in pieces; where there is no room, wait for the runner to make some."""
    new = 0
    for first in range(0, len(entries), PIECE):
        piece = entries[first : first + PIECE]
        while True:
            try:
                new += kept.post(piece)
                break
            except InboxFull:
                before = kept.totals().inbox_bytes
                if not _shrinks(kept, before):
                    raise
        wake(kept.path)
    return new


def _shrinks(kept: LastingStore, before: int) -> bool:
    deadline = time.monotonic() + STUCK_SECONDS
    while time.monotonic() < deadline:
        time.sleep(0.1)
        if kept.totals().inbox_bytes < before:
            return True
    return False


def _taken(kept: LastingStore, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while kept.totals().inbox_entries:
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True


def said_of(handed: Handed) -> str:
    """What to add to a sentence about it, in a line of its own: nothing where all is as it should be."""
    if handed.taken:
        return ""
    if handed.running:
        return "\nIt is safe in the inbox; the runner is busy and will take it up."
    return "\nIt is safe in the inbox and takes effect when `afresh run` starts."
