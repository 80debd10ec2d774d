"""Somebody who looks at pages again and again and remembers what is noise: detection without a daemon."""

from dataclasses import dataclass, field

from afresh.detect import Detector, Habits, judge, learn, mark
from afresh.types import Copy, Fetched, Validators, Verdict


@dataclass
class Visitor:
    """Remembers pages by their names, and hosts; whatever is learned passes through its stored form each time."""

    hosts: dict[str, Habits] = field(default_factory=dict)
    pages: dict[str, tuple[Habits, bytes, float]] = field(default_factory=dict)

    def visit(self, page: str, body: bytes, now: float, *, host: str = "") -> Verdict:
        """Look at a page at a moment; what came of it."""
        shared = self.hosts.setdefault(host, Habits())
        habits, old, then = self.pages.get(page, (Habits(), b"", 0.0))
        known = Validators(fingerprint=mark(old)) if old else Validators()
        copy = Copy(page, old, "text/html", then, then)
        fetched = Fetched(page, now, 0.1, 200, body, "text/html")
        look = Detector().look(known, fetched, host, kept=lambda: copy, watched={*habits.spots, *shared.spots})
        elapsed = now - then if old else None
        learn(look, now, elapsed=elapsed, page_habits=habits, host_habits=shared, page=mark(page.encode()))
        self.hosts[host] = Habits.from_text(shared.to_text())
        self.pages[page] = Habits.from_text(habits.to_text()), body, now
        return judge(look, habits.noise, shared.noise)
