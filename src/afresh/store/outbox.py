"""Messages to those who are told of changes, until they are delivered; and how far each rule has read.

Invariant: a message enters in the transaction that moves its rule past the change, and leaves once it was delivered or
given up: whatever kills the process, each change makes its message once, and no message is lost.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from afresh.store.faults import moment, transaction
from afresh.store.rows import text, untext
from afresh.store.sqlite import Sqlite

WAITING, GATHERED, DEAD = "waiting", "gathered", "dead"
MAX_DEAD = 1_000  # messages of a rule that were given up and are kept; the oldest leave

_SEEN = "SELECT name, position, delivered, failures, problem, since, last FROM notifiers"
_COUNTS = "SELECT rule, state, count(*) FROM outbox GROUP BY rule, state"
_BEGIN = """INSERT INTO notifiers (name, position) VALUES (?, (SELECT crawls FROM totals))
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
_TRIM_DEAD = """DELETE FROM outbox WHERE rule = ?1 AND state = 'dead' AND number <=
  (SELECT number FROM outbox WHERE rule = ?1 AND state = 'dead' ORDER BY number DESC LIMIT 1 OFFSET ?2)"""
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


class Outbox:
    """The messages of a store; any thread may call."""

    def __init__(self, store: Sqlite) -> None:
        self.store = store

    def begin(self, rules: Iterable[str]) -> None:
        """Rules that are new begin with the changes from now on."""
        with self.store.writing() as connection, transaction(connection):
            connection.executemany(_BEGIN, [(rule,) for rule in rules])

    def all(self) -> list[Told]:
        """Every rule that ever was, in the order of their names."""
        with self.store.reading() as connection, moment(connection):
            rows = connection.execute(f"{_SEEN} ORDER BY name").fetchall()
            counts: dict[tuple[str, str], int] = {
                (str(row[0]), str(row[1])): int(str(row[2])) for row in connection.execute(_COUNTS)
            }
        found: list[Told] = []
        for name, position, delivered, failures, problem, since, last in rows:
            held = [counts.get((str(name), state), 0) for state in (WAITING, GATHERED, DEAD)]
            said = untext(problem)  # type: ignore[arg-type]
            found.append(Told(name, position, delivered, failures, said, since, last, *held))  # type: ignore[arg-type]
        return found

    def messages(self, rule: str, state: str = WAITING, limit: int = 1) -> list[Message]:
        """The oldest messages of a rule."""
        with self.store.reading() as connection:
            rows = connection.execute(_MESSAGES, (rule, state, limit)).fetchall()
        return [
            Message(rule, id_, made, due, body, state, tries, untext(problem), number)  # type: ignore[arg-type]
            for number, rule, state, id_, made, due, tries, problem, body in rows
        ]

    def add(self, messages: Iterable[Message], positions: Mapping[str, int]) -> None:
        """Rules have seen the changes up to these numbers, and have these messages of them."""
        rows = [(each.rule, each.state, each.id, each.made, each.due, each.body) for each in messages]
        with self.store.writing() as connection, transaction(connection):
            connection.executemany(_ADD, rows)
            connection.executemany(_MOVE, [(position, rule) for rule, position in positions.items()])

    def join(self, parts: Iterable[Message], digest: Message) -> None:
        """What was gathered becomes one message."""
        with self.store.writing() as connection, transaction(connection):
            connection.executemany(_DELETE, [(each.number,) for each in parts])
            row = digest.rule, WAITING, digest.id, digest.made, digest.due, digest.body
            connection.execute(_ADD, row)

    def delivered(self, messages: Iterable[Message], now: float) -> None:
        """They arrived."""
        done = list(messages)
        with self.store.writing() as connection, transaction(connection):
            connection.executemany(_DELETE, [(each.number,) for each in done])
            connection.executemany(_DELIVERED, [(now, each.rule) for each in done])

    def failed(self, message: Message, problem: str, *, now: float, due: float | None) -> None:
        """It did not arrive, and is tried again when it is `due`; None: it is given up."""
        state = DEAD if due is None else WAITING
        with self.store.writing() as connection, transaction(connection):
            connection.execute(_PUT_OFF, (now if due is None else due, text(problem), state, message.number))
            connection.execute(_FAILED, (text(problem), now, message.rule))
            connection.execute(_TRIM_DEAD, (message.rule, MAX_DEAD))

    def forget(self, rule: str) -> int:
        """A rule is no more; how many of its messages were still there."""
        with self.store.writing() as connection, transaction(connection):
            connection.execute(_FORGET_MESSAGES, (rule,))
            count = int(connection.changes())
            connection.execute(_FORGET, (rule,))
        return count

    def revive(self, rule: str, now: float) -> int:
        """Messages that were given up are tried again; how many."""
        with self.store.writing() as connection, transaction(connection):
            connection.execute(_REVIVE, (now, rule))
            return int(connection.changes())
