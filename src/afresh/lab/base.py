"""What an experiment is, and what comes out of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sample:
    """One policy in one repetition."""

    accuracy: float
    ceiling: float
    baseline: float
    seconds: float = 0.0
    curves: Mapping[str, Floats] = field(default_factory=dict)  # for the picture; kept of the first repetitions


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a result, and of its JSON."""

    figure: str
    pages: int
    policy: str
    accuracy: float
    stderr: float
    ceiling: float
    baseline: float
    reps: int
    seconds: float


@dataclass(frozen=True, slots=True)
class RoundRow:
    """One line of a result whose costs are followed over time, and of its JSON."""

    figure: str
    family: str
    algorithm: str
    round: int
    mean_J: float  # noqa: N815 (the papers' own name)
    stderr: float  # of mean_J; it holds mostly the differences between instances
    gap: float  # to the optimum of the same instance
    gap_stderr: float
    reps: int


@dataclass(frozen=True, slots=True)
class RegretRow(RoundRow):
    """One line of a result about regret: `round` is the number of rounds T, and the costs are means over them."""

    optimum: float  # mean cost a round of the best rates in hindsight, for these very costs
    regret: float  # of all rounds together: gap × T
    regret_stderr: float
    exponent: float  # of T, fitted to the regret of all T; NaN: there is one T only, or no regret


Trial = Callable[[int, int], dict[str, Sample]]  # (pages, seed) → policy → sample


@dataclass(frozen=True, slots=True)
class Experiment:
    """A published figure: what it shows, and how one repetition of it is made."""

    name: str
    title: str
    claim: str  # what must show
    sizes: tuple[int, ...]
    trial: Trial
    reps: int = 3  # about a minute on two cores
    full_reps: int = 100  # the paper's own
    measure: str = "accuracy"  # what the rows' accuracy is
    picture: str = "sizes"  # how it is drawn: see `plots`
    keep: int = 1  # repetitions whose curves are kept for the picture
    family: str = ""  # of costs, where these are followed over time: its rows are by rounds
    told: tuple[int, ...] = ()  # the rounds that the table on the screen shows


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of a run, and the curves behind its picture."""

    experiment: Experiment
    rows: list[Row]
    curves: dict[tuple[int, str], list[Mapping[str, Any]]]
    rounds: list[RoundRow] = field(default_factory=list)  # instead of the rows, where there are any
