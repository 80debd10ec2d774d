"""One way from bytes to text, for pages, sitemaps and whatever else comes from the network.

The result is UTF-8, because that is what all readers here work on; most of the web is in it already and is not copied.
What is not valid is replaced, never refused. Time is linear in the bytes, and no codec holds the interpreter lock for
longer than one piece takes.
"""

import codecs
import re

from afresh.reading.labels import CODECS, MULTIBYTE, USER_DEFINED, UTF_8, UTF_16_BE, UTF_16_LE

PIECE = 1 << 16  # bytes decoded while the interpreter lock is held
PRESCAN = 1024  # bytes in which a document may say what it is written in

_HEADER = re.compile(r"charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([^\s\"';,]{1,40})", re.IGNORECASE | re.ASCII)
_META = re.compile(rb"charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([^\s\"'/>;,]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"""\s{0,99}<\?xml[^>]{1,200}?encoding\s{0,9}=\s{0,9}["']([^\s"'>]{1,40})["']""")
_MARKS = ((codecs.BOM_UTF8, UTF_8), (codecs.BOM_UTF16_LE, UTF_16_LE), (codecs.BOM_UTF16_BE, UTF_16_BE))


def encoding(label: str) -> str | None:
    """The Python codec that a WHATWG label stands for; None if it is no such label.

    >>> encoding(" Latin1 "), encoding("punycode"), encoding("utf-7")
    ('cp1252', None, None)
    """
    return CODECS.get(label.strip("\t\n\f\r ").lower())


def utf8(body: bytes, content_type: str = "") -> bytes:
    """The document in UTF-8, without a byte order mark.

    What it is in is said by that mark, else by the header, else by the document itself; else it is UTF-8.

    >>> utf8("<p>ü".encode("latin-1"), "text/html; charset=ISO-8859-1").decode()
    '<p>ü'
    """
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return _recoded(body[len(mark) :], codec)
    return _recoded(body, _declared(body, content_type))


def _declared(body: bytes, content_type: str) -> str:
    if (match := _HEADER.search(content_type[:1000])) and (codec := encoding(match[1])):
        # Whatever the header says: a document without a single NUL is not in UTF-16.
        return UTF_8 if codec.startswith("utf-16") and b"\0" not in body[:PRESCAN] else codec
    head = body[:PRESCAN]
    said = _XML.match(head) or _META.search(head)
    codec = encoding(said[1].decode("latin-1")) if said else None
    if codec is None or codec.startswith("utf-16"):  # what could be read as ASCII so far is not in UTF-16
        return UTF_8
    return "cp1252" if codec == USER_DEFINED else codec


def _recoded(body: bytes, codec: str) -> bytes:
    if codec == UTF_8:
        return body  # what is not valid in it is replaced where text is taken out
    if codec in MULTIBYTE:
        decoder = codecs.getincrementaldecoder(codec)("replace")
        pieces = [decoder.decode(body[at : at + PIECE]).encode() for at in range(0, len(body), PIECE)]
        return b"".join([*pieces, decoder.decode(b"", True).encode()])
    if body.isascii() and not codec.startswith("utf-16"):
        return body  # all the others agree about ASCII
    from afresh.reading import recode  # compiled code takes a second to load: not before somebody needs it

    if codec.startswith("utf-16"):
        return recode.utf16(body, big=codec == UTF_16_BE)
    return recode.single_byte(body, codec)
