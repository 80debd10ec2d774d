"""The heart by its address: what the interpreter calls, and the simulator's compiled loops.

Each function here does what the one of `heart` does that it names. An address is read as the tuple `Heart` that was
written there; see `afresh.value.views`.
"""

from typing import Any

import numpy as np

from afresh.engine import heart as does
from afresh.engine.columns import Columns
from afresh.engine.heart import Floats, Heart, Integers
from afresh.estimate import Activity, Senders
from afresh.estimate.activity_online import slices_of
from afresh.estimate.learner import Learner
from afresh.schedule.wheel.turn import hand_in
from afresh.value.compiled import bundle, compiled
from afresh.value.views import reader, view_of


def _example() -> Heart:
    """The heart of nothing."""
    learner, senders, columns, activity = Learner(), Senders(), Columns(), Activity(width=1.0)
    return Heart(
        core=0,
        table=learner.table,
        asking=learner.asking,
        slices=slices_of(activity),
        wider=activity.wider,
        line=np.zeros(1, np.int64),
        pages=columns.pages,
        heard=columns.heard,
        turn=columns.turn,
        control=columns.control,
        credit=senders.credit,
        due=senders.due,
        checked=senders.checked,
    )


opened: Any = reader(view_of(_example()))


@compiled
def hear(at: int, slot: int, sender: int, pair: int, time: float) -> None:
    """`heart.hear`."""
    does.hear(opened(at), slot, sender, pair, time)


@compiled
def heard(at: int, slot: int, now: float) -> None:
    """`heart.heard`."""
    does.heard(opened(at), slot, now)


@compiled
def hear_all(at: int, slots: Integers, senders: Integers, pairs: Integers, times: Floats, now: float) -> None:
    """`heart.hear_all`."""
    does.hear_all(opened(at), slots, senders, pairs, times, now)


@compiled
def ask_all(at: int, slots: Integers, counts: Floats, times: Floats, now: float) -> None:
    """`heart.ask_all`."""
    does.ask_all(opened(at), slots, counts, times, now)


@compiled
def believe(at: int, slot: int, now: float) -> None:
    """`heart.believe`."""
    does.believe(opened(at), slot, now)


@compiled
def believe_all(at: int, slots: Integers, now: float) -> None:
    """`heart.believe_all`."""
    does.believe_all(opened(at), slots, now)


@compiled
def fresh_probability(at: int, slot: int, now: float) -> float:
    """`heart.fresh_probability`."""
    return does.fresh_probability(opened(at), slot, now)


@compiled
def state_all(at: int, slots: Integers, now: float, fresh_of_each: Floats) -> None:
    """`heart.state_all`."""
    does.state_all(opened(at), slots, now, fresh_of_each)


@compiled
def count_heard(at: int, slot: int) -> float:
    """`heart.count_heard`."""
    return does.count_heard(opened(at), slot, False)


@compiled
def age_of(at: int, slot: int, now: float) -> float:
    """`heart.age_of`."""
    return does.age_of(opened(at), slot, now)


@compiled
def forget(at: int, slot: int) -> None:
    """`heart.forget`."""
    does.forget(opened(at), slot)


@compiled
def close(
    at: int, slot: int, started: float, now: float, learns: bool, changed: bool, found: bool, gap: float
) -> float:
    """A crawl has confirmed or replaced the copy: learn from it, let the schedule have the page back, look round.

    How likely the copy was to be current until then: `heart.fresh_probability`.
    """
    heart = opened(at)
    said = does.fresh_probability(heart, slot, started)
    does.check(heart, slot, started, now, learns, changed, found)
    hand_in(heart.core, slot, now, started, gap)
    does.look_round(heart, slot, now, changed)
    return said


together = bundle(
    "heart",
    *(hear, heard, hear_all, ask_all, believe, believe_all, fresh_probability, state_all, count_heard, age_of),
    *(forget, close),
)
