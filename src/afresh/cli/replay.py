"""Policies side by side on the command line: on a synthetic collection, or over a recorded history."""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afresh.cli.compiling import shown_compiling
from afresh.cli.lab import Into, Jobs, JsonFile, Keeper, PlotFile, Seed, Wide, print_whole, progress_bar, slim_table
from afresh.cli.stopping import stoppable
from afresh.cli.terminal import console, labelled, moment, plain, working
from afresh.errors import ConfigError, InputError
from afresh.units import rate, show_count, show_duration, show_rate, with_unit

if TYPE_CHECKING:
    from afresh.lab.compare import Contest
    from afresh.lab.files import Recorded
    from afresh.sim.history import Heard, History
    from afresh.sim.replay import Replayed

Every = Annotated[
    str, typer.Option(help="Mean time between two visits to a page, such as 30d; --budget says it as a rate.")
]
Budget = Annotated[str | None, typer.Option(help="Crawls of all pages together, such as 200/day.", show_default=False)]
Policies = Annotated[list[str] | None, typer.Option("--policy", help="Comma-separated names, or all (default).")]
Rest = Annotated[
    bool, typer.Option("--rest", help="Peers wait until a page is due instead of fetching the next one early.")
]
FromStart = Annotated[
    bool,
    typer.Option(
        "--from-start",
        help="All pages are there from start to end, silent before their birth and after their deletion.",
    ),
]

LEAST_PRECISION = 0.001
NARROW = ("weighted", "of best", "unweighted", "crawls", "stale age")  # fit on 80 columns
WIDE = ("believed", "Brier", "finds")


def compare(
    pages: Annotated[int, typer.Option(help="Size of the collection.")] = 2000,
    days: Annotated[float, typer.Option(help="Length of the run; the first quarter is not scored.")] = 365.0,
    changes: Annotated[float, typer.Option(help="Median days between two changes of a page.")] = 30.0,
    spread: Annotated[float, typer.Option(help="Standard deviation of the logarithm of change rates.", min=0.0)] = 1.0,
    popularity: Annotated[float, typer.Option(help="Zipf exponent of the requests; 0: all equal.", min=0.0)] = 1.0,
    clumping: Annotated[float, typer.Option(help="Share of changes that come in bursts; 0: Poisson.")] = 0.0,
    signals: Annotated[str, typer.Option(help="recall,precision,delay of change signals, such as 0.6,0.8,1h.")] = "",
    every: Every = "30d",
    budget: Budget = None,
    policy: Policies = None,
    rest: Rest = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: JsonFile = None,
    plot: PlotFile = None,
    into: Into = None,
    wide: Wide = False,
) -> None:
    """Run all policies over one synthetic collection at equal budget. No policy knows a rate: all learn or use rules.

    Example: afresh lab compare --pages 2000 --every 30d --signals 0.6,0.8,1h --plot compare.png
    """
    from afresh.lab.compare import WorldOptions, check_policies, draw_contest

    recall, precision, delay = _signals(signals)
    options = WorldOptions(
        pages=pages,
        days=days,
        changes=changes,
        spread=spread,
        popularity=popularity,
        clumping=clumping,
        recall=recall,
        precision=precision,
        delay=delay,
        seed=seed,
    )
    interval = pages / _budget(budget) if budget else interval_of(every)
    keeper = Keeper("compare", json, plot, into)
    contest = draw_contest(
        options, every=interval, policies=check_policies(policy or [], signals=recall > 0), early=not rest
    )
    _hold(contest, keeper, jobs, f"{pages:,} synthetic pages", wide=wide)


