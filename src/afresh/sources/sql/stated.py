"""How likely a kept result is to be what a run would give now, for who reads it without the runner's help.

A change sends its signal late: the database is looked at once a second, and the runner writes what it heard a little
later. So of the last moments nothing has been heard yet, and a copy that nothing was heard of may well have changed.
"""

import math

from afresh.types import Beliefs

LOOK_EVERY = 1.1  # seconds between two looks at a database: it sends one signal in that time, however much changes
MOST_LOOKS = 0.98  # of the looks find something: how much more often it changes than that cannot be told
SIGNAL_TAKES = 2.0  # seconds until any signal can be read from the store; half of them take half of that


def hazard(beliefs: Beliefs) -> float:
    """How often changes come that send a signal: more often than signals do, where these are as frequent as looks.

    >>> all_right, half = Beliefs(change_rate=0.9, recall=1.0), Beliefs(change_rate=0.01, recall=0.5, false_rate=0.005)
    >>> round(hazard(all_right), 1), round(hazard(half), 4)
    (3.6, 0.005)
    """
    signals = beliefs.signal_rate
    if signals <= 0.0:
        return 0.0
    right = beliefs.recall * beliefs.change_rate / signals  # of the looks that find something
    return -math.log1p(-min(signals * LOOK_EVERY, MOST_LOOKS) * right) / LOOK_EVERY


def unheard(beliefs: Beliefs, age: float, *, hears: bool) -> float:
    """The probability that nothing has changed of what would have sent a signal that is not here yet.

    `hears`: a runner listens. If not, no signal has come since the copy was made.

    >>> round(unheard(Beliefs(change_rate=0.01, recall=0.5), 10.0, hears=False), 3)
    0.951
    >>> round(unheard(Beliefs(change_rate=0.01, recall=0.5), 10.0, hears=True), 4)
    0.995
    """
    late = age
    if hears:
        late = min(age, SIGNAL_TAKES)
        late -= late * late / (2.0 * SIGNAL_TAKES)  # the longer ago, the likelier its signal is here
    return math.exp(-hazard(beliefs) * late)


def stated(beliefs: Beliefs | None, age: float, signals: float, *, hears: bool) -> float:
    """The probability that a result of this age is right, after so many signals; 0 while nothing is known of it."""
    if beliefs is None:
        return 0.0
    return beliefs.freshness(age, signals) * unheard(beliefs, age, hears=hears)
