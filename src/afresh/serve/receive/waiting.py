"""Submissions that wait for their key files: a few of each host, apart by key, so that a bogus one displaces no other.

Who submitted is a network address. Where a host has no room, the latest of whoever has most of its places makes room;
where all have one, the next one is refused.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from xxhash import xxh3_64_hexdigest

from afresh.signals.indexnow import MAX_URLS, Submission

WAITING = "indexnow waiting "  # before a host: under this name the store keeps what waits for a proof
MAX_HOSTS = 100
MAX_OF_HOST = 4
MAX_BYTES = 1 << 20  # of one submission
MAX_ALL_BYTES = 64 << 20

Proof = tuple[str, str, str]  # host, key, key file


@dataclass(frozen=True, slots=True)
class Waits:
    """A submission, since when it waits, who sent it, and how much it takes."""

    submission: Submission
    since: float
    sent_by: str = ""

    @property
    def text(self) -> str:
        """As it is kept."""
        said = self.submission
        return json.dumps([said.key, said.key_file, said.urls, self.since, self.sent_by])

    @property
    def name(self) -> str:
        """Under which it is kept."""
        said = self.submission
        return f"{WAITING}{said.host} {xxh3_64_hexdigest(f'{said.key} {said.key_file}'.encode())}"


def proof_of(submission: Submission) -> Proof:
    """What makes submissions one and the same sender's."""
    return submission.host, submission.key, submission.key_file


class Waiting:
    """All that wait."""

    def __init__(self) -> None:
        self._of: dict[Proof, Waits] = {}
        self._sizes: dict[Proof, int] = {}

    @property
    def hosts(self) -> list[str]:
        """Hosts that something waits for."""
        return sorted({host for host, _, _ in self._of})

    def proofs(self) -> set[Proof]:
        """What is waited for."""
        return set(self._of)

    def get(self, proof: Proof) -> Waits | None:
        """What waits for a proof."""
        return self._of.get(proof)

    def room_for(self, submission: Submission, sent_by: str, now: float) -> tuple[Waits, Waits | None] | None:
        """What would wait with it, and what would make room for it; None: there is no room.

        What was sent with the same key before waits together with it, since the first of them came.
        """
        proof, known = proof_of(submission), self._of.get(proof_of(submission))
        if known is not None:
            urls = tuple(dict.fromkeys((*known.submission.urls, *submission.urls)))[:MAX_URLS]
            return self._fits(proof, replace(known, submission=replace(submission, urls=urls)), None)
        mine = [waits for each, waits in self._of.items() if each[0] == submission.host]
        if not mine and len(self.hosts) >= MAX_HOSTS:
            return None
        leaves = None
        if len(mine) >= MAX_OF_HOST:
            places = Counter(waits.sent_by for waits in mine)
            places[sent_by] += 1
            most, count = places.most_common(1)[0]
            if count < 2 or not any(waits.sent_by == most for waits in mine):
                return None
            leaves = max((waits for waits in mine if waits.sent_by == most), key=lambda waits: waits.since)
        return self._fits(proof, Waits(submission, now, sent_by), leaves)

    def _fits(self, proof: Proof, waits: Waits, leaves: Waits | None) -> tuple[Waits, Waits | None] | None:
        size = len(waits.text)
        others = sum(self._sizes.values()) - self._sizes.get(proof, 0)
        return None if size > MAX_BYTES or others + size > MAX_ALL_BYTES else (waits, leaves)

    def put(self, waits: Waits) -> None:
        """It waits."""
        proof = proof_of(waits.submission)
        self._of[proof], self._sizes[proof] = waits, len(waits.text)

    def drop(self, waits: Waits) -> None:
        """It waits no more."""
        self._of.pop(proof_of(waits.submission), None)
        self._sizes.pop(proof_of(waits.submission), None)


def kept(names: Iterable[str], get: Callable[[str], str | None], now: float) -> list[tuple[str, Waits]]:
    """What waited before a restart, each under its name; one of an earlier version is one of its host."""
    found = []
    for name in list(names)[: MAX_HOSTS * MAX_OF_HOST]:
        host = name.removeprefix(WAITING).partition(" ")[0]
        with suppress(ValueError, TypeError):
            key, file, urls, since, *sent_by = json.loads(get(name) or "")
            submission = Submission(host, str(key), str(file), tuple(map(str, urls)))
            found.append((name, Waits(submission, min(float(since), now), str(sent_by[0]) if sent_by else "")))
    return found
