"""`afresh plan --pages`: what each page is to get, for programs that do the fetching themselves."""

import csv
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from afresh.cli.terminal import as_json
from afresh.errors import ConfigError

HEAD = ("page", "rank", "utility", "refresh_rate", "refresh_probability")


def shares_of_pages(names: Sequence[str], arrays: "dict[str, Any]", budget: float) -> Iterator[dict[str, Any]]:
    """Rank, utility, refresh rate and refresh probability of each page at a budget, in order of rank.

    - utility: fresh requests, per cost, that a refresh gains if the copy is certainly stale. A page whose utility is
      below the price of the budget is left alone.
    - refresh_rate: refreshes a second, evenly spaced while no signal comes: the optimum.
    - refresh_probability: the same for fetchers that cannot space refreshes evenly. At each step of 1/budget seconds
      one page is drawn by these probabilities. They add up to 1, or less if that is enough for all pages.

    Neither asks a host more often than `host_budget` of the arrays says, if that is there.
    """
    import numpy as np

    from afresh.value import crawl_value
    from afresh.value.optimum import optimum
    from afresh.value.probabilities import refresh_probabilities

    gained = crawl_value(
        1e100,  # seconds: stale for certain
        change_rate=arrays["change_rate"],
        recall=arrays.get("recall", 0.0),
        false_rate=arrays.get("false_rate", 0.0),
        request_rate=arrays["request_rate"],
    )
    utility = np.asarray(gained) / arrays.get("cost", 1.0)
    best = optimum(budget=budget, **arrays)
    changed = -np.expm1(-arrays["change_rate"] / budget)  # in a step
    chances = refresh_probabilities(arrays["request_rate"], changed)
    if "host_budget" in arrays:
        drawn = budget * np.bincount(arrays["host"], weights=chances, minlength=len(arrays["host_budget"]))
        chances = chances * np.minimum(1.0, arrays["host_budget"] / np.maximum(drawn, 1e-300))[arrays["host"]]
    for rank, nth in enumerate(np.lexsort((-arrays["request_rate"], -utility)).tolist(), start=1):
        values = (names[nth], rank, float(utility[nth]), float(best.rates[nth]), float(chances[nth]))
        yield dict(zip(HEAD, values, strict=True))


def write_pages(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    """Write the rows as CSV, or as JSON lines where the name ends in .jsonl; - is standard output."""
    with _opened(path) as file:
        if path.suffix == ".jsonl":
            file.writelines(as_json(row) + "\n" for row in rows)
            return
        writer = csv.DictWriter(file, HEAD, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    if str(path) == "-":
        yield sys.stdout
        return
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.", hint="Choose another file.") from None
