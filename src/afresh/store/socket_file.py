"""The unix socket beside a store: where others ask the process that runs on it, and wake it.

A question is one line of JSON, and so is its answer: `{"ask": "page", "url": …}`, and `{"answer": …}` or `{"error": …,
"hint": …}`. Durable things never go this way: they go through the inbox, and the socket only says that they are there.
"""

import json
import os
import socket
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

from afresh.errors import InputError

MAX_ADDRESS_BYTES = 100  # systems allow 104 or 108
MAX_NAME_BYTES = 64
MAX_QUESTION_BYTES = 64 << 10
MAX_ANSWER_BYTES = 4 << 20


def socket_path(store: str | PathLike[str]) -> Path:
    """`<store>.sock`; a short name made from that where it is too long for a socket.

    >>> socket_path("/data/afresh.db").name, len(socket_path("/data/" + 80 * "x").name)
    ('afresh.db.sock', 29)
    """
    path = Path(store).expanduser().resolve()
    name = f"{path.name}.sock"
    if len(os.fsencode(name)) > MAX_NAME_BYTES:
        name = f".afresh-{sha256(os.fsencode(name)).hexdigest()[:16]}.sock"
    return path.with_name(name)


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """A name of the path that is short enough for a socket: by way of its open folder where it is not short itself."""
    if len(os.fsencode(path)) <= MAX_ADDRESS_BYTES:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def listen(path: Path, backlog: int) -> socket.socket:
    """A socket at the path that only its owner can reach. The caller owns the store, so one that is there is stale."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(f"{path} is there and is not a socket")
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _address(path) as address:
            listener.bind(address)
        path.chmod(0o600)  # before it listens: until then nobody can connect
        listener.listen(backlog)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def ask(
    store: str | PathLike[str], question: str, arguments: Mapping[str, Any] | None = None, *, seconds: float = 5.0
) -> Any:
    """What the process that runs on a store answers; None if there is none, or it does not answer in time.

    InputError if it says that the question cannot be answered.
    """
    line = json.dumps({**(arguments or {}), "ask": question}).encode() + b"\n"
    if len(line) > MAX_QUESTION_BYTES:
        raise InputError(f"The question {question!r} is too long.", hint=f"It may have {MAX_QUESTION_BYTES} bytes.")
    try:
        said = _exchange(socket_path(store), line, time.monotonic() + seconds)
        answer = json.loads(said)
    except (OSError, ValueError):
        return None
    if not isinstance(answer, dict):
        return None
    if "error" in answer:
        raise InputError(str(answer["error"]), hint=str(answer.get("hint", "")))
    return answer.get("answer")


def _exchange(path: Path, line: bytes, deadline: float) -> bytes:
    def left() -> float:
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, _address(path) as address:
        connection.settimeout(left())
        connection.connect(address)
        connection.sendall(line)
        said = bytearray()
        while not said.endswith(b"\n") and len(said) <= MAX_ANSWER_BYTES:
            connection.settimeout(left())
            if not (part := connection.recv(1 << 16)):
                break
            said += part
    return bytes(said)


def wake(store: str | PathLike[str]) -> bool:
    """Tell the process that runs on a store to look into its inbox now; False if none does."""
    return ask(store, "wake", seconds=1.0) is not None
