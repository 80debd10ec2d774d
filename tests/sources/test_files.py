"""Files and folders as a source: the battery, and what may be found on a disk."""

import asyncio
import os
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from afresh.detect.fingerprint import mark
from afresh.sources import Known
from afresh.sources.files import Files, Limits, key_of
from afresh.sources.files import source as module
from afresh.sources.files.look import modified_in
from afresh.sources.files.names import Mounts
from afresh.testing import SourceWorld, check_source
from afresh.types import Answer, Blame, Fetched

NOBODY = 65534


def got(source: Files, path: Path | str, known: Known | None = None, *, folder: bool = False) -> Fetched:
    key = key_of(str(path), folder=folder)
    assert key is not None
    fetched = asyncio.run(source.get(key, known or Known()))
    assert isinstance(fetched, Fetched)
    return fetched


def known_of(fetched: Fetched) -> Known:
    """As if its content were the copy."""
    return Known(replace(fetched.validators, fingerprint=mark(fetched.body)), fetched.started, fetched.started)


def write(path: Path, text: str, *, ago: float = 100.0) -> None:
    """Write a file that was last changed some time ago."""
    path.write_text(text)
    os.utime(path, (time.time() - ago,) * 2)


@pytest.mark.parametrize("folder", [False, True])
def test_the_battery(folder: bool, tmp_path: Path) -> None:
    def world() -> SourceWorld:
        tree = tmp_path / "tree"
        tree.mkdir()
        (tree / "a b.txt").write_text("one")

        def change() -> None:
            (tree / "a b.txt").write_text("two")
            (tree / "more").mkdir()

        def remove() -> None:
            (tree / "a b.txt").unlink()
            (tree / "more").rmdir()
            tree.rmdir()

        text = f"{tree}/" if folder else f"file://{tree}/a%20b.txt"
        return SourceWorld(Files(), text, "https://a.example/", change, remove, missing=f"{tmp_path}/nothing")

    check_source(world)


def test_a_file_is_read_only_if_its_stat_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.sources.files.look.RACY_SECONDS", 0.0)
    path, source = tmp_path / "a.txt", Files()
    write(path, "one")
    first = got(source, path)
    assert (first.body, first.content_type, first.cost.bytes) == (b"one", "text/plain", 3)
    assert modified_in(first.validators.etag) == pytest.approx(time.time() - 100.0, abs=5.0)
    again = got(source, path, known_of(first))
    assert (again.answered, again.cost.bytes, again.cost.calls) == (Answer.SAME, 0, 1)
    write(path, "two", ago=100.0)  # the same size, and a time that is as old: the inode's own time gives it away
    assert got(source, path, known_of(first)).body == b"two"


def test_times_that_lie_are_found_out_by_reading_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there has the stamp of what was kept, and other content: as after a write through a memory map on a mount
    that does not note it, or a clock that was set back."""
    monkeypatch.setattr("afresh.sources.files.look.RACY_SECONDS", 0.0)
    path = tmp_path / "a.txt"
    write(path, "two")
    stamp = got(Files(), path).validators
    an_hour_ago = time.time() - 3600
    lied_to = Known(replace(stamp, fingerprint=mark(b"one")), an_hour_ago, time.time())
    assert got(Files(), path, lied_to).answered is Answer.SAME  # nobody can know
    assert got(Files(hash_every=7200), path, lied_to).answered is Answer.SAME
    assert got(Files(hash_every=1800), path, lied_to).body == b"two"


def test_a_file_that_has_just_been_written_is_read_again(tmp_path: Path) -> None:
    """Two writes within a tick of the clock leave the same times: what is that new is never taken for the same."""
    path, source = tmp_path / "a.txt", Files()
    path.write_text("one")
    first = got(source, path)
    assert got(source, path, known_of(first)).answered is Answer.NEW
    write(path, "one")
    assert got(source, path).validators.etag.endswith("~")  # its inode's own time is new


def test_a_folder_leads_to_what_is_in_it(tmp_path: Path) -> None:
    for name in ("b.txt", "a\nb", "\udcff.bin", ".hidden", "x~"):
        (tmp_path / name).write_text("")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    source = Files(exclude=[".*", "*~"])
    seen = got(source, tmp_path, folder=True)
    assert seen.body == b"a\\nb\nb.txt\nlink@\npipe|\nsub/\n\xff.bin\n"
    names = ["a%0Ab", "b.txt", "%FF.bin", "sub/"]
    assert list(seen.leads) == [f"file://{tmp_path}/{name}" for name in names]
    assert all(source.key(lead) == lead for lead in seen.leads)


def test_what_is_no_plain_file_is_an_outcome(tmp_path: Path) -> None:
    """Links, fifos, sockets, devices, folders and files in each other's place: none hangs, and none is followed."""
    source = Files()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.txt").write_text("secret")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "file-link").symlink_to(tmp_path / "secret" / "a.txt")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "plain").write_text("x")
    refused = {
        "link": "symlink",
        "file-link": "symlink",
        "link/a.txt": "symlink",  # out of the tree, for all that anybody knows
        "pipe": "special_file",
    }
    for name, reason in refused.items():
        fetched = got(source, tmp_path / name)
        assert (fetched.answered, fetched.reason, fetched.blame) == (Answer.REFUSED, reason, Blame.KEY), name
    assert got(source, "/dev/zero").reason == "special_file"
    became = got(source, tmp_path / "secret")
    assert (became.answered, became.reason) == (Answer.GONE, "is_a_folder")
    assert became.leads == (f"file://{tmp_path}/secret/",)
    back = got(source, tmp_path / "plain", folder=True)
    assert (back.answered, back.reason, back.leads) == (Answer.GONE, "is_a_file", (f"file://{tmp_path}/plain",))
    assert got(source, tmp_path / "plain" / "a.txt").reason == "no_such_file"


