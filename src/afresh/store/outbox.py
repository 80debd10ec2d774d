"""Messages to those who are told of changes, until they are delivered; and how far each rule has read.

Invariant: a message enters in the transaction that moves its rule past the change, and leaves once it was delivered or
given up: whatever kills the process, each change makes its message once, and no message is lost.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from afresh.store.base import LastingStore
from afresh.store.faults import moment, transaction
from afresh.store.rows import untext
from afresh.store.sqlite import Sqlite

WAITING, GATHERED, DEAD = "waiting", "gathered", "dead"
MAX_DEAD = 1_000  # messages of a rule that were given up and are kept; the oldest leave

_SEEN = "SELECT name, position, delivered, failures, problem, since, last FROM notifiers"
_COUNTS = "SELECT rule, state, count(*) FROM outbox GROUP BY rule, state"
_BEGIN = """INSERT INTO notifiers (name, position) VALUES (?, (SELECT crawls FROM {written}))
  ON CONFLICT (name) DO NOTHING"""
_MOVE = "UPDATE notifiers SET position = ? WHERE name = ?"
_ADD = "INSERT INTO outbox (rule, state, id, made, due, body) VALUES (?, ?, ?, ?, ?, ?)"
_MESSAGES = """SELECT number, rule, state, id, made, due, tries, problem, body FROM outbox
  WHERE rule = ? AND state = ? ORDER BY number LIMIT ?"""
_DELETE = "DELETE FROM outbox WHERE number = ?"
_DELIVERED = """UPDATE notifiers SET delivered = delivered + 1, failures = 0, problem = '', since = NULL, last = ?
  WHERE name = ?"""
_FAILED = "UPDATE notifiers SET failures = failures + 1, problem = ?, since = coalesce(since, ?) WHERE name = ?"
_PUT_OFF = "UPDATE outbox SET tries = tries + 1, due = ?, problem = ?, state = ? WHERE number = ?"
_BRING_FORWARD = "UPDATE outbox SET due = ? WHERE rule = ? AND state = ? AND due > ?"
_TRIM_DEAD = """DELETE FROM outbox WHERE rule = ? AND state = 'dead' AND number <=
  (SELECT number FROM outbox WHERE rule = ? AND state = 'dead' ORDER BY number DESC LIMIT 1 OFFSET ?)"""
_FORGET_MESSAGES = "DELETE FROM outbox WHERE rule = ?"
_FORGET = "DELETE FROM notifiers WHERE name = ?"
_REVIVE = "UPDATE outbox SET state = 'waiting', tries = 0, due = ? WHERE rule = ? AND state = 'dead'"


@dataclass(frozen=True, slots=True)
class Message:
    """What one rule has to say, or a part of a digest."""

    rule: str
    id: str
    made: float
    due: float
    body: str  # JSON
    state: str = WAITING
    tries: int = 0
    problem: str = ""  # of the last attempt
    number: int = 0  # given by the store


@dataclass(frozen=True, slots=True)
class Told:
    """How it stands with a rule."""

    name: str
    position: int  # of the last change that it has seen
    delivered: int
    failures: int  # in a row, up to now
    problem: str
    since: float | None  # the first of them
    last: float | None  # a message was delivered
    waiting: int = 0
    gathered: int = 0  # changes for the next digest
    dead: int = 0


Rows = list[tuple[Any, ...]]
Step = tuple[str, Sequence[tuple[Any, ...]]]  # a statement, and the values of each time that it is carried out


class Ledger(Protocol):
    """The tables of the outbox, in whatever keeps the store; statements are alike everywhere, values stand for `?`."""

    written: str  # the table that counts crawls as they are written: a change's number is such a count

    def rows(self, *questions: tuple[str, tuple[Any, ...]]) -> list[Rows]:
        """What each of some questions gives, all of one moment."""

    def carry_out(self, *steps: Step) -> list[int]:
        """Take steps, all of them or none, durably; how many rows each changed."""


class Outbox:
    """The messages of a store; any thread may call."""

    def __init__(self, store: LastingStore) -> None:
        self._ledger = _InFile(store) if isinstance(store, Sqlite) else _in_server(store)

    def begin(self, rules: Iterable[str]) -> None:
        """Rules that are new begin with the changes from now on."""
        self._ledger.carry_out((_BEGIN.format(written=self._ledger.written), [(rule,) for rule in rules]))

    def all(self) -> list[Told]:
        """Every rule that ever was, in the order of their names."""
        rows, counted = self._ledger.rows((f"{_SEEN} ORDER BY name", ()), (_COUNTS, ()))
        counts = {(str(rule), str(state)): int(count) for rule, state, count in counted}
        found: list[Told] = []
        for name, position, delivered, failures, problem, since, last in rows:
            held = [counts.get((str(name), state), 0) for state in (WAITING, GATHERED, DEAD)]
            found.append(Told(name, position, delivered, failures, untext(problem), since, last, *held))
        return found

    def messages(self, rule: str, state: str = WAITING, limit: int = 1) -> list[Message]:
        """The oldest messages of a rule."""
        (rows,) = self._ledger.rows((_MESSAGES, (rule, state, limit)))
        return [
            Message(rule, id_, made, due, body, state, tries, untext(problem), number)
            for number, rule, state, id_, made, due, tries, problem, body in rows
        ]

    def add(self, messages: Iterable[Message], positions: Mapping[str, int]) -> None:
        """Rules have seen the changes up to these numbers, and have these messages of them."""
        rows = [(each.rule, each.state, each.id, each.made, each.due, each.body) for each in messages]
        self._ledger.carry_out((_ADD, rows), (_MOVE, [(position, rule) for rule, position in positions.items()]))

    def join(self, parts: Iterable[Message], digest: Message) -> None:
        """What was gathered becomes one message."""
        row = digest.rule, WAITING, digest.id, digest.made, digest.due, digest.body
        self._ledger.carry_out((_DELETE, [(each.number,) for each in parts]), (_ADD, [row]))

    def delivered(self, messages: Iterable[Message], now: float) -> None:
        """They arrived."""
        done = list(messages)
        self._ledger.carry_out(
            (_DELETE, [(each.number,) for each in done]), (_DELIVERED, [(now, each.rule) for each in done])
        )

    def failed(self, message: Message, problem: str, *, now: float, due: float | None) -> None:
        """It did not arrive, and is tried again when it is `due`; None: it is given up."""
        state, said = DEAD if due is None else WAITING, problem.encode("utf-8", "replace").decode()
        self._ledger.carry_out(
            (_PUT_OFF, [(now if due is None else due, said, state, message.number)]),
            (_FAILED, [(said, now, message.rule)]),
            (_TRIM_DEAD, [(message.rule, message.rule, MAX_DEAD)]),
        )

    def bring_forward(self, rule: str, state: str, due: float, *, beyond: float) -> int:
        """Messages of a rule that would be due later than `beyond` are due at `due`; how many they were."""
        return self._ledger.carry_out((_BRING_FORWARD, [(due, rule, state, beyond)]))[0]

    def forget(self, rule: str) -> int:
        """A rule is no more; how many of its messages were still there."""
        return self._ledger.carry_out((_FORGET_MESSAGES, [(rule,)]), (_FORGET, [(rule,)]))[0]

    def revive(self, rule: str, now: float) -> int:
        """Messages that were given up are tried again; how many."""
        return self._ledger.carry_out((_REVIVE, [(now, rule)]))[0]


class _InFile:
    """In the store's file."""

    written = "totals"

    def __init__(self, store: Sqlite) -> None:
        self._store = store

    def rows(self, *questions: tuple[str, tuple[Any, ...]]) -> list[Rows]:
        with self._store.reading() as connection, moment(connection):
            return [connection.execute(statement, values).fetchall() for statement, values in questions]

    def carry_out(self, *steps: Step) -> list[int]:
        changed = []
        with self._store.writing() as connection, transaction(connection):
            for statement, rows in steps:
                before = connection.total_changes()
                connection.executemany(statement, rows)
                changed.append(int(connection.total_changes() - before))
        return changed


def _in_server(store: LastingStore) -> Ledger:
    from afresh.store.postgres import Postgres  # with a client that is installed only where it is needed
    from afresh.store.postgres.ledger import InServer

    if not isinstance(store, Postgres):
        raise TypeError(f"{type(store).__name__} has no outbox")
    return InServer(store)
