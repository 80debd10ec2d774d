"""The socket beside a store: where it is, who may reach it, and what it does with strangers' bytes."""

import asyncio
import json
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from afresh.daemon import answers
from afresh.daemon.answers import Answers
from afresh.errors import InputError
from afresh.store.socket_file import MAX_QUESTION_BYTES, ask, socket_path, wake


class Serving:
    """Answers in a thread of its own."""

    def __init__(self, path: Path) -> None:
        self.woken = 0
        self.answers = Answers(path, {"wake": self.wake, "echo": dict, "fails": self.fails, "refuses": self.refuses})
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda _, __: None)
        self.thread = threading.Thread(target=self.loop.run_forever)

    def wake(self, _: Any) -> dict[str, Any]:
        self.woken += 1
        return {}

    def fails(self, _: Any) -> None:
        raise ZeroDivisionError

    def refuses(self, _: Any) -> None:
        raise InputError("No such page.", hint="Add it.")

    def __enter__(self) -> "Serving":
        self.thread.start()
        asyncio.run_coroutine_threadsafe(self.answers.open(), self.loop).result(5)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self.answers.close(), self.loop).result(5)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
def serving(store: Path) -> Iterator[Serving]:
    with Serving(socket_path(store)) as served:
        yield served


def connect(store: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(5)
    connection.connect(str(socket_path(store)))
    return connection


def test_a_question_is_answered_and_the_runner_woken(store: Path, serving: Serving) -> None:
    assert ask(store, "echo", {"url": "ü", "number": 1}) == {"url": "ü", "number": 1}
    assert wake(store)
    assert serving.woken == 1


def test_it_is_its_owners_alone_and_goes_when_it_closes(store: Path) -> None:
    before = os.umask(0)
    try:
        with Serving(socket_path(store)):
            mode = socket_path(store).stat().st_mode
            assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
    finally:
        os.umask(before)
    assert not socket_path(store).exists()


def test_nobody_there_is_no_answer(store: Path) -> None:
    assert ask(store, "echo") is None
    assert not wake(store)


def test_a_socket_that_a_killed_runner_left_is_replaced(store: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(socket_path(store)))
    left.close()
    assert not wake(store)
    with Serving(socket_path(store)):
        assert wake(store)


def test_a_file_in_its_place_is_left_alone(store: Path) -> None:
    socket_path(store).write_text("mine")
    with Serving(socket_path(store)):
        assert not wake(store)
    assert socket_path(store).read_text() == "mine"


@pytest.mark.parametrize(("folder", "name"), [("d" * 150, "s.db"), ("d" * 150, "n" * 200), ("d", "n" * 240)])
def test_paths_too_long_for_a_socket_work(tmp_path: Path, folder: str, name: str) -> None:
    (tmp_path / folder).mkdir()
    store = tmp_path / folder / name
    with Serving(socket_path(store)):
        assert ask(store, "echo", {"a": 1}) == {"a": 1}
    assert list((tmp_path / folder).iterdir()) == []


def test_what_cannot_be_answered_is_said_in_a_sentence(store: Path, serving: Serving) -> None:
    with pytest.raises(InputError, match=r"No such page\. Add it\."):
        ask(store, "refuses")
    with pytest.raises(InputError, match="could not be answered"):
        ask(store, "fails")
    with pytest.raises(InputError, match="Known are echo, fails, refuses, wake"):
        ask(store, "nonsense")
    with pytest.raises(InputError, match="too long"):
        ask(store, "echo", {"x": "y" * MAX_QUESTION_BYTES})
    assert wake(store)


@pytest.mark.parametrize(
    "garbage",
    [b"\0\xff\xfe" * 100 + b"\n", b"[]\n", b"{}\n", b'{"ask": []}\n', b"[" * 60_000 + b"\n", b"1e999\n", b"\n"],
)
def test_garbage_is_answered_by_a_sentence(store: Path, serving: Serving, garbage: bytes) -> None:
    with connect(store) as connection:
        connection.sendall(garbage)
        assert "error" in json.loads(connection.recv(1 << 16))
    assert wake(store)


def test_a_line_without_end_is_cut_off(store: Path, serving: Serving) -> None:
    with connect(store) as connection:
        try:
            for _ in range(100):
                connection.sendall(b"x" * MAX_QUESTION_BYTES)
            raise AssertionError("it took six megabytes of a question")
        except OSError:
            pass
    assert wake(store)


def test_many_connections_and_slow_ones_lock_nobody_out(
    store: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MAX_LINE_SECONDS", 0.3)
    open_ones = []
    for _ in range(answers.MAX_CONNECTIONS + 20):
        try:
            open_ones.append(connect(store))
            open_ones[-1].sendall(b'{"ask')
        except OSError:
            continue
    time.sleep(0.5)
    assert wake(store), "those who say nothing are let go"
    assert not serving.answers._open or len(serving.answers._open) <= 1
    for each in open_ones:
        each.close()
