"""Patterns with `*` for anything and `$` for the end, matched without backtracking.

Taking the leftmost place of each piece between two stars never spoils a later piece, so a pattern such as `/*a*a*a*a*`
costs one pass over the text however many stars it has. A pass takes time linear in the text, but for pieces and texts
that are made of one repeated letter: there it is the text times the pattern at worst.
"""


class Glob:
    """One pattern, ready to be matched against many texts; it matches from the beginning, and to the end after `$`.

    >>> Glob("/*/print$").matches("/a/b/print"), Glob("/*/print$").matches("/a/print/b"), Glob("/a").matches("/abc")
    (True, False, True)
    """

    __slots__ = ("_first", "_last", "_middle")

    def __init__(self, pattern: str) -> None:
        anchored = pattern.endswith("$")
        first, *rest = (pattern[:-1] if anchored else pattern).split("*")
        self._first: str = first
        # The piece that must be at the very end; None if anything may follow.
        self._last: str | None = (rest.pop() if rest else None) if anchored else None
        self._middle: list[str] | None = rest
        if anchored and self._last is None:  # no star at all: the whole text
            self._middle = None

    @property
    def pattern(self) -> str:
        """The pattern as it was given; put together again, since a site may have thousands of them."""
        if self._middle is None:
            return self._first + "$"
        end = [] if self._last is None else [self._last + "$"]
        return "*".join([self._first, *self._middle, *end])

    def matches(self, text: str) -> bool:
        """Whether the pattern matches the text."""
        if self._middle is None:
            return text == self._first
        if not text.startswith(self._first):
            return False
        place = len(self._first)
        for piece in self._middle:
            place = text.find(piece, place)
            if place < 0:
                return False
            place += len(piece)
        return self._last is None or (len(text) - place >= len(self._last) and text.endswith(self._last))
