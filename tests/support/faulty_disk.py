"""A disk that fails, and processes that die, at a chosen operation on it."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw


class Disk(apsw.VFS):
    """SQLite's own file layer, with a word to say before every operation that changes the disk."""

    def __init__(self, before: Callable[[str, str], None]) -> None:
        self.before = before
        super().__init__("disk", "unix", makedefault=True)

    def xOpen(self, name, flags):  # type: ignore[no-untyped-def]  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if flags[0] & apsw.SQLITE_OPEN_CREATE and path and not Path(path).exists():
            self.before("create", path)
        return File(self, name, flags, path or "")

    def xDelete(self, path, sync):  # type: ignore[no-untyped-def]  # noqa: N802
        self.before("delete", path)
        super().xDelete(path, sync)


class File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: object, flags: list[int], path: str) -> None:
        self.disk, self.path = disk, path
        super().__init__("unix", name, flags)  # type: ignore[arg-type]

    def xWrite(self, data, offset):  # type: ignore[no-untyped-def]  # noqa: N802
        try:
            self.disk.before("write", self.path)
        except BaseException:
            super().xWrite(data[: len(data) // 2], offset)  # a torn write
            raise
        super().xWrite(data, offset)

    def xSync(self, flags):  # type: ignore[no-untyped-def]  # noqa: N802
        self.disk.before("sync", self.path)
        super().xSync(flags)

    def xTruncate(self, size):  # type: ignore[no-untyped-def]  # noqa: N802
        self.disk.before("truncate", self.path)
        super().xTruncate(size)


@contextmanager
def disk(before: Callable[[str, str], None]) -> Iterator[None]:
    vfs = Disk(before)
    try:
        yield
    finally:
        vfs.unregister()


def in_child(work: Callable[[], None]) -> int:
    """Run something in a forked process; 0 if it ended, 9 if it was killed."""
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            work()
            os._exit(0)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def killed_at(nth: int, work: Callable[[], None]) -> bool:
    """Whether work in a process of its own, killed before its n-th operation on the disk, came that far."""

    def doomed() -> None:
        count = 0

        def before(operation: str, path: str) -> None:
            nonlocal count
            count += 1
            if count == nth:
                os.kill(os.getpid(), signal.SIGKILL)

        with disk(before):
            work()

    code = in_child(doomed)
    assert code in (0, -signal.SIGKILL), code
    return code != 0
