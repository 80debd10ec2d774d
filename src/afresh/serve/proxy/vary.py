"""Which of several answers under one address a request selects: Vary, with values brought into one form."""

import re

from afresh.serve.proxy.fields import Named, members

Selector = tuple[str, ...]

_Q = re.compile(r";\s*q\s*=\s*([0-9.]+)\s*\Z")
MAX_NAMES = 16  # of a Vary field; one with more is taken for *
_CODINGS = frozenset({"gzip", "br", "zstd", "deflate"})


def names_of(fields: Named) -> Selector | None:
    """The fields that an answer depends on, in order; None if no other request can select it.

    >>> names_of({"vary": "Foo, bar, foo"}), names_of({}), names_of({"vary": ", *"})
    (('bar', 'foo'), (), None)
    """
    value = fields.get("vary")
    if value is None:
        return ()
    found = sorted(set(members(value)))
    return None if "*" in found or len(found) > MAX_NAMES else tuple(found)


def selected(names: Selector, asked_with: Named) -> Selector:
    """What a request says in these fields, in one form each; a field that is absent is not an empty one.

    >>> selected(("foo", "bar"), {"foo": "1,  2"}), selected(("accept-language",), {"accept-language": "eN ,  de"})
    (('1,2', '\\x00'), ('de,en',))
    """
    return tuple(_form(name, asked_with[name]) if name in asked_with else "\0" for name in names)


def _form(name: str, value: str) -> str:
    if name == "accept-encoding":
        return codings(value)
    parts = [part.strip(" \t") for part in value.split(",")]
    if name in ("accept-language", "accept"):
        # Best first; among equals the order means nothing.
        return ",".join(sorted((part.lower() for part in parts if part), key=lambda part: (-_weight(part), part)))
    return ",".join(parts)


def codings(value: str) -> str:
    """The content codings among those in use that a request accepts.

    >>> codings("br;q=1.0, gzip;q=0.8, *;q=0"), codings("gzip;q=0, identity")
    ('br,gzip', '')
    """
    words = [(part.partition(";")[0].strip(), _weight(part)) for part in value.lower().split(",")]
    refused = {word for word, weight in words if weight <= 0}
    taken = {word for word, weight in words if weight > 0}
    if "*" in taken:
        taken |= _CODINGS
    return ",".join(sorted((taken & _CODINGS) - refused))


def _weight(part: str) -> float:
    match = _Q.search(part)
    if match is None:
        return 1.0
    try:
        return float(match[1])
    except ValueError:
        return 0.0