def test_large_growing_and_changing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"x" * 101)
    large = got(Files(limits=Limits(bytes=100)), path)
    assert (large.answered, large.reason) == (Answer.FAILED, "file_too_large")

    def meanwhile(change: Callable[[], object]) -> Fetched:
        """While it is read, something happens to it."""
        read = os.read

        def spoilt(file: int, size: int) -> bytes:
            found = read(file, size)
            if found and stat.S_ISREG(os.fstat(file).st_mode):
                change()
            return found

        with monkeypatch.context() as patched:
            patched.setattr("afresh.sources.files.look.os.read", spoilt)
            return got(Files(limits=Limits(bytes=10_000)), path)

    def grow() -> None:
        with path.open("ab") as file:
            file.write(b"y")

    path.write_bytes(b"x" * 5)
    grown = meanwhile(grow)
    assert grown.answered is Answer.NEW
    assert grown.body.startswith(b"xxxxx")
    assert grown.validators.etag.endswith("~")
    path.write_bytes(b"x" * 5)
    moments = iter(range(1_000_000_000, 2_000_000_000, 1_000_000))
    torn = meanwhile(lambda: os.utime(path, (next(moments),) * 2))
    assert (torn.answered, torn.reason) == (Answer.FAILED, "changes_meanwhile")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_what_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write(path, "one")
    for folder in (tmp_path, *tmp_path.parents):
        if folder != Path("/") and folder.stat().st_uid == os.geteuid() and folder != Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o711)
    source = Files()
    first = got(source, path)
    path.chmod(0)
    os.seteuid(NOBODY)
    try:
        denied = got(source, path, known_of(first))
    finally:
        os.seteuid(0)
    assert (denied.answered, denied.reason, denied.blame) == (Answer.REFUSED, "no_permission", Blame.KEY)
    path.chmod(0o644)
    assert got(source, path, known_of(first)).body == b"one"


def test_a_mount_that_hangs_holds_up_itself_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = tmp_path / "mountinfo"
    slow, quick = tmp_path / "slow mount", tmp_path / "quick"
    for folder in (slow, quick):
        folder.mkdir()
        (folder / "a.txt").write_text("one")
    escaped = str(slow).replace(" ", "\\040")
    listed.write_text(f"22 1 8:1 / / rw - ext4 /dev/x rw\n23 22 0:42 / {escaped} rw - nfs server:/x rw\n")
    source, look, over = Files(limits=Limits(seconds=0.2), mounts=Mounts(listed)), module.look, threading.Event()

    def hanging(path: bytes, **more: object) -> object:
        if b"slow" in path:
            over.wait(20)
        return look(path, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("afresh.sources.files.source.look", hanging)
    try:
        lanes = [source.lane(key_of(str(folder / "a.txt")) or "") for folder in (slow, quick)]
        assert lanes == [f"file:{slow}", "file:/"]
        began, before = time.monotonic(), threading.active_count()
        for _ in range(8):
            failed = got(source, slow / "a.txt")
            assert (failed.answered, failed.reason, failed.blame) == (Answer.BUSY, "mount_hangs", Blame.LANE)
        assert time.monotonic() - began < 1.6  # once all its threads hang, nobody waits any more
        assert threading.active_count() <= before + 4
        assert got(source, quick / "a.txt").body == b"one"
    finally:
        over.set()
    deadline = time.monotonic() + 10
    while got(source, slow / "a.txt").body != b"one":
        assert time.monotonic() < deadline
        time.sleep(0.05)
