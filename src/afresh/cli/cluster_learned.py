"""What the workers of a cluster have learned, as one: of their senders, and of how true their statements were.

Each keeps what it learned under its own number, and went on from what one process had learned before. A host belongs to
one worker, so the grades there are that worker's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from afresh.estimate import Calibration, Senders
from afresh.estimate.grades import Grade, Grades
from afresh.estimate.senders import SENDERS, SENDERS_BEFORE
from afresh.store import understood
from afresh.store.postgres import Postgres
from afresh.store.slices import slice_of_host

BEFORE = -1  # the number of what was learned before there were workers
CALIBRATION, GRADES = "calibration", "grades"  # the names under which they are kept


def calibration_of_all(kept: object) -> dict[str, Any] | None:
    """How far the statements of all workers came true; None if none of them has checked any."""
    texts = _texts(kept, CALIBRATION) if isinstance(kept, Postgres) else {}
    if not any(part > BEFORE for part in texts):
        return None
    told = {part: Calibration.from_text(text) for part, text in texts.items()}
    return Calibration.together(told.pop(BEFORE, Calibration()), told.values()).summary()


@dataclass(frozen=True, slots=True)
class Learned:
    """What each worker had learned of senders when it last wrote that down, and who holds which slices."""

    senders: dict[int, Senders]
    graded: dict[int, str]  # as it was written: to read all takes a while
    owners: dict[int, int]

    def of_senders(self) -> list[dict[str, Any]]:
        """Every sender, and what the workers that hold hosts go by."""
        before, holders = self.senders.get(BEFORE) or Senders(), set(self.owners.values())
        workers = {part: learned for part, learned in self.senders.items() if part > BEFORE}
        # Who has no hosts any more goes by nothing. Where that is so of all, it is what is known.
        present = [learned for part, learned in workers.items() if part in holders]
        asked = present or list(workers.values())
        return [
            {**facts, "workers": sum(facts["sender"] in learned.names for learned in asked)}
            for facts in Senders.together(before, asked).summary()
        ]

    def of_hosts(self) -> Iterator[tuple[Grade, float | None, dict[str, Any]]]:
        """Every grade, the sender's weight on that host as it was learned, and whose grade it is.

        It is that of the worker that holds the host. Where that worker has none, it is the latest of another worker,
        and marked as that.
        """
        graded = understood(GRADES, lambda: {part: Grades.from_text(text) for part, text in self.graded.items()})
        by_host: dict[str, dict[int, list[Grade]]] = {}
        for part, grades in graded.items():
            for grade in grades.all():
                by_host.setdefault(grade.host, {}).setdefault(part, []).append(grade)
        for host, parts in by_host.items():
            owner = self.owners.get(slice_of_host(host))
            # Who has written nothing down yet goes by what was known before.
            own = owner if owner in graded else None if owner is None else BEFORE
            part = own if own in parts else max(parts, key=lambda each: (graded[each].latest(host), -each))
            learned = self._learned(part if owner is None else owner)
            whose = {"worker": None if part == BEFORE else part, "former": part != own}
            for grade in parts[part]:
                known = grade.sender in learned.names
                yield grade, learned.weight(host, learned.number(grade.sender)) if known else None, whose

    def _learned(self, part: int) -> Senders:
        return self.senders.get(part) or self.senders.get(BEFORE) or Senders()


def learned_by_workers(kept: object) -> Learned | None:
    """What workers have learned of senders; None if none of them has written anything of that."""
    if not isinstance(kept, Postgres):
        return None
    graded, learned = _texts(kept, GRADES), _texts(kept, SENDERS_BEFORE) | _texts(kept, SENDERS)
    if not any(part > BEFORE for part in (*graded, *learned)):
        return None
    return Learned({part: Senders.from_text(text) for part, text in learned.items()}, graded, kept.owners())


def _texts(kept: Postgres, name: str) -> dict[int, str]:
    """A named value, by whose it is."""
    return {part: values[name] for part, values in kept.values_of_parts(name).items() if name in values}
