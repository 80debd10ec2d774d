"""Looks at one file or folder: all system calls that may block are here, and run in a thread of the mount.

No part of a path may be a symbolic link: each is opened in the one before it, so that nobody can exchange one
meanwhile. So a tree is never left, whatever is written into it. What a link within the tree leads to has a path of its
own.
"""

import errno
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from afresh.types import Answer, Blame

PIECE_BYTES = 1 << 20  # that are read at once
TRIES = 3  # to read a file that is written meanwhile
TRY_AGAIN = 0.05  # seconds
RACY_SECONDS = 2.0  # a change within this time of the last one may leave the times of a file as they are
MAX_ENTRIES = 1_000_000  # of a folder
UNSURE = "~"  # at the end of a stamp: the file may have changed since without another stamp

_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_READ = _OPEN | os.O_NONBLOCK | os.O_NOCTTY
_FOLDER = _OPEN | os.O_DIRECTORY
_PASS = getattr(os, "O_PATH", 0) | _FOLDER  # a folder that is passed through need not be readable

# What is no fault of the file: everything else on its mount would fail as well.
_OF_MOUNT = {
    errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENOTCONN, errno.ENXIO,
    errno.ENODEV, errno.ENETDOWN, errno.ENETUNREACH, errno.ECONNREFUSED, errno.ECONNRESET,
}  # fmt: skip


class LookFailed(Exception):
    """Nothing was read: what to answer, a word that says why, and whose fault it is."""

    def __init__(self, answer: Answer, reason: str, blame: Blame = Blame.KEY, *, became: str = "") -> None:
        super().__init__(reason)
        self.answer, self.reason, self.blame, self.became = answer, reason, blame, became


@dataclass(frozen=True, slots=True)
class Limits:
    """What one look may take."""

    seconds: float = 30.0  # that a mount may take to answer
    bytes: int = 16 << 20  # of a file; larger ones are not kept


@dataclass(frozen=True, slots=True)
class Seen:
    """What is there. Without `body` the stamp is the one that was known."""

    stamp: str
    size: int
    modified: float
    body: bytes | None = None
    files: tuple[bytes, ...] = ()  # of a folder: names
    folders: tuple[bytes, ...] = ()


def look(path: bytes, *, folder: bool, known: str, limits: Limits, wanted: Callable[[bytes], bool]) -> Seen:
    """Look at a path: LookFailed if there is nothing to be read. `known` is the stamp of what is kept; "": read it.

    Entries of a folder that are not `wanted` are left out.
    """
    try:
        *parents, name = path.strip(b"/").split(b"/") if path.strip(b"/") else [b"."]
        within = _walk(parents)
        try:
            return _look(within, name, folder=folder, known=known, limits=limits, wanted=wanted)
        finally:
            os.close(within)
    except OSError as error:
        _fail(error)


def _fail(error: OSError) -> NoReturn:
    number = error.errno or 0
    if number == errno.ENOENT:
        raise LookFailed(Answer.GONE, "no_such_file") from None
    if number in (errno.EACCES, errno.EPERM):
        raise LookFailed(Answer.REFUSED, "no_permission") from None
    if number == errno.ELOOP:
        raise LookFailed(Answer.REFUSED, "symlink") from None
    if number in _OF_MOUNT:
        raise LookFailed(Answer.BUSY, errno.errorcode.get(number, "error").lower(), Blame.LANE) from None
    if number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
        raise LookFailed(Answer.FAILED, errno.errorcode[number].lower(), Blame.NOBODY) from None
    raise LookFailed(Answer.FAILED, errno.errorcode.get(number, "error").lower()) from None


def _walk(parents: list[bytes]) -> int:
    """The folder that a path is in, open; no part of the way is a link."""
    at = os.open(b"/", _FOLDER)
    try:
        for part in parents:
            try:
                following = os.open(part, _PASS, dir_fd=at)
            except NotADirectoryError:
                link = stat.S_ISLNK(os.stat(part, dir_fd=at, follow_symlinks=False).st_mode)
                raise LookFailed(
                    Answer.REFUSED if link else Answer.GONE, "symlink" if link else "no_such_file"
                ) from None
            os.close(at)
            at = following
    except BaseException:
        os.close(at)
        raise
    return at