def replay(
    history: Annotated[Path, typer.Argument(help="A .npz, a CSV of page,timestamp, or an afresh store.")],
    requests: Annotated[
        Path | None, typer.Option(help="CSV of page,weight; pages not in it are left out. Default: all equal.")
    ] = None,
    addresses: Annotated[
        Path | None,
        typer.Option(
            help="Lines of page, tab, address: pages of a folder may change together. Default: the history's own "
            "names; names without a folder count as one site."
        ),
    ] = None,
    apart: Annotated[bool, typer.Option("--apart", help="Treat pages of a folder and a site as independent.")] = False,
    every: Every = "30d",
    budget: Budget = None,
    policy: Policies = None,
    signals: Annotated[
        str, typer.Option(help="recall,precision,delay of signals generated from the changes, such as 0.6,0.8,1h.")
    ] = "",
    train: Annotated[float, typer.Option(help="Share of the time, at the start, that is not scored.")] = 0.0,
    score_from: Annotated[
        str | None, typer.Option("--from", help="Score from this time on (instead of --train), such as 2021-05-12.")
    ] = None,
    from_start: FromStart = False,
    rest: Rest = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: JsonFile = None,
    plot: PlotFile = None,
    into: Into = None,
    wide: Wide = False,
) -> None:
    """Replay a recorded history of changes: what would each policy have kept fresh, had it crawled then?

    Our policies learn online from their own crawls, and peers follow their rules. Three more know what nobody can:
    oracle the true mean rates; clairvoyant the constant rates that would have been best for the changes as they came;
    past every change before the scored time. docs/lab.md has the file formats.

    Example: afresh lab replay history.npz --requests popularity.csv --every 30d --train 0.1
    """
    from afresh.lab.compare import Contest, check_policies
    from afresh.lab.files import choose, read_addresses, read_requests
    from afresh.lab.work import check_visits

    keeper = Keeper("replay", json, plot, into)
    with working(f"Reading {plain(history.name)}"):
        recorded = recorded_in(history)
        begin = scored_from(recorded, train, score_from)
        weights = read_requests(requests, begin) if requests else None
        known = read_addresses(addresses) if addresses else None
        chosen = choose(
            recorded, score_from=begin, weights=weights, addresses=known, apart=apart, from_start=from_start
        )
    pages = chosen.history.pages
    spent = _budget(budget) if budget else pages / interval_of(every)
    check_visits(spent * (chosen.history.end - chosen.history.start))
    heard = _made_up(signals, chosen.history, seed)
    names = check_policies(policy or [], signals=len(heard.time) > 0)
    contest = Contest(chosen.history, spent, begin, names, heard, not rest, seed)
    for note in recorded.notes:
        console.print(plain(note))
    if chosen.left_out:
        console.print(
            f"{show_count(chosen.left_out, 'page')} left out: gone when the scored time begins, or nobody asks."
        )
    if chosen.born:
        console.print(f"{show_count(chosen.born, 'page')} born in the scored time: counted from then on.")
    if chosen.gone:
        console.print(f"{show_count(chosen.gone, 'page')} deleted before the end: counted until then.")
    if "past" in names and begin <= chosen.history.start:
        console.print(
            "past has seen nothing before the scored time, so it is uniform visits here; --train gives it some."
        )
    _hold(contest, keeper, jobs, f"{history.name}, {show_count(pages, 'page')} from {moment(begin)}", wide=wide)


def recorded_in(path: Path) -> "Recorded":
    """The events of a file of any form."""
    from afresh.lab.files import read_history

    if path.is_file():
        with path.open("rb") as file:
            if file.read(16).startswith(b"SQLite format 3"):
                return _from_store(path)
    return read_history(path)


def _from_store(path: Path) -> "Recorded":
    """The changes that an afresh store's own crawls found; each is as of the crawl that found it."""
    import numpy as np

    from afresh.lab.files import MODIFY, Recorded
    from afresh.store import Sqlite
    from afresh.types import Outcome

    numbers: dict[str, int] = {}
    pages, times, cursor = [], [], 0
    with Sqlite(path, create=False) as store:
        while batch := store.changes(after=cursor, limit=10_000):
            cursor = batch[-1][0]
            for _, crawl in batch:
                if crawl.outcome is Outcome.CHANGED:
                    pages.append(numbers.setdefault(crawl.url, len(numbers)))
                    times.append(crawl.time)
    if not times:
        raise InputError(f"{path} has seen no change yet.", hint="Let `afresh run` crawl for a while first.")
    kinds = np.full(len(times), MODIFY, np.int64)
    return Recorded(list(numbers), np.array(pages, np.int64), np.array(times, np.float64), kinds)


def scored_from(recorded: "Recorded", train: float, text: str | None) -> float:
    """When the scored time begins: after a share of all time, or at a moment."""
    from afresh.lab.files import moment_of

    start, end = float(recorded.time.min()), float(recorded.time.max())
    if not 0 <= train < 1:
        raise ConfigError(f"A training share of {train:g} makes no sense.", hint="Give --train from 0 to below 1.")
    if not start < end:
        raise InputError("All changes of the history are of one moment.", hint="A replay needs a time to score.")
    begin = start + train * (end - start) if text is None else moment_of(text)
    if not start <= begin < end:
        raise ConfigError(
            f"{text or train} is not a time within the history.",
            hint=f"It reaches from {moment(start)} to {moment(end)}.",
        )
    return begin


def _budget(text: str) -> float:
    spent = rate(text)
    if spent <= 0:
        raise ConfigError("A budget of nothing crawls nothing.", hint="Give --budget such as 200/day.")
    return spent


