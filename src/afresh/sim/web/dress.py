"""What a dressed page needs besides itself: a stylesheet, a picture, and a script that says what came of them.

The script writes what it sees into the page: <body data-shown="48x24 3px">, the size of the picture and a width that
the stylesheet alone sets. So it shows in the page whether all parts came.
"""

import struct
import zlib

from afresh.sim.web import dice

STYLE, PICTURE, SCRIPT = "/dress.css", "/dress.png", "/dress.js"
WIDTH, HEIGHT = 48, 24
BORDER = "3px"
SHOWN = f"{WIDTH}x{HEIGHT} {BORDER}"  # what the script says where all is well
HEAD = f'<link rel="stylesheet" href="{STYLE}">\n<script src="{SCRIPT}" defer></script>\n'
HEADER = f'<img class="picture" src="{PICTURE}" alt="">'

_SCRIPT = (
    "addEventListener('load', () => {\n"
    "  const picture = document.querySelector('.picture');\n"
    "  const width = getComputedStyle(picture).borderTopWidth;\n"
    "  document.body.dataset.shown = `${picture.naturalWidth}x${picture.naturalHeight} ${width}`;\n"
    "});\n"
)


def part(seed: int, host: int, path: str) -> tuple[str, bytes] | None:
    """The (content type, body) of one part on a host, None if the path is none of them.

    >>> part(0, 0, "/dress.css")
    ('text/css', b'.picture { border: 3px solid }\\n')
    >>> part(0, 0, "/other.css")
    """
    if path == STYLE:
        return "text/css", f".picture {{ border: {BORDER} solid }}\n".encode()
    if path == SCRIPT:
        return "text/javascript", _SCRIPT.encode()
    if path == PICTURE:
        colour = dice.bits(dice.key(seed, dice.Stream.TEXT), host, -3) % (1 << 24)
        return "image/png", png(WIDTH, HEIGHT, colour)
    return None


def png(width: int, height: int, colour: int) -> bytes:
    """A picture in one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + colour.to_bytes(3, "big") * width) * height
    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
