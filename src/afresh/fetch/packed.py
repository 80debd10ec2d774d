"""Headers as HTTP/2 packs them (RFC 7541): those of our questions, and those of the answers.

The tables of the library (hpack) are used, but not its reader: most of what a server says it has said before, word for
word, and what was decoded once need not be decoded again. A page takes a quarter less for that.
"""

from collections.abc import Iterable
from functools import lru_cache

from hpack import HPACKError
from hpack.huffman_table import decode_huffman
from hpack.table import HeaderTable

from afresh.fetch.answer import Lines
from afresh.fetch.frames import BadFrame

LARGEST_HEAD = 1 << 16  # as it is counted there: each header with 32 bytes more
LARGEST_TABLE = 4096  # of what is remembered of a connection: we do not ask for more
LONGEST_NUMBER = 5  # bytes after the first
LONGEST_KEPT = 256  # bytes of a word that is worth remembering for all connections
NO_TABLE = b"\x20"  # says that our own questions never refer to earlier ones; holds until the other is said


def question(authority: str, path: str) -> bytes:
    """The beginning of every question's headers: GET over https."""
    return b"\x82\x87\x01" + _text(authority.encode("ascii")) + b"\x04" + _text(path.encode("ascii"))


def fields(headers: Iterable[tuple[str, str]]) -> bytes:
    """Headers, each written out in full: neither side need remember anything, and nothing can come out of step."""
    return b"".join(
        b"\0" + _text(name.lower().encode("ascii")) + _text(value.encode("utf-8", "surrogateescape"))
        for name, value in headers
    )


def _text(data: bytes) -> bytes:
    """A string, not compressed, after its length: seven bits, and if they do not suffice seven more at a time.

    >>> _text(b"GET"), _text(b"x" * 300)[:3].hex()
    (b'\\x03GET', '7fad01')
    """
    length = len(data)
    if length < 127:
        return bytes((length,)) + data
    prefix, length = bytearray((127,)), length - 127
    while length >= 128:
        prefix.append(length & 127 | 128)
        length >>= 7
    prefix.append(length)
    return bytes(prefix) + data


class Unpacker:
    """The headers of one connection's answers, each understood with what came before.

    >>> unpacker = Unpacker()
    >>> unpacker.lines(bytes.fromhex("88 40 01 78 01 79 be"))
    [(b':status', b'200'), (b'x', b'y'), (b'x', b'y')]
    """

    def __init__(self) -> None:
        self._table = HeaderTable()
        self._table.maxsize = LARGEST_TABLE

    def lines(self, block: bytes) -> Lines:
        """The headers in a block, in their order; BadFrame if it cannot be understood, or is a bomb."""
        try:
            return self._lines(block)
        except (HPACKError, IndexError):
            raise BadFrame("headers that cannot be read") from None

    def _lines(self, block: bytes) -> Lines:
        lines: Lines = []
        at = size = 0
        while at < len(block):
            first = block[at]
            if first & 0x80:  # one that was sent before
                index, at = _number(block, at, 0x7F)
                name, value = self._table.get_by_index(index)
            elif first & 0xE0 == 0x20:  # how much to remember from now on
                most, at = _number(block, at, 0x1F)
                if lines or most > LARGEST_TABLE:
                    raise BadFrame("a table that is too large, or too late")
                self._table.maxsize = most
                continue
            else:
                name, value, at = self._literal(block, at, 0x3F if first & 0x40 else 0x0F)
                if first & 0x40:
                    self._table.add(name, value)
            lines.append((name, value))
            size += len(name) + len(value) + 32
            if size > LARGEST_HEAD:
                raise BadFrame("a large head")
        return lines

    def _literal(self, block: bytes, at: int, mask: int) -> tuple[bytes, bytes, int]:
        """A header that is written out, or at least its value; and where it ends."""
        index, at = _number(block, at, mask)
        if index:
            name = self._table.get_by_index(index)[0]
        else:
            name, at = _string(block, at)
        value, at = _string(block, at)
        return name, value, at


def _number(block: bytes, at: int, mask: int) -> tuple[int, int]:
    """A number that begins in some bits of a byte, and where it ends."""
    value = block[at] & mask
    at += 1
    if value < mask:
        return value, at
    for shift in range(0, 7 * LONGEST_NUMBER, 7):
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise BadFrame("a long number")


def _string(block: bytes, at: int) -> tuple[bytes, int]:
    """A string, and where it ends."""
    compressed = block[at] & 0x80
    length, at = _number(block, at, 0x7F)
    data = block[at : at + length]
    if len(data) < length:
        raise BadFrame("a string without its end")
    if compressed:
        data = _known_word(data) if length <= LONGEST_KEPT else decode_huffman(data)
    return data, at + length


@lru_cache(4096)
def _known_word(data: bytes) -> bytes:
    return decode_huffman(data)
