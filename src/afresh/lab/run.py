"""Carry an experiment out: repetitions on all cores, then means and standard errors."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict

import numpy as np

from afresh.lab.base import Experiment, Floats, RegretRow, Result, RoundRow, Row, Sample, Trial
from afresh.lab.workers import workers

Samples = dict[str, Sample]


def run(
    experiment: Experiment,
    *,
    sizes: Sequence[int] = (),
    reps: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Result:
    """All repetitions at all sizes; repetition k of a size has the seed `seed` + k, whatever the number of jobs."""
    reps = experiment.reps if reps is None else reps
    # The large ones first, so that no core is left with one of them at the end.
    tasks = [(pages, rep) for pages in sorted(sizes or experiment.sizes, reverse=True) for rep in range(reps)]
    found: dict[tuple[int, int], Samples] = {}
    progress(0, len(tasks))
    for done, (task, samples) in enumerate(_carry_out(experiment.trial, tasks, seed, jobs), start=1):
        found[task] = samples
        progress(done, len(tasks))
    rows, curves = [], {}
    rounds: list[RoundRow] = []
    for pages in sizes or experiment.sizes:
        trials = [found[pages, rep] for rep in range(reps)]
        rows += [row_of(experiment.name, pages, policy, [each[policy] for each in trials]) for policy in trials[0]]
        if experiment.family:
            rounds += round_rows(experiment, trials)
        for policy in trials[0]:
            curves[pages, policy] = [each[policy].curves for each in trials[: experiment.keep]]
    return Result(experiment, rows, curves, rounds)


def _carry_out(
    trial: Trial, tasks: list[tuple[int, int]], seed: int, jobs: int
) -> Iterator[tuple[tuple[int, int], Samples]]:
    if jobs <= 1:
        for pages, rep in tasks:
            yield (pages, rep), trial(pages, seed + rep)
        return
    with workers(min(jobs, len(tasks))) as submit:
        waiting = {submit(trial, pages, seed + rep): (pages, rep) for pages, rep in tasks}
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def row_of(figure: str, pages: int, policy: str, samples: Sequence[Sample]) -> Row:
    """Means over the repetitions; the standard error is that of the mean accuracy."""
    accuracy = np.array([each.accuracy for each in samples])
    count = len(samples)
    return Row(
        figure=figure,
        pages=pages,
        policy=policy,
        accuracy=float(accuracy.mean()),
        stderr=float(accuracy.std(ddof=1) / np.sqrt(count)) if count > 1 else float("nan"),
        ceiling=float(np.mean([each.ceiling for each in samples])),
        baseline=float(np.mean([each.baseline for each in samples])),
        reps=count,
        seconds=float(np.sum([each.seconds for each in samples])),
    )


def round_rows(experiment: Experiment, trials: Sequence[Samples]) -> list[RoundRow]:
    """Every algorithm's cost over time, as means over the repetitions, and the optimum's."""
    rows = []
    for algorithm in trials[0]:
        curves = [each[algorithm].curves for each in trials]
        costs, best = (np.array([curve[name] for curve in curves]) for name in ("cost", "optimum"))
        found = _rounds_of(experiment, algorithm, curves[0]["round"], costs, best)
        rows += _regret_of(found) if experiment.picture == "regret" else found
    if experiment.picture == "regret":  # every algorithm has an optimum of its own there
        return rows
    return rows + _rounds_of(experiment, "optimum", curves[0]["round"], best, best)


def _regret_of(rows: Sequence[RoundRow]) -> list[RoundRow]:
    """The same rows with the regret of all rounds together, and how it grows."""
    regret = [row.gap * row.round for row in rows]
    exponent = float("nan")
    if len(rows) > 1 and min(regret) > 0.0:
        exponent = float(np.polyfit(np.log([row.round for row in rows]), np.log(regret), 1)[0])
    return [
        RegretRow(
            **asdict(row),
            optimum=row.mean_J - row.gap,
            regret=each,
            regret_stderr=row.gap_stderr * row.round,
            exponent=exponent,
        )
        for row, each in zip(rows, regret, strict=True)
    ]


def _rounds_of(experiment: Experiment, algorithm: str, rounds: Floats, costs: Floats, best: Floats) -> list[RoundRow]:
    count = len(costs)
    spread = np.full((2, costs.shape[1]), np.nan)
    if count > 1:
        spread = np.array([each.std(axis=0, ddof=1) / np.sqrt(count) for each in (costs, costs - best)])
    means = costs.mean(axis=0), *spread, (costs - best).mean(axis=0)
    return [
        RoundRow(experiment.name, experiment.family, algorithm, int(nth), cost, stderr, gap, gap_stderr, count)
        for nth, cost, stderr, gap_stderr, gap in zip(rounds, *(each.tolist() for each in means), strict=True)
    ]
