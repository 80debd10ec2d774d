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


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of a run, and the curves behind its picture."""

    experiment: Experiment
    rows: list[Row]
    curves: dict[tuple[int, str], list[Mapping[str, Any]]]
