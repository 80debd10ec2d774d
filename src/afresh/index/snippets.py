"""The piece of a page's text that shows why it was found."""

import re

from afresh.index.documents import Indexed
from afresh.index.queries import Query

WIDTH = 160  # characters
MAX_PLACES = 200  # of the words that are looked at
STEM = 4  # letters of a word that are looked for where the whole word is not in the text


def snippet(content: Indexed, query: Query, width: int = WIDTH) -> str:
    """A stretch of text with as many of the query's words as there are together; else how the text begins.

    >>> from afresh.index.queries import parse
    >>> snippet(Indexed(text="Boats. " * 40 + "The ferry leaves at nine. " + "Boats. " * 40), parse("ferry nine"), 40)
    '… The ferry leaves at nine. Boats. Boats. …'
    """
    text = " ".join(content.text.split()) or " ".join(content.headings.split())
    words = list(
        dict.fromkeys(word.lower() for term in query.terms if term.column != "site" for word in term.text.split())
    )
    places = _places(text, words) or _places(text, [word[:STEM] for word in words if len(word) > STEM])
    best, most = 0, 0
    for nth, (start, _) in enumerate(places):
        here = {word for at, word in places[nth : nth + 50] if at < start + width * 3 // 4}
        if len(here) > most:
            best, most = start, len(here)
    first = max(best - width // 5, 0) if most else 0
    if first:
        first = text.find(" ", first) + 1 or first
    last = min(first + width, len(text))
    if last < len(text):
        last = max(text.rfind(" ", first, last), first + width // 2)
    return f"{'… ' if first else ''}{text[first:last].strip()}{' …' if last < len(text) else ''}"


def _places(text: str, words: list[str]) -> list[tuple[int, str]]:
    if not words:
        return []
    pattern = re.compile(
        rf"(?<!\w)(?:{'|'.join(re.escape(word) for word in sorted(words, key=len, reverse=True))})", re.I
    )
    found = []
    for match in pattern.finditer(text):
        found.append((match.start(), match[0].lower()))
        if len(found) == MAX_PLACES:
            break
    return found
