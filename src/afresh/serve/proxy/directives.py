"""Cache-Control as requests and answers write it, and CDN-Cache-Control (RFC 9213), which is a structured field."""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

Directives = Mapping[str, str | None]

MAX_SECONDS = 2147483648  # what more than this means is "for ever" (RFC 9111, 1.2.2)
_LONGEST = 8192
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_PART = re.compile(
    r"[\s,]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)"  # a name
    rf"(?:=(?:({_QUOTED})|([^\s,\"]*)))?[ \t]*(?=,|\Z)"  # and what stands behind it
    rf'|[^,"]+|{_QUOTED}|[",]'  # or nonsense
)
# RFC 8941: keys in small letters; a value is an integer, a token, a string, a boolean, or there is none, which is true.
_KEY = r"[a-z*][a-z0-9_.*-]*"
_ITEM = (
    r'(?:-?[0-9]{1,15}(?:\.[0-9]{1,3})?|"(?:[^"\\\x00-\x1f]|\\["\\])*"'
    r"|[A-Za-z*][A-Za-z0-9:/!#$%&'*+.^_`|~-]*|\?[01]|:[A-Za-z0-9+/=]*:)"
)
_MEMBER = re.compile(rf"({_KEY})(?:=({_ITEM}))?(?:;[ ]*{_KEY}(?:={_ITEM})?)*")
_GAP = re.compile(r"[ \t]*(?:,[ \t]*|\Z)")
_SECONDS = re.compile(r"[0-9]+")
_TIMES = frozenset({"max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"})
NOTHING: Directives = MappingProxyType({})


@lru_cache(4096)
def parsed(value: str) -> Directives:
    """Directives by name in lower case; of several of one name with seconds, the one with the fewest.

    >>> dict(parsed('MaX-aGe=10, no-cache="a, b", ext="max-age=3600"'))
    {'max-age': '10', 'no-cache': 'a, b', 'ext': 'max-age=3600'}
    >>> dict(parsed("max-age=1800, max-age=1")), dict(parsed("max-age =5"))
    ({'max-age': '1'}, {'max-age': ''})
    """
    found: dict[str, str | None] = {}
    for match in _PART.finditer(value[:_LONGEST]):
        name, quoted, plain = match.groups()
        if name is None:
            # "max-age =5" makes no sense as a directive, and must not pass for none either.
            word = match[0].split("=")[0].strip().lower()
            if word in _TIMES:
                found[word] = ""
            continue
        name, said = name.lower(), plain if quoted is None else quoted[1:-1]
        if name in found and name in _TIMES and seconds(found, name) <= seconds({name: said}, name):
            continue
        found[name] = said
    return MappingProxyType(found)


@lru_cache(4096)
def structured(value: str) -> Directives:
    """A dictionary of RFC 8941 as directives; nothing if any of it is malformed or a number is none.

    >>> dict(structured("max-age=60, no-cache")), dict(structured("max-age=60, &&&")), dict(structured('max-age="60"'))
    ({'max-age': '60', 'no-cache': None}, {}, {})
    """
    found: dict[str, str | None] = {}
    place, text = 0, value.strip(" ")[:_LONGEST]
    while place < len(text):
        match = _MEMBER.match(text, place)
        gap = _GAP.match(text, match.end()) if match else None
        if match is None or gap is None or text.endswith(","):
            return NOTHING
        name, said = match.groups()
        if name in _TIMES and (said is None or not said.isdecimal()):
            return NOTHING
        if said == "?0":
            found.pop(name, None)
        else:
            found[name] = None if said in (None, "?1") else str(said)
        place = gap.end()
    return MappingProxyType(found)


def seconds(directives: Directives, name: str) -> float:
    """The seconds that a directive names; 0 if what stands there is no number: what cannot be read is stale.

    >>> seconds(parsed("max-age=007"), "max-age"), seconds(parsed("max-age=-1"), "max-age")
    (7.0, 0.0)
    """
    said = directives.get(name) or ""
    return float(min(int(said[:12]), MAX_SECONDS)) if _SECONDS.fullmatch(said) else 0.0
