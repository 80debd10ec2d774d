"""The contest's settings with dates and kinds switched on, beside the same without them: points of freshness gained.

    python benchmarks/everything_on.py DATA [--repeats 3] [--visits 5,20,80] [--signals none,weak] [SET ...]

DATA is a folder with recorded histories. As in `afresh lab contest`, a replay begins with the history, and is scored
from a quarter of its time on; each setting has so many visits a page, weights, and signals. Dates are true and kinds
those of `cold_start.py`, for the sets that it has; `mdn` is the history of MDN in DATA itself. A repetition has
weights and signals of its own, and a budget that is up to 4 % off: so visits of few pages fall on other moments,
and what is left to chance shows in the error.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from cold_start import ota
from dates_replay import SETS, kinds_of

from afresh.lab.contest import SIGNALS, WEIGHTS, weights_of
from afresh.lab.files import choose, read_history, read_names
from afresh.sim.dated import TRUE, dates_of
from afresh.sim.field import close
from afresh.sim.history import SILENCE, History, draw_signals
from afresh.sim.learned import address_of, replay_learned

TRAIN = 0.25  # of the time, before anything is scored
OFF = 0.04  # by how much budgets are off at most


def read_set(data: Path, name: str) -> tuple[History, float]:
    """A history, and when its scored time begins."""
    path = data / ("mdn_content.npz" if name == "mdn" else f"histories/{name}.npz")
    recorded = read_history(path)
    first, last = float(recorded.time.min()), float(recorded.time.max())
    names = read_names(path)
    if name == "ota_contrib":
        names = {str(n): each.removeprefix("http://") for n, each in enumerate(ota(data).urls)}
    begin = first + TRAIN * (last - first)
    return choose(recorded, score_from=begin, weights=None, addresses=names).history, begin


def main() -> None:
    """Print a table, and a summary."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--visits", default="5,20,80")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--signals", default=",".join(SIGNALS))
    asked = parser.parse_args()
    everything: list[float] = []
    print(f"{'set':16}{'visits':>7}{'weights':>8}{'signals':>8}{'without':>9}{'gain':>8}{'+-':>6}", end="")
    print(f"{'stated':>8}{'stated on':>10}{'us more':>9}")
    for name in asked.sets:
        history, begin = read_set(asked.data, name)
        kinds = kinds_of(asked.data, name, history)
        hosts = np.unique([address_of(each)[1] for each in history.names] or [""] * history.pages, return_inverse=True)[
            1
        ]
        births = np.full(history.pages, -np.inf) if history.births is None else history.births
        before = np.where(births >= history.start, births, np.nan)
        for visits in map(float, asked.visits.split(",")):
            every = (history.end - begin) / visits
            for weights in WEIGHTS:
                for signals in asked.signals.split(","):
                    recall, precision, late = SIGNALS[signals]
                    rows = []
                    for seed in range(asked.repeats):
                        own = every * (1.0 + OFF * (2.0 * seed / max(asked.repeats - 1, 1) - 1.0))
                        weighted = History(
                            **{
                                each: getattr(history, each)
                                for each in ("times", "first", "start", "end", "names", "ends", "births")
                            },
                            weight=weights_of(weights, history.pages, seed),
                        )
                        rng = np.random.default_rng([seed, 4])
                        heard = SILENCE
                        if recall:
                            heard = draw_signals(rng, weighted, recall=recall, precision=precision, delay=late * every)
                        row: list[float] = []
                        for on in (False, True):
                            began = time.process_time()
                            field, stated = replay_learned(
                                weighted,
                                budget=history.pages / own,
                                score_from=begin,
                                heard=heard,
                                dates=dates_of(before, hosts, np.full(history.pages, TRUE)) if on else None,
                                kinds=kinds if on else None,
                            )
                            spent = time.process_time() - began
                            close(field)
                            lived = weighted.weight * history.lived(begin, history.end)
                            fresh = float((field.fresh_time * weighted.weight).sum() / lived.sum())
                            crawls = history.pages * (history.end - history.start) / own
                            row += [100 * fresh, 100 * (stated - fresh), 1e6 * spent / crawls]
                        rows.append(row)
                    found = np.array(rows)
                    gains = found[:, 3] - found[:, 0]
                    everything.append(float(gains.mean()))
                    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.nan
                    print(
                        f"{name:16}{visits:7g}{weights:>8}{signals:>8}{found[:, 0].mean():9.2f}{gains.mean():+8.2f}"
                        f"{error:6.2f}{found[:, 1].mean():+8.2f}{found[:, 4].mean():+10.2f}"
                        f"{(found[:, 5] - found[:, 2]).mean():+9.2f}",
                        flush=True,
                    )
    gained = np.array(everything)
    print(
        f"{len(gained)} settings: mean {gained.mean():+.3f}, least {gained.min():+.2f}, most {gained.max():+.2f};",
        end="",
    )
    print(f" {int((gained < -0.2).sum())} lower by more than 0.2, {int((gained > 0.2).sum())} higher by more than 0.2")


if __name__ == "__main__":
    main()
