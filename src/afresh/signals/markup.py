"""Markup from strangers, read as a stream of tags: no tree, no entities, no file and no connection opened.

The parser (expat) is strict, and many publishers are not: what is not well-formed for the usual reasons (a bare
ampersand, bytes that are not of the encoding, control characters) is mended and read once more. Tags are bounded in
number, kind, depth and length, so that neither memory nor time can be had for little.
"""

import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from html.entities import html5
from typing import Protocol, TypeVar
from xml.parsers import expat

from afresh.reading import utf8

DEEPEST = 64
LONGEST_TAG = 1 << 17  # bytes; also of a comment. A longer one would be looked through again with every piece.
MOST_TAGS = 1_000_000  # and named characters
MOST_NAMES = 10_000  # different ones, of tags and attributes: the parser remembers each
PIECE = 1 << 15

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
    body, reader = utf8(body), new_reader()
    try:
        return reader, _read(_pieces(body), reader)
    except expat.ExpatError:
        reader = new_reader()
    try:
        return reader, _read(_mended(body), reader)
    except expat.ExpatError as error:
        return reader, f"It is not well-formed in line {error.lineno}; what comes after that was left out."


def _read(pieces: Iterable[bytes], reader: Reader) -> str:
    """Have a reader hear it; what is wrong that mending would not change."""
    parser = expat.ParserCreate("utf-8")  # whatever the document says: it was turned into that
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
    """The document with what cannot be in one replaced."""
    decoder = getincrementaldecoder("utf-8")("replace")
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
