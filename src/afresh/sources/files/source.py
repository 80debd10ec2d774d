"""Files as a source: a key is a path, a lane is a mount, the content is the file, or the names in a folder."""

import asyncio
import mimetypes
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from afresh.sources.base import Known, Later, Runner
from afresh.sources.files.look import Limits, LookFailed, Seen, look, modified_in
from afresh.sources.files.names import SCHEME, Mounts, canonical, key_of, path_of
from afresh.sources.files.notices import SENDER, Notices
from afresh.sources.files.threads import MountHangs, Threads
from afresh.store.messages import TREES
from afresh.types import Answer, Blame, Fetched, Spent, Validators

PURSE = "files"
FOLDER_TYPE = "inode/directory"
ROOTS = TREES  # before the key of a tree: under this name the store has those that somebody added
NEVER_HASHED = 0.0


class Files:
    """Keeps files and folders. `exclude`: names that are left out of folders, with * for anything.

    A file is read if its stat is another one; and, after `hash_every` seconds, even if it is not, since times can lie.
    """

    kind = "files"

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        exclude: Iterable[str] = (),
        hash_every: float = NEVER_HASHED,
        notices: bool = True,
        roots: Iterable[str] = (),
        mounts: Mounts | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.hash_every = hash_every
        self._exclude = [os.fsencode(pattern).decode("latin-1") for pattern in exclude]
        self._listens = notices
        self._roots = set(roots)
        self._mounts = mounts or Mounts()
        self._threads: dict[str, Threads] = {}
        self._notices: dict[str, Notices] = {}
        self._runner: Runner | None = None
        self._treated: set[str] = set()

    def key(self, text: str) -> str | None:
        """The key of an absolute path, or of a `file:` address; a folder's ends with a slash."""
        return canonical(text)

    def lane(self, key: str) -> str:
        """The mount."""
        lane = SCHEME + os.fsdecode(self._mounts.of(path_of(key)[0]))
        lane = lane.encode("utf-8", "backslashreplace").decode()
        if self._runner is not None and lane not in self._treated:
            self._treated.add(lane)
            # It is ours, and the budget says how much may be asked of it.
            self._runner.lanes.treat(lane, replace(self._runner.lanes.politeness, factor=0.0, shortest_gap=0.0))
        return lane

    def purse(self, key: str) -> str:
        """One for all files."""
        return PURSE

    async def get(self, key: str, known: Known) -> Fetched | Later:
        """Look at it in a thread of its mount, and wait no longer than the limits say."""
        path, folder = path_of(key)
        lane, started = self.lane(key), time.time()
        stamp = self._stamp(known, started)
        began = time.monotonic()
        try:
            future = self._threads_of(lane).submit(
                lambda: look(path, folder=folder, known=stamp, limits=self.limits, wanted=self.wants)
            )
            async with asyncio.timeout(self.limits.seconds):
                seen = await asyncio.wrap_future(future)
        except LookFailed as error:
            return self._failed(key, started, time.monotonic() - began, error)
        except (TimeoutError, MountHangs):
            hangs = LookFailed(Answer.BUSY, "mount_hangs", Blame.LANE)
            return self._failed(key, started, time.monotonic() - began, hangs)
        took = time.monotonic() - began
        if seen.body is not None and folder:  # it may have very many entries
            return await asyncio.to_thread(self._content, key, path, folder, started, took, seen)
        return self._content(key, path, folder, started, took, seen)

    def _stamp(self, known: Known, now: float) -> str:
        """The stamp at which a file need not be read; "": it is read whatever its stamp is."""
        if known.fetched is None or not known.validators.fingerprint:
            return ""
        if self.hash_every and now - known.fetched > self.hash_every:
            return ""
        return known.validators.etag

    def _content(self, key: str, path: bytes, folder: bool, started: float, took: float, seen: Seen) -> Fetched:
        if seen.body is None:
            return Fetched(key, started, took, answer=Answer.SAME, blame=Blame.KEY, spent=Spent(took, 0))
        kind = FOLDER_TYPE if folder else mimetypes.guess_type(os.fsdecode(path))[0] or "application/octet-stream"
        leads = [key_of(_join(path, name)) for name in seen.files]
        leads += [key_of(_join(path, name), folder=True) for name in seen.folders]
        return Fetched(
            key,
            started,
            took,
            body=seen.body,
            content_type=kind,
            validators=Validators(etag=seen.stamp),
            answer=Answer.NEW,
            blame=Blame.KEY,
            received=len(seen.body),
            spent=Spent(took, len(seen.body)),
            meta={"modified": repr(seen.modified)},
            leads=tuple(lead for lead in leads if lead is not None),
        )

    @staticmethod
    def _failed(key: str, started: float, took: float, error: LookFailed) -> Fetched:
        leads: tuple[str, ...] = ()
        if error.became:
            other = key_of(path_of(key)[0], folder=error.became == "folder")
            leads = () if other is None else (other,)
        spent = Spent(took, 0)
        return Fetched(
            key, started, took, answer=error.answer, reason=error.reason, blame=error.blame, spent=spent, leads=leads
        )

    def wants(self, name: bytes) -> bool:
        """Whether an entry of a folder is one that is kept."""
        text = name.decode("latin-1")
        return not any(fnmatchcase(text, pattern) for pattern in self._exclude)

    def dated(self, validators: Validators, now: float) -> float | None:
        """When a file was last written, by its own word."""
        modified = modified_in(validators.etag)
        return None if modified is None or modified > now else modified

    def _threads_of(self, lane: str) -> Threads:
        threads = self._threads.get(lane)
        if threads is None:
            threads = self._threads[lane] = Threads(lane, self.limits.seconds)
        return threads

    # --- with a runner ---

    async def begin(self, runner: Runner) -> None:
        """Listen to what the operating system says of trees."""
        self._runner = runner
        for root in sorted(self._roots):
            self._listen(root)

    def take(self) -> Mapping[str, str | None]:
        """There is nothing to keep."""
        return {}

    def said(self, name: str, text: str | None) -> None:
        """A tree was added, or is gone."""
        if not name.startswith(ROOTS):
            return
        root = self.key(name.removeprefix(ROOTS))
        if root is None:
            return
        if text is None:
            self._roots.discard(root)
            if (notices := self._notices.pop(root, None)) is not None:
                notices.stop()
        elif root not in self._roots:
            self._roots.add(root)
            self._listen(root)

    def _listen(self, root: str) -> None:
        if self._runner is None or not self._listens or root in self._notices:
            return
        loop = asyncio.get_running_loop()

        def hear(changed: Mapping[bytes, bool]) -> None:
            loop.call_soon_threadsafe(self._hear, changed)

        self._notices[root] = notices = Notices(path_of(root)[0], hear)
        notices.start()

    def _hear(self, changed: Mapping[bytes, bool]) -> None:
        """These paths have changed; of those that have come or gone, their folders have."""
        if (runner := self._runner) is None:
            return
        folders = {path.rpartition(b"/")[0] or b"/" for path, comes_or_goes in changed.items() if comes_or_goes}
        keys = [key_of(path) for path in changed] + [key_of(path, folder=True) for path in folders]
        for key in keys:
            if key is not None:
                runner.hint(key, SENDER)
                runner.looks_again(key)

    async def close(self) -> None:
        """End all threads; those that hang end when they come back."""
        for notices in self._notices.values():
            notices.stop()
        self._notices.clear()
        for threads in self._threads.values():
            threads.close()
        self._threads.clear()


def _join(folder: bytes, name: bytes) -> bytes:
    return folder.rstrip(b"/") + b"/" + name
