"""Answers from the runner's memory, over the unix socket beside the store: named questions, one line of JSON each."""

import asyncio
import inspect
import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from afresh.errors import AfreshError
from afresh.store.socket_file import MAX_ANSWER_BYTES, MAX_QUESTION_BYTES, listen
from afresh.units import as_json

_log = logging.getLogger("afresh.socket")

Question = Callable[[Mapping[str, Any]], Any]  # arguments to what is answered, or to an awaitable of that

MAX_CONNECTIONS = 32  # at once; more are closed
MAX_LINE_SECONDS = 5.0  # for a question to come, and for its answer to be taken
MAX_QUESTIONS = 1_000  # of one connection


class Answers:
    """Listens beside a store and answers named questions.

    Invariants: nobody but the owner of the store can connect; no connection holds more than one question and one answer
    in memory, nor for longer than `MAX_LINE_SECONDS`; a question that fails is answered by a sentence.
    """

    def __init__(self, path: Path, questions: Mapping[str, Question]) -> None:
        self.path = path
        self.questions = questions
        self._server: asyncio.Server | None = None
        self._inode: int | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Begin to listen; without a socket everything works but answers from memory, and later."""
        try:
            listener = listen(self.path, MAX_CONNECTIONS)
            self._inode = self.path.stat().st_ino
            self._server = await asyncio.start_unix_server(self._connected, sock=listener, limit=MAX_QUESTION_BYTES)
        except OSError as error:
            _log.warning("There is no socket at %s (%s): commands are heard within a second.", self.path, error)

    async def close(self) -> None:
        """Stop listening; the socket's file goes, if it is still ours."""
        if self._server is None:
            return
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        with suppress(OSError):
            if self.path.stat().st_ino == self._inode:
                self.path.unlink()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._open) >= MAX_CONNECTIONS:
            writer.close()
            return
        self._open.add(task)
        try:
            with suppress(TimeoutError, OSError, asyncio.CancelledError):
                await self._converse(reader, writer)
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(MAX_QUESTIONS):
            async with asyncio.timeout(MAX_LINE_SECONDS):
                try:
                    line = await reader.readline()
                except ValueError:  # longer than the limit: what follows is the middle of a line
                    await _say(writer, {"error": f"A question has at most {MAX_QUESTION_BYTES} bytes.", "hint": ""})
                    return
                if not line.endswith(b"\n"):
                    return
                await _say(writer, await self._answer(line))

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            arguments = json.loads(line)
            question = self.questions.get(str(arguments.pop("ask")))
        except (ValueError, TypeError, RecursionError, AttributeError, KeyError):
            return {"error": "This is not a question.", "hint": 'Send one line of JSON: {"ask": "status"}'}
        if question is None:
            return {"error": "Nobody knows this question.", "hint": f"Known are {', '.join(sorted(self.questions))}."}
        try:
            answer = question(arguments)
            return {"answer": await answer if inspect.isawaitable(answer) else answer}
        except AfreshError as error:
            return {"error": error.message, "hint": error.hint}
        except Exception as error:
            asyncio.get_running_loop().call_exception_handler({"message": "an answer failed", "exception": error})
            return {"error": "The question could not be answered.", "hint": "See the log."}


async def _say(writer: asyncio.StreamWriter, answer: Mapping[str, Any]) -> None:
    line = as_json(answer).encode()
    if len(line) >= MAX_ANSWER_BYTES:
        line = as_json({"error": "The answer is too long.", "hint": "Ask for less."}).encode()
    writer.write(line + b"\n")
    await writer.drain()
