"""Bodies at rest: compressed, with the size and the checksum that prove them whole when they are read."""

from typing import NamedTuple

import xxhash
import zstandard

LEVEL = 3  # 7 times smaller at 300 MB/s on web pages; higher levels cost much and give little
HALF = 1 << 63


class Packed(NamedTuple):
    """A compressed body and what it must be when it is unpacked."""

    size: int
    checksum: int
    frame: bytes


def signed(number: int) -> int:
    """64 bits as the signed number that SQLite can keep.

    >>> signed(2**64 - 1), signed(5)
    (-1, 5)
    """
    return number - 2 * HALF if number >= HALF else number


def unsigned(number: int) -> int:
    """The 64 bits again.

    >>> unsigned(-1)
    18446744073709551615
    """
    return number + 2 * HALF if number < 0 else number


def pack(body: bytes, compressor: zstandard.ZstdCompressor) -> Packed:
    """Compress a body; the compressor is an argument because making one for each costs as much as a small body."""
    return Packed(len(body), signed(xxhash.xxh3_64_intdigest(body)), compressor.compress(body))


def unpack(packed: Packed, decompressor: zstandard.ZstdDecompressor) -> bytes:
    """The body, proven whole; ValueError says what is wrong with it."""
    try:
        # Asked before unpacking, so that a spoilt header cannot make us reserve all the memory there is.
        if zstandard.frame_content_size(packed.frame) != packed.size:
            raise ValueError("the body's size is not what was stored")
        body = decompressor.decompress(packed.frame)
    except zstandard.ZstdError as error:
        raise ValueError(f"the body cannot be unpacked: {error}") from error
    if len(body) != packed.size or signed(xxhash.xxh3_64_intdigest(body)) != packed.checksum:
        raise ValueError("the body's checksum is not what was stored")
    return body