def _look(
    within: int, name: bytes, *, folder: bool, known: str, limits: Limits, wanted: Callable[[bytes], bool]
) -> Seen:
    now, found = time.time(), os.stat(name, dir_fd=within, follow_symlinks=False)
    mode = found.st_mode
    if stat.S_ISLNK(mode):
        raise LookFailed(Answer.REFUSED, "symlink")
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise LookFailed(Answer.REFUSED, "special_file")
    if stat.S_ISDIR(mode) != folder:
        became = "folder" if stat.S_ISDIR(mode) else "file"
        raise LookFailed(Answer.GONE, f"is_a_{became}", became=became)
    stamp = stamp_of(found, now)
    if known and not known.endswith(UNSURE) and stamp == known:
        return Seen(stamp, found.st_size, found.st_mtime)
    return _listed(within, name, wanted) if folder else _read(within, name, limits)


def stamp_of(found: os.stat_result, now: float) -> str:
    """Size, times and number of a file as text: another one whenever the file is, but for what times cannot show."""
    newest = max(found.st_mtime, found.st_ctime)
    unsure = UNSURE if newest > now - RACY_SECONDS else ""
    return f"{found.st_size}-{found.st_mtime_ns}-{found.st_ctime_ns}-{found.st_ino}{unsure}"


def modified_in(stamp: str) -> float | None:
    """When a file was last written, by its stamp; None if it is none.

    >>> modified_in("5-1700000000500000000-1700000000500000000-77")
    1700000000.5
    """
    parts = stamp.rstrip(UNSURE).split("-")
    return int(parts[1]) / 1e9 if len(parts) == 4 and parts[1].isdecimal() and len(parts[1]) < 21 else None


def _read(within: int, name: bytes, limits: Limits) -> Seen:
    """The content of a file as of one moment, as far as anybody can tell."""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(TRY_AGAIN)
        file = os.open(name, _READ, dir_fd=within)
        try:
            now, before = time.time(), os.fstat(file)
            if not stat.S_ISREG(before.st_mode):
                raise LookFailed(Answer.REFUSED, "special_file")
            if before.st_size > limits.bytes:
                raise LookFailed(Answer.FAILED, "file_too_large")
            # What grows meanwhile, as a log does, was whole when we came; some systems do not know sizes beforehand.
            body = _content(file, before.st_size or limits.bytes + 1)
            if len(body) > limits.bytes:
                raise LookFailed(Answer.FAILED, "file_too_large")
            after = os.fstat(file)
        finally:
            os.close(file)
        seen = Seen(stamp_of(before, now), before.st_size, before.st_mtime, body)
        if stamp_of(after, now) == seen.stamp:
            return seen
    if after.st_size > before.st_size and len(body) == before.st_size:
        stamp = seen.stamp if seen.stamp.endswith(UNSURE) else seen.stamp + UNSURE
        return Seen(stamp, before.st_size, before.st_mtime, body)
    raise LookFailed(Answer.FAILED, "changes_meanwhile")


def _content(file: int, most: int) -> bytes:
    """So many bytes of it, or all if it has fewer."""
    pieces, left = [], most
    while left > 0 and (piece := os.read(file, min(left, PIECE_BYTES))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _listed(within: int, name: bytes, wanted: Callable[[bytes], bool]) -> Seen:
    """What is in a folder: a line for each entry, in order; a folder's ends with a slash, a link's with @."""
    at = os.open(name, _FOLDER, dir_fd=within)
    try:
        now, before = time.time(), os.fstat(at)
        files, folders, lines = [], [], []
        with os.scandir(at) as entries:
            for nth, entry in enumerate(entries):
                if nth >= MAX_ENTRIES:
                    raise LookFailed(Answer.FAILED, "too_many_entries")
                raw = os.fsencode(entry.name)
                if not wanted(raw):
                    continue
                sort = b""
                if entry.is_symlink():
                    sort = b"@"
                elif entry.is_dir(follow_symlinks=False):
                    sort = b"/"
                    folders.append(raw)
                elif entry.is_file(follow_symlinks=False):
                    files.append(raw)
                else:
                    sort = b"|"
                lines.append(raw.replace(b"\n", b"\\n") + sort + b"\n")
    finally:
        os.close(at)
    body = b"".join(sorted(lines))
    stamp = stamp_of(before, now)
    return Seen(stamp, len(lines), before.st_mtime, body, tuple(sorted(files)), tuple(sorted(folders)))
