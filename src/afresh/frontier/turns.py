"""How long one turn with each host takes: its answer, its rest, and its address's other hosts, as lately observed."""

import math
from dataclasses import dataclass

_SHARE = 0.2  # of the last turn in what is said


@dataclass(slots=True)
class _Turn:
    opens: float  # when the host may be asked again
    ended: float = -math.inf  # when a page of it was last refreshed
    idle: float = 0.0  # seconds since then in which it could have been asked, and was not
    seconds: float = 0.0


class Turns:
    """Measures the seconds from one refresh of a host to the next, without those in which nobody asked it anything.

    >>> turns = Turns()
    >>> turns.ended("a", 0.0, opens=1.0, refreshed=True)
    >>> turns.began("a", 5.0)  # four seconds late, for reasons of our own
    >>> turns.ended("a", 5.5, opens=6.5, refreshed=True)
    >>> turns.seconds("a"), turns.seconds("b")
    (1.5, 0.0)
    """

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}

    def began(self, host: str, now: float) -> None:
        """The host is asked for a page."""
        if (turn := self._turns.get(host)) is not None:
            turn.idle += max(now - turn.opens, 0.0)
            turn.opens = now

    def ended(self, host: str, now: float, *, opens: float, refreshed: bool) -> None:
        """It has answered, or was not asked after all; it may be asked again at `opens`."""
        turn = self._turns.get(host)
        if turn is None:
            if refreshed:
                self._turns[host] = _Turn(opens, ended=now)
            return
        turn.opens = opens
        if refreshed:
            took = max(now - turn.ended - turn.idle, 0.0)
            turn.seconds = took if turn.seconds == 0.0 else turn.seconds + _SHARE * (took - turn.seconds)
            turn.ended, turn.idle = now, 0.0

    def seconds(self, host: str) -> float:
        """How long a turn takes; 0: nobody knows yet."""
        turn = self._turns.get(host)
        return 0.0 if turn is None else turn.seconds
