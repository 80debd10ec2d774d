"""CSS selectors as they are written: what is asked of each element, and how one follows another."""

import re
from dataclasses import dataclass, field

FIRST, INSIDE, DIRECTLY_INSIDE, NEXT, LATER = 0, 1, 2, 3, 4  # how a part follows the one before it
FOLLOWS = {" ": INSIDE, ">": DIRECTLY_INSIDE, "+": NEXT, "~": LATER}
OPERATORS = ("", "=", "~=", "|=", "^=", "$=", "*=", "tag")  # of tests, in the order of their numbers
TAG = OPERATORS.index("tag")

_NAME = r"(?:[A-Za-z_\u0080-\U0010ffff]|\\[^0-9A-Fa-f\n]|-(?![0-9]))(?:[\w\u0080-\U0010ffff-]|\\[^0-9A-Fa-f\n])*"
_BETWEEN = re.compile(r"\s*([>+~])\s*|\s+")
_SIMPLE = re.compile(
    rf"""(?P<tag>\*|{_NAME})
    |\#(?P<id>{_NAME})
    |\.(?P<class>{_NAME})
    |\[\s*(?P<attribute>{_NAME}(?::{_NAME})?)\s*
      (?:(?P<operator>[~|^$*]?=)\s*(?:"(?P<double>[^"\n]*)"|'(?P<single>[^'\n]*)'|(?P<word>[^\s"'\]]+))\s*(?P<flag>[iIsS]?)\s*)?\]
    |:(?P<pseudo>[A-Za-z-]+)(?:\((?P<inner>[^()]*)\))?""",
    re.VERBOSE,
)
_NTH = re.compile(r"(?P<a>[+-]?[0-9]{0,6})n(?:\s*(?P<sign>[+-])\s*(?P<b>[0-9]{1,6}))?|(?P<only>[+-]?[0-9]{1,6})")
_LOOKS_AHEAD = ("has", "last-child", "nth-last-child", "only-child", "empty", "last-of-type", "only-of-type")


@dataclass(frozen=True, slots=True)
class Test:
    """One question about an element: of an attribute (or the tag), how, with what, and whether case counts."""

    name: str
    operator: int = 0
    value: str = ""
    any_case: bool = False


@dataclass(slots=True)
class Part:
    """What is asked of one element."""

    follows: int = FIRST
    tag: str = ""  # "": any
    ids: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    needs: list[Test] = field(default_factory=list)
    refuses: list[Test] = field(default_factory=list)
    any_of: list[Test] = field(default_factory=list)
    nth: tuple[int, int] | None = None  # the places among its siblings: a·n + b


def parse(written: str) -> list[list[Part]]:
    """The selectors that commas part, each as its parts; ValueError, with a sentence, for what is not understood.

    >>> [[part.tag for part in parts] for parts in parse("main > p, a[href^='/x,y']")]
    [['main', 'p'], ['a']]
    """
    selectors: list[list[Part]] = []
    for selector in _at_commas(written):
        text = selector.strip()
        parts, at, follows = [], 0, FIRST
        while at < len(text):
            part, at = _part(text, at, follows, written)
            parts.append(part)
            if at == len(text):
                break
            between = _BETWEEN.match(text, at)
            if between is None or between.end() == len(text):
                raise _refused(written)
            follows, at = FOLLOWS[between[1] or " "], between.end()
        if not parts:
            raise _refused(written)
        selectors.append(parts)
    return selectors


def _at_commas(written: str) -> list[str]:
    """Cut at the commas that stand in no brackets and no quotation marks."""
    pieces, start, inside = [], 0, ""
    for at, letter in enumerate(written):
        if inside[-1:] in ("'", '"'):
            inside = inside[:-1] if letter == inside[-1] else inside
        elif letter in "'\"[(":
            inside += letter
        elif letter in "])":
            inside = inside[:-1]
        elif letter == "," and not inside:
            pieces.append(written[start:at])
            start = at + 1
    return [*pieces, written[start:]]


def _part(text: str, at: int, follows: int, written: str) -> tuple[Part, int]:
    """What is asked of one element, and where that ends."""
    part, start = Part(follows), at
    while (match := _SIMPLE.match(text, at)) is not None:
        if match["tag"] and at > start:
            raise _refused(written)
        _take(part, match, written)
        at = match.end()
    if at == start:
        raise _refused(written)
    return part, at


def _take(part: Part, match: re.Match[str], written: str) -> None:
    if match["tag"]:
        part.tag = "" if match["tag"] == "*" else _plain(match["tag"]).lower()
    elif match["id"]:
        part.ids.append(_plain(match["id"]))
    elif match["class"]:
        part.classes.append(_plain(match["class"]))
    elif match["attribute"]:
        part.needs.append(_test(match))
    else:
        _pseudo(part, match["pseudo"].lower(), match["inner"], written)


def _test(match: re.Match[str]) -> Test:
    """One simple selector as a test."""
    if match["tag"]:
        return Test(_plain(match["tag"]).lower(), TAG)
    if match["id"]:
        return Test("id", OPERATORS.index("="), _plain(match["id"]))
    if match["class"]:
        return Test("class", OPERATORS.index("~="), _plain(match["class"]))
    value = next((match[kind] for kind in ("double", "single", "word") if match[kind] is not None), "")
    any_case = (match["flag"] or "").lower() == "i"
    name = _plain(match["attribute"]).lower()
    return Test(name, OPERATORS.index(match["operator"] or ""), value.lower() if any_case else value, any_case)


def _pseudo(part: Part, name: str, inner: str | None, written: str) -> None:
    if name in ("not", "is", "where") and inner is not None:
        if name != "not" and part.any_of:
            raise _refused(written, "it may have one :is() or :where() for an element")
        (part.refuses if name == "not" else part.any_of).extend(_simple(inner, written))
    elif name == "first-child" and inner is None and part.nth is None:
        part.nth = 0, 1
    elif name == "nth-child" and inner is not None and part.nth is None:
        part.nth = _nth(inner, written)
    elif name in _LOOKS_AHEAD:
        raise _refused(written, f":{name} needs what comes later on the page")
    else:
        raise _refused(written)


def _simple(inner: str, written: str) -> list[Test]:
    """The simple selectors in the brackets of `:not`, `:is` and `:where`."""
    tests = []
    for each in _at_commas(inner):
        match = _SIMPLE.fullmatch(each.strip())
        if match is None or match["pseudo"] or match["tag"] == "*":
            raise _refused(written, "in the brackets there may be tags, #ids, .classes and [attributes] with commas")
        tests.append(_test(match))
    return tests


def _nth(inner: str, written: str) -> tuple[int, int]:
    text = inner.strip().lower()
    if text in ("odd", "even"):
        return 2, 1 if text == "odd" else 0
    match = _NTH.fullmatch(text)
    if match is None:
        raise _refused(written)
    if match["only"]:
        return 0, int(match["only"])
    step = int(match["a"] + "1") if match["a"] in ("", "+", "-") else int(match["a"])
    return step, int((match["sign"] or "") + (match["b"] or "0"))


def _plain(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def _refused(selector: str, why: str = "") -> ValueError:
    return ValueError(f"{selector!r} is not a CSS selector that can be used here" + (f": {why}" if why else ""))
