"""Many rules in little memory: most are plain beginnings of paths, and the longest that fits is found by bisection.

A file of 500 KiB may hold 60,000 rules. As objects these would take 16 MB and 10 ms for each page; sorted and joined
they take what the file takes, and a page costs some microseconds. Rules with stars are tried one by one, so there must
not be too many of them: a host that has more than `MAX_STARS` is not crawled at all. Nor is a path that is so long, for
such long rules, that comparing them could take longer than a few milliseconds (`MAX_COMPARED`).
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Self

from afresh.frontier.glob import Glob
from afresh.frontier.robots_form import INDEX

MAX_STARS = 2_500  # in all rules for one agent; they take 1 MB
MAX_COMPARED = 10_000_000  # characters of their longest pieces, times those of a path: some 4 ms where all are alike
_PLAIN = bytes(range(0x21, 0x7F)).translate(None, b"\"'<>\\^`{|}")

_NONE = (-1, True)  # the weight of a rule, and whether it allows: no rule at all allows


class _Sorted:
    """Texts in order, joined, and whether each allows."""

    __slots__ = ("allow", "joined", "starts")

    def __init__(self, joined: bytes, allow: bytes) -> None:
        lengths = [len(text) + 1 for text in joined.split(b"\n")] if allow else []
        self.joined, self.allow = joined, allow
        self.starts = array("I", accumulate(lengths, initial=0))

    @classmethod
    def of(cls, rules: dict[bytes, bool]) -> Self:
        texts = sorted(rules)
        return cls(b"\n".join(texts), bytes(map(rules.__getitem__, texts)))

    @property
    def size(self) -> int:
        return 256 + len(self.joined) + 4 * len(self.starts) + len(self.allow)

    def to_json(self) -> list[str]:
        return [self.joined.decode("latin-1"), "".join("-+"[each] for each in self.allow)]

    @classmethod
    def from_json(cls, kept: list[str]) -> Self:
        joined, signs = kept
        return cls(joined.encode("latin-1"), bytes(sign == "+" for sign in signs))

    def __getitem__(self, nth: int) -> bytes:
        return self.joined[self.starts[nth] : self.starts[nth + 1] - 1]

    def beginning(self, path: bytes) -> tuple[int, bool]:
        """The longest text that the path begins with."""
        while (nth := self._last_up_to(path)) >= 0:
            text = self[nth]
            if path.startswith(text):
                return _weight(text), bool(self.allow[nth])
            # Whatever the path begins with stands before this text, which hence begins with it too.
            path = path[: _common(text, path)]
        return _NONE

    def equal(self, path: bytes) -> tuple[int, bool]:
        """The text that is the path; it counts as one longer, for its dollar sign."""
        nth = self._last_up_to(path)
        return (_weight(path) + 1, bool(self.allow[nth])) if nth >= 0 and self[nth] == path else _NONE

    def _last_up_to(self, path: bytes) -> int:
        return bisect_right(range(len(self.allow)), path, key=self.__getitem__) - 1


class Rules:
    """Rules in the form of `robots_form`: the longest that matches decides, of equally long ones one that allows.

    >>> rules = Rules.of([b"/a/b", b"/*.html$"], [b"/a", b"/x/*/y"])
    >>> [rules.allow(path) for path in (b"/a/c", b"/a/bc", b"/x/1/y", b"/x/1/y.html", b"/z")]
    [False, True, False, True, True]
    """

    __slots__ = ("_beginnings", "_plain", "_starred", "_starred_length", "_stars", "_wholes")

    def __init__(self, beginnings: _Sorted, wholes: _Sorted, starred: list[str]) -> None:
        """Rules with stars begin with a plus or a minus sign, the longest come first."""
        self._beginnings = beginnings
        self._wholes = wholes
        self._plain = all(beginnings.allow) and all(wholes.allow)  # of those without stars, none forbids anything
        self._stars = sum(rule.count("*") for rule in starred)
        self._starred = [(rule[0] == "+", Glob(rule[1:])) for rule in starred if self._stars <= MAX_STARS]
        # Of each, the longest piece after a star: it may nearly match at every place of a path.
        self._starred_length = sum(max(map(len, rule.split("*")[1:])) for rule in starred)

    @classmethod
    def of(cls, allowed: list[bytes], disallowed: list[bytes]) -> Self:
        """From rules as they were found."""
        beginnings: dict[bytes, bool] = {}
        wholes: dict[bytes, bool] = {}
        starred: dict[bytes, bool] = {}
        for rules, allows in ((disallowed, False), (_with_folders(allowed), True)):  # what allows comes last and stays
            for rule in rules:
                if b"*" in rule:
                    starred[rule] = allows
                elif rule[:1] != b"/":
                    pass  # no path begins so
                elif rule[-1:] == b"$":
                    wholes[rule[:-1]] = allows
                else:
                    beginnings[rule] = allows
        ordered = sorted(starred, key=lambda rule: (-_weight(rule), not starred[rule], rule))
        signed = [("+" if starred[rule] else "-") + rule.decode("latin-1") for rule in ordered]
        return cls(_Sorted.of(beginnings), _Sorted.of(wholes), signed)

    @property
    def forbid_nothing(self) -> bool:
        """Whether every path is allowed, as on most hosts."""
        return self._plain and not self._stars

    def allow(self, path: bytes) -> bool:
        """Whether a path is allowed."""
        if self._stars > MAX_STARS or self._starred_length * len(path) > MAX_COMPARED:
            return False
        return max(self._beginnings.beginning(path), self._wholes.equal(path), self._star(path))[1]

    def _star(self, path: bytes) -> tuple[int, bool]:
        if not self._starred:
            return _NONE
        text = path.decode("latin-1")
        for allows, glob in self._starred:
            if glob.matches(text):
                return _weight(glob.pattern.encode("latin-1")), allows
        return _NONE

    @property
    def size(self) -> int:
        """About how many bytes of memory this takes."""
        starred = sum(400 + len(glob.pattern) for _, glob in self._starred)
        return 256 + self._beginnings.size + self._wholes.size + starred

    def to_json(self) -> dict[str, Any]:
        """What is to be kept."""
        return {
            "stars": self._stars,
            "starred": ["-+"[allows] + glob.pattern for allows, glob in self._starred],
            "beginnings": self._beginnings.to_json(),
            "wholes": self._wholes.to_json(),
        }

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Self:
        """What was kept."""
        rules = cls(_Sorted.from_json(kept["beginnings"]), _Sorted.from_json(kept["wholes"]), kept["starred"])
        rules._stars = kept["stars"]
        return rules


def _with_folders(allowed: list[bytes]) -> Iterable[bytes]:
    """These, and where an index page is allowed its folder too."""
    for rule in allowed:
        yield rule
        if INDEX in rule:
            folder, slash, name = rule.rpartition(b"/")
            if slash and name.startswith(INDEX):
                yield folder + b"/$"


def _weight(rule: bytes) -> int:
    """How long a rule is as it would be sent: what is no plain character takes three."""
    return len(rule) + 2 * len(rule.translate(None, _PLAIN)) - rule.count(b"\r")


def _common(one: bytes, other: bytes) -> int:
    """How long the common beginning of two texts is."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
