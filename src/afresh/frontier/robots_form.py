"""The one form in which rules of robots.txt and the paths of URLs are compared.

A URL on the wire writes some characters as escapes (`%20`), others as they are, and which ones depends on the part of
the URL; the owner of a site writes rules as it comes. So both are unescaped, but for what has a meaning of its own in a
URL (`/`, `?` and the like, RFC 3986's reserved characters): `%2F` is not `/`. Such an escape becomes a carriage return,
which no line of a file and no URL holds, and another letter. A percent sign that begins no escape stands for itself.
A backslash or a tab in a rule is meant in either of two ways, and both hold: as the character itself (`%5C`, `%09`), or
as browsers read it in a path: a slash, and nothing.
"""

import re

_RESERVED = frozenset(b":/?#[]@!$&()*+,;=")  # the apostrophe is written in two ways on the wire, so it is not here
_MARKED = {code: b"\r%c" % (code ^ 0x40) for code in (*_RESERVED, *b"\r\n")}
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_HEX = "0123456789abcdefABCDEF"
_MEANING = {
    f"%{high}{low}".encode(): _MARKED.get(code := int(high + low, 16), bytes((code,))) for high in _HEX for low in _HEX
}
_STAR, _DOLLAR = _MARKED[ord("*")], _MARKED[ord("$")]
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_INNER_DOLLAR = re.compile(rb"\$(?!\n|\Z)")
INDEX = b"index.htm"


def path_form(url: str) -> bytes:
    """Path and query of a URL; `*` and `$` are escaped, since rules can only name them so.

    >>> path_form("https://example.org/a%20b/%7Eme?q='*'#top")
    b"/a b/~me?q='\\rj'"
    """
    raw = url.encode("utf-8", "surrogateescape")
    start = raw.find(b"//")
    start = 0 if start < 0 else start + 2
    slash = min((place for place in (raw.find(b"/", start), raw.find(b"?", start)) if place >= 0), default=-1)
    path = raw[slash:] if slash >= 0 else b"/"
    path = path.partition(b"#")[0]
    if not path.startswith(b"/"):
        path = b"/" + path
    if not path.isascii():  # no URL on the wire is: whatever this is, no rule speaks of it
        path = _NOT_ASCII.sub(rb"\r\g<0>", path)
    return _unescaped(path).replace(b"*", _STAR).replace(b"$", _DOLLAR)


def rule_forms(rules: list[bytes]) -> list[bytes]:
    """Rules, none of which holds a line end, all at once; only a dollar sign at the end of one is special.

    Those with a backslash or a tab come twice, once as it is written and once as browsers read it.

    >>> rule_forms([b"/a%20b", b"/it's", b"/%7eme*$", b"/$x%2f"])
    [b'/a b', b"/it's", b'/~me*$', b'/\\rdx\\ro']
    """
    joined = b"\n".join(rules)
    if b"\\" in joined or b"\t" in joined:
        joined = b"\n".join([*rules, *(read for rule in rules if (read := _slashed(rule)) != rule)])
    joined = _unescaped(joined)
    if b"$" in joined:
        joined = _INNER_DOLLAR.sub(_DOLLAR, joined)
    return joined.split(b"\n") if rules else []


def _slashed(rule: bytes) -> bytes:
    path, mark, query = rule.replace(b"\t", b"").partition(b"?")
    return path.replace(b"\\", b"/") + mark + query


def _unescaped(text: bytes) -> bytes:
    return _ESCAPE.sub(_meaning, text) if b"%" in text else text


def _meaning(escape: re.Match[bytes]) -> bytes:
    return _MEANING[escape[0]]
