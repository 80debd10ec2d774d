"""The right to run on a store: a lock of the writing session, and a token that every write proves."""

import os
import socket
import time
from typing import Any

from afresh.errors import StoreLocked
from afresh.store.postgres import statements as sql
from afresh.store.postgres.link import Connection

BRIEF = " briefly"  # behind a holder that has the claim for a moment only
RETRY_SECONDS = 0.02
ENDING_SECONDS = 0.25  # that the server may take to notice that a process was killed


class Claim:
    """A single runner's right, held by at most one process.

    The lock lives as long as the session that writes. The token tells a session that comes back after its connection
    was lost whether another process was there meanwhile.
    """

    part = -1

    def __init__(self, where: object) -> None:
        self.where = where
        self.token = 0  # 0: not held

    @property
    def held(self) -> bool:
        """Whether this process has it."""
        return self.token > 0

    def take(self, connection: Connection, *, brief: bool, patience: float) -> None:
        """Claim the store; one who holds it for a `brief` moment only is waited for, for `patience` seconds."""
        began = time.monotonic()
        while not _one(connection, sql.TAKE_RUN):
            holder = str(_one(connection, sql.HOLDER))
            is_brief = holder.endswith(BRIEF) or not holder
            if _one(connection, sql.LEASED):
                raise self._cluster()
            if time.monotonic() - began >= (patience if is_brief else ENDING_SECONDS):
                raise self.taken(holder.removesuffix(BRIEF))
            time.sleep(RETRY_SECONDS)
        if _one(connection, sql.LEASED):
            connection.execute(sql.LET_GO)
            raise self._cluster()
        holder = f"process {os.getpid()} on {socket.gethostname()}{BRIEF if brief else ''}"
        self.token = int(_one(connection, sql.CLAIM, (holder,)))
        if not brief:
            connection.execute(sql.FORGET_WORKERS)

    def take_again(self, connection: Connection, patience: float) -> None:
        """Go on in a new session; StoreLocked if another process was faster."""
        deadline = time.monotonic() + patience
        while not _one(connection, sql.TAKE_RUN):  # until the server has ended the old session
            if time.monotonic() >= deadline:
                raise self.taken(str(_one(connection, sql.HOLDER)))
            time.sleep(RETRY_SECONDS)
        self.prove(connection)

    def release(self, connection: Connection) -> None:
        """Let another process have it."""
        if self.held:
            connection.execute(sql.LET_GO)

    def prove(self, connection: Connection) -> None:
        """StoreLocked if somebody else has claimed the store since."""
        if _one(connection, sql.TOKEN, (self.part,)) != self.token:
            raise self.taken(str(_one(connection, sql.HOLDER)))

    def taken(self, holder: str = "") -> StoreLocked:
        """What is said where somebody else has it."""
        return StoreLocked(
            f"Another afresh ({holder or 'unknown'}) runs on {self.where}.",
            hint="Stop it first, or give this one a store of its own.",
        )

    def _cluster(self) -> StoreLocked:
        return StoreLocked(
            f"A cluster runs on {self.where}.", hint="Stop it first: afresh cluster stop; or use `afresh cluster`."
        )


class Lease(Claim):
    """A worker's right to write for its part of a cluster: until a moment, by the server's clock."""

    def __init__(self, where: object, part: int, token: int) -> None:
        super().__init__(where)
        self.part = part
        self.token = token

    def take(self, connection: Connection, *, brief: bool, patience: float) -> None:
        """It was taken before."""
        self.prove(connection)

    def take_again(self, connection: Connection, patience: float) -> None:
        """Go on in a new session, if it is still ours."""
        self.prove(connection)

    def release(self, connection: Connection) -> None:
        """Who took it lets go of it."""

    def taken(self, holder: str = "") -> StoreLocked:
        """What is said where the lease is over."""
        return StoreLocked(
            f"Worker {self.part} of the cluster on {self.where} has lost its lease.",
            hint="Another one takes its place, or this one again.",
        )


def _one(connection: Connection, statement: str, values: tuple[Any, ...] = ()) -> Any:
    found = connection.execute(statement.encode(), values).fetchone()
    return found[0] if found else None
