"""Paths as keys, `file:///srv/docs/a%20b.txt`, a folder with a slash at its end; and the mount that a path is on."""

import os
import re
import time
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

from afresh.sources.base import MAX_KEY

SCHEME = "file:"
SAFE = "/-_.~!$&'()*+,;=:@"
MOUNTS = Path("/proc/self/mountinfo")
MOUNTS_SECONDS = 10.0  # for which the list of mounts is good enough
_OCTAL = re.compile(rb"\\([0-7]{3})")


def key_of(path: bytes | str, *, folder: bool = False) -> str | None:
    """The key of an absolute path; None if it is none, or too long.

    >>> key_of("/srv/docs/a b.txt"), key_of("/srv/docs", folder=True), key_of("docs"), key_of("/srv/../etc/passwd")
    ('file:///srv/docs/a%20b.txt', 'file:///srv/docs/', None, None)
    """
    raw = os.fsencode(path)
    if raw[:1] != b"/" or b"\0" in raw:
        return None
    folder = folder or raw[-1:] == b"/"
    parts = raw.strip(b"/").split(b"/") if raw.strip(b"/") else []
    if raw.strip(b"/") != raw[1:].removesuffix(b"/") or any(part in (b"", b".", b"..") for part in parts):
        return None
    if not parts and not folder:
        return None
    key = f"{SCHEME}//" + quote_from_bytes(b"/" + b"/".join(parts), SAFE) + ("/" if folder and parts else "")
    return key if len(key) <= MAX_KEY else None


def canonical(text: str) -> str | None:
    """The key that a person means by a text: an absolute path, or a `file:` address; None if it is neither.

    >>> canonical("/srv/docs/"), canonical("file://localhost/srv/%61"), canonical("https://a.example/")
    ('file:///srv/docs/', 'file:///srv/a', None)
    """
    if len(text) > MAX_KEY:
        return None
    try:
        if text.startswith("/"):
            return key_of(text)
        if not text.startswith(SCHEME):
            return None
        host, slash, path = text.removeprefix(SCHEME).removeprefix("//").partition("/")
        if host not in ("", "localhost") or not slash:
            return None
        return key_of(unquote_to_bytes(slash + path))
    except UnicodeEncodeError:
        return None


def path_of(key: str) -> tuple[bytes, bool]:
    """(path, whether a folder is meant) of a key.

    >>> path_of("file:///srv/a%20b"), path_of("file:///srv/")
    ((b'/srv/a b', False), (b'/srv', True))
    """
    path = unquote_to_bytes(key.removeprefix(f"{SCHEME}//"))
    return path.rstrip(b"/") or b"/", path.endswith(b"/")


class Mounts:
    """Which mount a path is on, by the kernel's list alone: a mount that hangs is not touched."""

    def __init__(self, listed: Path = MOUNTS) -> None:
        self._listed = listed
        self._read_at = -MOUNTS_SECONDS
        self._points: tuple[bytes, ...] = (b"/",)

    def of(self, path: bytes) -> bytes:
        """The mount point.

        >>> Mounts(Path("/nowhere")).of(b"/srv/docs/a")
        b'/'
        """
        now = time.monotonic()
        if now - self._read_at >= MOUNTS_SECONDS:
            self._read_at, self._points = now, self._read()
        within = (point for point in self._points if path == point or path.startswith(point.rstrip(b"/") + b"/"))
        return next(within, b"/")

    def _read(self) -> tuple[bytes, ...]:
        """All mount points, the longest first."""
        try:
            lines = self._listed.read_bytes().splitlines()
        except OSError:
            return (b"/",)
        fields = (line.split(b" ") for line in lines)
        points = {_OCTAL.sub(lambda match: bytes([int(match[1], 8)]), each[4]) for each in fields if len(each) > 4}
        return tuple(sorted(points | {b"/"}, key=len, reverse=True))