def interval_of(text: str) -> float:
    """Time between two visits to a page."""
    seconds = with_unit(text)
    if not seconds > 0:
        raise ConfigError(f"No page can be visited every {text.strip()}.", hint="Give --every above 0, such as 30d.")
    return seconds


def _signals(text: str) -> tuple[float, float, float]:
    if not text.strip():
        return 0.0, 1.0, 0.0
    hint = "Give --signals recall,precision,delay, such as 0.6,0.8,1h: two shares of at most 1 and a duration."
    parts = [part.strip() for part in text.split(",")]
    try:
        recall, precision = float(parts[0]), float(parts[1])
        delay = with_unit(parts[2]) if len(parts) == 3 else 0.0
    except (ValueError, IndexError):
        raise ConfigError(f"{text!r} does not describe signals.", hint=hint) from None
    if len(parts) > 3 or not (0 <= recall <= 1 and 0 < precision <= 1):
        raise ConfigError(f"{text!r} does not describe signals.", hint=hint)
    if precision < LEAST_PRECISION:
        raise ConfigError(
            f"A precision of {precision:g} is {1 / precision:.3g} signals for each that is true.",
            hint=f"Give one of at least {LEAST_PRECISION:g}.",
        )
    return recall, precision, delay


def _made_up(text: str, history: "History", seed: int) -> "Heard":
    import numpy as np

    from afresh.lab.work import check_events
    from afresh.sim.history import SILENCE, draw_signals

    recall, precision, delay = _signals(text)
    if recall == 0:
        return SILENCE
    changes = len(history.times)
    check_events(changes * recall / precision, "signals", "Give --signals of a higher precision.")
    rng = np.random.default_rng([seed, 4])
    return draw_signals(rng, history, recall=recall, precision=precision, delay=delay)


def _hold(contest: "Contest", keeper: Keeper, jobs: int | None, title: str, *, wide: bool) -> None:
    from afresh.lab.compare import ceiling, compile_ahead, hold

    history = contest.history
    visits = contest.budget * (history.end - history.start)
    policies = "policy" if len(contest.policies) == 1 else "policies"
    console.print(f"{visits:,.0f} visits for each of {len(contest.policies)} {policies}.")
    with stoppable(), shown_compiling():
        compile_ahead(contest.policies, signals=len(contest.heard.time) > 0)
    with stoppable(), progress_bar(keeper.name) as progress:
        lines = hold(contest, jobs=jobs or os.cpu_count() or 1, progress=progress)
        best = ceiling(contest, lines)
    lines.sort(key=lambda line: -line.weighted)
    pages = contest.history.pages
    heading = f"{title}; {show_rate(contest.budget)} crawls, each page every {show_duration(pages / contest.budget)}"
    _show(lines, best, heading, wide=wide)
    rows = [_row(line, contest, best) for line in lines]

    def draw(path: Path) -> None:
        from afresh.lab.plots import draw_contest

        draw_contest(lines, best, path, heading)

    keeper.keep(rows, heading, "share of time that copies were fresh", draw)


def _row(line: "Replayed", contest: "Contest", best: float) -> dict[str, Any]:
    return {
        "policy": line.policy,
        "pages": contest.history.pages,
        "weighted": line.weighted,
        "unweighted": line.unweighted,
        "ceiling": best,
        "crawls": line.crawls,
        "finds": line.finds,
        "stale_age": line.stale_age,
        "expected": None if math.isnan(line.expected) else line.expected,
        "brier": None if math.isnan(line.brier) else line.brier,
        "budget": contest.budget,
    }


def _show(lines: list["Replayed"], best: float, title: str, *, wide: bool) -> None:
    table = slim_table(
        labelled("", title, 0), "Shares of time fresh. Of best: against the best constant rates, in hindsight."
    )
    table.add_column("policy", no_wrap=True)
    for name in (*NARROW, *(WIDE if wide else ())):
        table.add_column(name, justify="right", no_wrap=True)
    for line in lines:
        cells = [
            f"{line.weighted:.4f}",
            f"{100 * line.weighted / best:.1f} %" if best > 0 else "-",
            f"{line.unweighted:.4f}",
            f"{line.crawls:,}",
            show_duration(line.stale_age),
            "-" if math.isnan(line.expected) else f"{line.expected:.4f}",
            "-" if math.isnan(line.brier) else f"{line.brier:.4f}",
            f"{100 * line.finds:.1f} %",
        ]
        table.add_row(line.policy, *cells[: None if wide else len(NARROW)])
    print_whole(table) if wide else console.print(table)
    if not wide:
        console.print(f"--wide also shows {', '.join(WIDE)}.")
