"""Somebody else's popularity report: rank or count of pages or hosts, as weights."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from afresh.errors import SignalError

_NAMES = ("page", "url", "host", "domain", "site", "name")
_RANKS = ("rank", "position")
MAX_COUNT = 1e15


@dataclass(slots=True)
class Report:
    """How popular pages and hosts are said to be, in a unit of the report's own; and what could not be read."""

    pages: dict[str, float] = field(default_factory=dict)
    hosts: dict[str, float] = field(default_factory=dict)
    bad: list[int] = field(default_factory=list)  # numbers of lines

    def relative(self, kept: dict[str, int], pages: Iterable[tuple[str, str]]) -> dict[str, float]:
        """The popularity of pages (address and host) in times the average one; `kept` counts the pages of each host.

        A host's popularity is shared by its pages. A page that is not named counts as the least popular one.

        >>> report = Report(hosts={"a.example": 8.0, "b.example": 2.0})
        >>> kept = {"a.example": 2, "b.example": 1}
        >>> report.relative(kept, [("u", "a.example"), ("v", "a.example"), ("w", "b.example")])
        {'u': 1.2, 'v': 1.2, 'w': 0.6}
        """
        found: dict[str, float | None] = {}
        for url, host in pages:
            weight = self.pages.get(url)
            if weight is None and host in self.hosts:
                weight = self.hosts[host] / max(kept.get(host, 1), 1)
            found[url] = weight
        named = [weight for weight in found.values() if weight is not None and weight > 0]
        if not named:
            return {}
        least = min(named)
        weights = {url: least if weight is None else max(weight, least * 1e-3) for url, weight in found.items()}
        mean = sum(weights.values()) / len(weights)
        return {url: min(max(weight / mean, 1e-6), 1e6) for url, weight in weights.items()}


def read_report(lines: Iterable[str]) -> Report:
    """A report from lines of two columns, with or without a heading; SignalError if it is none.

    `1,example.org` is a rank, and `example.org,1200` a count; a heading may say so too: `host,rank`.

    >>> report = read_report(["rank,host", "1,a.example", "4,b.example"])
    >>> report.hosts
    {'a.example': 1.0, 'b.example': 0.25}
    """
    report, heading = Report(), ""
    for number, line in enumerate(lines, start=1):
        left, comma, right = (part.strip().strip('"') for part in line.strip().replace("\t", ",").partition(","))
        if not line.strip() or line.startswith("#"):
            continue
        if number == 1 and (left.lower() in (*_NAMES, *_RANKS)):
            heading = f"{left},{right}".lower()
            continue
        name, text, is_rank = (right, left, True) if _is_number(left) else (left, right, False)
        is_rank = any(word in heading for word in _RANKS) if heading else is_rank
        if not comma or not name or not _is_number(text) or len(line) > 10_000:
            report.bad.append(number)
            continue
        value = float(text)
        weight = (1.0 / max(value, 1.0)) if is_rank else value
        (report.pages if name.startswith(("http://", "https://")) else report.hosts)[name] = weight
    if not report.pages and not report.hosts:
        raise SignalError("No line of it is like `example.org,1200` or `1,example.org`.")
    return report


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text) <= MAX_COUNT
    except ValueError:
        return False
