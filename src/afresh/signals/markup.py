"""Markup from strangers, read as a stream of tags: no tree, no entities, no file and no connection opened.

The parser (expat) is strict, and many publishers are not: what is not well-formed for the usual reasons (a bare
ampersand, bytes that are not of the encoding, control characters) is mended and read once more. Tags are bounded in
number, kind, depth and length, so that neither memory nor time can be had for little.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from html.entities import html5
from typing import Protocol, TypeVar
from xml.parsers import expat

DEEPEST = 64
LONGEST_TAG = 1 << 17  # bytes; also of a comment. A longer one would be looked through again with every piece.
MOST_TAGS = 1_000_000  # and named characters
MOST_NAMES = 10_000  # different ones, of tags and attributes: the parser remembers each
PIECE = 1 << 15

_ENCODING = re.compile(rb"""<\?xml[^>]{1,200}?encoding\s{0,9}=\s{0,9}["']([A-Za-z0-9._-]{1,40})["']""")
# Codecs that are no encodings of pages, or cost more than linear time.
_NO_ENCODINGS = frozenset({"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "utf-7"})
_BARE_AMPERSAND = re.compile(r"&(?!(?:#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{0,31});)")
_LONGEST_REFERENCE = 34
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_TOO_MANY = f"It has more than {MOST_TAGS:,} tags; the rest was left out."


class Enough(Exception):
    """A reader wants no more; the sentence says why, "" if nothing is wrong."""


class Reader(Protocol):
    """Hears the tags of a document in their order; the root has depth 1."""

    def start(self, depth: int, name: str, attributes: dict[str, str]) -> None:
        """A tag begins."""

    def text(self, text: str) -> None:
        """Some text, maybe not all of it."""

    def end(self, depth: int, name: str) -> None:
        """A tag ends."""


Given = TypeVar("Given", bound=Reader)


def read_markup(body: bytes, new_reader: Callable[[], Given]) -> tuple[Given, str]:
    """Read a document as far as it goes; the reader that heard it, and what is wrong with it in one sentence, or "".

    What is not well-formed is read a second time, mended, by a new reader.
    """
    reader = new_reader()
    try:
        return reader, _read(_pieces(body), reader)
    except (expat.ExpatError, ValueError, LookupError):  # the last two are about the encoding it claims
        reader = new_reader()
    try:
        return reader, _read(_mended(body), reader, encoding="utf-8")
    except (expat.ExpatError, ValueError) as error:
        where = f" in line {error.lineno}" if isinstance(error, expat.ExpatError) else ""
        return reader, f"It is not well-formed{where}; what comes after that was left out."


def _read(pieces: Iterable[bytes], reader: Reader, encoding: str | None = None) -> str:
    """Have a reader hear it; what is wrong that mending would not change."""
    parser = expat.ParserCreate(encoding)
    parser.buffer_text = True
    parser.UseForeignDTD(True)  # so that an entity that is not declared is told, not an error
    _listen(parser, reader)
    fed = 0
    try:
        for piece in pieces:
            parser.Parse(piece)
            fed += len(piece)
            if fed - parser.CurrentByteIndex > LONGEST_TAG:
                raise Enough(f"One of its tags is longer than {LONGEST_TAG // 1024} KiB; the rest was left out.")
            if len(parser.intern) > MOST_NAMES:
                raise Enough(f"It has more than {MOST_NAMES:,} kinds of tags; the rest was left out.")
    except Enough as enough:
        return str(enough)
    try:
        parser.Parse(b"", True)
    except Enough as enough:
        return str(enough)
    except expat.ExpatError:
        return "It breaks off before its end."
    return ""


def _listen(parser: expat.XMLParserType, reader: Reader) -> None:
    depth = 0
    left = MOST_TAGS

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, left
        depth += 1
        left -= 1
        if left < 0:
            raise Enough(_TOO_MANY)
        if depth > DEEPEST:
            raise Enough(f"It is nested more than {DEEPEST} deep; the rest was left out.")
        reader.start(depth, name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        reader.end(depth, name)
        depth -= 1

    def declared(*_: object) -> None:
        raise Enough("It declares entities, which are not read.")

    def named(name: str, is_parameter: bool) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Enough(_TOO_MANY)
        if not is_parameter:  # one of HTML's, or nobody knows what
            reader.text(html5.get(name + ";", "\ufffd"))

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = reader.text
    parser.EntityDeclHandler = declared
    parser.SkippedEntityHandler = named


def _pieces(body: bytes) -> Iterator[bytes]:
    # Nothing may stand before the declaration; publishers' templates leave empty lines there.
    begin = len(body) - len(body.lstrip(b" \t\r\n"))
    for start in range(begin, len(body), PIECE):
        yield body[start : start + PIECE]


def _mended(body: bytes) -> Iterator[bytes]:
    """The document as UTF-8, with what cannot be in one replaced."""
    decoder = codecs.getincrementaldecoder(_encoding(body))("replace")
    held, mended = "", 0
    for piece in _pieces(body):
        text = held + decoder.decode(piece)
        # A reference may be cut in two: hold back an ampersand near the end.
        cut = text.rfind("&", max(len(text) - _LONGEST_REFERENCE, 0))
        held, text = (text[cut:], text[:cut]) if cut >= 0 else ("", text)
        text, bare = _BARE_AMPERSAND.subn("&amp;", _NOT_XML.sub("\ufffd", text))
        mended += bare
        if mended > MOST_TAGS:
            raise Enough(_TOO_MANY)
        yield text.encode()
    yield _BARE_AMPERSAND.sub("&amp;", _NOT_XML.sub("\ufffd", held + decoder.decode(b"", True))).encode()


def _encoding(body: bytes) -> str:
    """What the document says it is written in, or UTF-8."""
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    match = _ENCODING.match(body[:400].lstrip(b"\xef\xbb\xbf \t\r\n"))
    try:
        name = codecs.lookup(match[1].decode("ascii")).name if match else "utf-8"
        "".encode(name)  # LookupError for codecs that are not about text
    except LookupError:
        return "utf-8-sig"
    return "utf-8-sig" if name == "utf-8" or name in _NO_ENCODINGS or name.startswith("utf-16") else name
