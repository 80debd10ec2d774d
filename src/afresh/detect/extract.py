"""What a page says, without what merely surrounds it."""

import re
from dataclasses import dataclass

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding
from resiliparse.parse.html import HTMLTree

# What changes without meaning, beyond what the extractor leaves out by itself.
SURROUNDINGS = (
    *("script", "style", "noscript", "template", "nav", "footer", "aside", "iframe", "time"),
    *(".ad", ".ads", ".advert", ".advertisement", "[class*='sponsor']", "[id*='advert']", "[aria-hidden='true']"),
)
_SPACE = re.compile(r"\s+")
# Text that tells when or for whom a page was made, not what it says. Every pattern is linear in the text.
_PASSING = (
    re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]\.?m\.?)?\b", re.IGNORECASE),  # times of day
    re.compile(r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}\S{0,20}"),  # ISO moments
    re.compile(r"\b[0-9a-f]{32,128}\b", re.IGNORECASE),  # tokens
    re.compile(r"\b\d+ (?:seconds?|minutes?|hours?|days?) ago\b", re.IGNORECASE),
)
# Parsing into a tree takes time and memory that grow with the square of what is left open, or of one tag's attributes.
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]{0,31})")
_ANY_TAG = re.compile(r"<[^<>]*>")
_LONG_TAG = re.compile(r"<[A-Za-z][^<>]{20000}")
_NEVER_OPEN = frozenset(
    {
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "wbr"),
        *("track", "p", "li", "dt", "dd", "tr", "td", "th", "option"),  # whose end may be left out
    }
)
MOST_OPEN = 300


@dataclass(frozen=True, slots=True)
class Rules:
    """A site's own rules: CSS selectors of what to keep (empty: the main text) and of what to leave out."""

    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # A selector that cannot be read would silently empty every page of the site.
        document = HTMLTree.parse("").document
        for selector in (*self.keep, *self.drop):
            try:
                document.query_selector_all(selector)
            except ValueError:
                raise ValueError(f"{selector!r} is not a CSS selector") from None


NO_RULES = Rules()


def main_text(body: bytes, rules: Rules = NO_RULES) -> str:
    """The text of an HTML page that says something: no navigation, advertisements, footers, clocks or tokens."""
    html = bytes_to_str(body, detect_encoding(body))
    if is_bomb(html):
        return _SPACE.sub(" ", _ANY_TAG.sub(" ", html)).strip()
    if rules.keep:
        document = HTMLTree.parse(html).document
        parts = document.query_selector_all(", ".join(rules.keep)) if document is not None else []
        html = "\n".join(part.html for part in parts)
    text = extract_plain_text(
        html,
        main_content=not rules.keep,
        alt_texts=False,
        preserve_formatting=False,
        skip_elements=[*SURROUNDINGS, *rules.drop],
    )
    for pattern in _PASSING:
        text = pattern.sub(" ", text)
    return _SPACE.sub(" ", text).strip()


def is_bomb(html: str) -> bool:
    """Whether so much is left open, or one tag is so long, that parsing would take for ever; linear in the text.

    >>> is_bomb("<div><b>fine</b></div>" * 1000), is_bomb("<div>" * 1000)
    (False, True)
    """
    left_open: dict[str, int] = {}
    total = 0
    for match in _TAG.finditer(html):
        name = match[2].lower()
        if name in _NEVER_OPEN:
            continue
        if not match[1]:
            left_open[name] = left_open.get(name, 0) + 1
            total += 1
            if total > MOST_OPEN:
                return True
        elif left_open.get(name):
            left_open[name] -= 1
            total -= 1
    return _LONG_TAG.search(html) is not None
