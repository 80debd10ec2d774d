"""The command that plans: what does a budget buy, and what does a goal cost?"""

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, console, errors, labelled, now, plain, working
from afresh.config import Config
from afresh.errors import AfreshError, ConfigError, InputError
from afresh.store import Store, understood
from afresh.store.messages import weights_kept
from afresh.store.understood import number_kept
from afresh.types import Beliefs
from afresh.units import rate, show_count, show_rate

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from afresh.frontier import Allowance
    from afresh.value.plan import Plan

COLUMNS = ("request_rate", "change_rate", "recall", "false_rate", "cost")
NAMED = "page"  # a column that is no number
NEEDED = 2
MANY = 20_000  # pages; of more, what was believed of each is taken as it was last written
GOALS = (0.5, 0.8, 0.9, 0.95, 0.99)


def plan(
    budget: Annotated[
        list[str] | None, typer.Option(help='What does this budget buy? Such as "10/s"; repeatable.')
    ] = None,
    reach: Annotated[
        list[str] | None, typer.Option(help='What does this freshness cost? Such as "95%"; repeatable.')
    ] = None,
    rates: Annotated[
        Path | None,
        typer.Option(help="Plan for a CSV of rates per second instead of the store; its first line names the columns."),
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(
            help="Write rank, utility, refresh rate and refresh probability of every page at the first --budget, or "
            "the runner's, to this file: CSV, or JSON lines (.jsonl); - for standard output."
        ),
    ] = None,
    quality: Annotated[
        bool, typer.Option("--quality", help="Count right answers to frequent searches instead of fresh copies.")
    ] = False,
    worth: Annotated[
        float | None,
        typer.Option(help="Right answers (or fresh requests) that one more crawl must gain: which budget is that?"),
    ] = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="What a cluster needs on paper, for 10^6, 10^9 and 10^12 pages.")
    ] = False,
    every: Annotated[str, typer.Option(help="With --cluster: each page once in so long, on average.")] = "30d",
    plot: Annotated[Path | None, typer.Option(help="Draw the curve into this file (.png, .svg or .pdf).")] = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Show what a budget buys: the best freshness that any schedule could reach, budget by budget.

    No host is asked more often than politeness allows, whatever the budget. What [[site]] says of budgets, hours and
    intervals is not counted: a note says so where there is any.

    Reads what is believed about the pages in the store, or a CSV with the columns request_rate and change_rate (both
    per second). Optional columns are page (a name), recall, false_rate and cost.

    Example: afresh plan --budget 5/s --reach 95% --plot plan.png
    """
    if cluster:
        from afresh.cli.sizes import show_sizes

        if budget or reach or rates or pages or quality or worth is not None or plot or store:
            raise InputError(
                "With --cluster nothing is planned but three sizes.", hint="It goes with --every and --json alone."
            )

        show_sizes(every, json=json)
        return
    if plot is not None:
        from afresh.lab.pictures import pyplot

        pyplot()  # says now, and not after the work, that it is not there
    budgets = [rate(each) for each in budget or []]
    goals = [_share(each) for each in reach or []] or list(GOALS)
    if not all(each > 0 for each in budgets):
        raise ConfigError("A budget of 0 crawls nothing.", hint="Give rates above 0, such as --budget 1/s.")
    if worth is not None and not worth > 0:
        raise ConfigError(f"{worth} is no gain of a crawl.", hint="Give a number above 0, such as --worth 0.05.")
    with working("Reading pages"):
        known = _from_csv(rates) if rates is not None else _from_store(config, store, quality=quality)
    if pages is not None:
        _write_each(pages, known, budgets[0] if budgets else known.budget)
        if str(pages) == "-":
            return
    with working(f"Planning for {show_count(known.count, 'page')}"):
        facts, curve = reckoned(known, budgets, goals)
        if worth is not None:
            facts["worth"] = {"gain": worth, "budget": _worth_it(known, worth)}
    if plot is not None:
        _draw(plot, curve.budgets, curve.freshness, facts)
    typer.echo(as_json(facts)) if json else _print(facts)


def _write_each(path: Path, known: "Known", budget: float | None) -> None:
    from afresh.cli.plan_pages import shares_of_pages, write_pages

    if budget is None:
        raise ConfigError("What each page gets depends on the budget.", hint="Give --budget, such as 5/s.")
    with working(f"Planning each of {show_count(known.count, 'page')}"):
        write_pages(path, shares_of_pages(known.names, known.arrays, budget))
    if str(path) != "-":
        errors.print(
            f"Wrote {show_count(known.count, 'page')} to {plain(str(path))}, for a budget of {show_rate(budget)}."
        )


def reckoned(known: "Known", budgets: list[float], goals: list[float]) -> "tuple[dict[str, Any], Plan]":
    """What budgets buy and goals cost; and the whole curve."""
    from afresh.value.plan import plan as plan_for

    curve = plan_for(**known.arrays)
    asked = plan_for(sorted(budgets) or _worth_a_row(curve.budgets.tolist(), known), **known.arrays)
    most = max(budgets) if budgets else known.budget
    facts: dict[str, Any] = {
        "purse": "crawl",  # files and queries have budgets of their own, which are not planned
        "others": known.others,
        "pages": known.count,
        "left_out": known.left_out,
        "as_of": known.as_of,
        "rules": known.rules,
        "politeness": known.allowed.sentence(most) if known.allowed is not None and most else "",
        "politeness_rate": known.allowed.rate if known.allowed is not None else None,
        "budgets": [
            {"budget": each, "freshness": share, "price": price}
            for each, share, price in zip(
                asked.budgets.tolist(), asked.freshness.tolist(), asked.prices.tolist(), strict=True
            )
        ],
        "goals": [_cost_of(goal, known) for goal in goals],
    }
    if known.at_stake is not None:
        facts["at_stake"] = known.at_stake
        facts["searches"] = known.searches
        rows: list[dict[str, Any]] = [*facts["budgets"], *facts["goals"]]
        for row in rows:
            row["quality"] = 1.0 - known.at_stake * (1.0 - row["freshness"])
    return facts, curve


def _worth_a_row(budgets: list[float], known: "Known") -> list[float]:
    """Budgets to show where none were asked for: the operator's own among them, and one that hosts cannot take up."""
    most = float(known.arrays["host_budget"].sum()) if "host_budget" in known.arrays else math.inf
    own = [known.budget] if known.budget else []
    beyond = [each for each in budgets if each > most]
    return sorted({*(each for each in budgets if each <= most), *beyond[:1], *own})


def _worth_it(known: "Known", gain: float) -> float | None:
    """The budget beyond which one more crawl gains less than that; None: the first one does."""
    from afresh.value.plan import plan as plan_for

    low, high = 1e-9, 1e9
    if float(plan_for([low], **known.arrays).prices[0]) < gain:
        return None
    for _ in range(60):
        middle = math.sqrt(low * high)
        if float(plan_for([middle], **known.arrays).prices[0]) >= gain:
            low = middle
        else:
            high = middle
    return low


@dataclass(frozen=True, slots=True)
class Known:
    """What a plan is made from."""

    arrays: dict[str, Any]  # what `value.optimum` takes besides the budget
    names: list[str]
    left_out: int = 0  # pages about which nothing is believed yet
    budget: float | None = None  # the last runner's, or before any has run the settings'
    allowed: "Allowance | None" = None  # by politeness
    as_of: str = ""  # how old all that is; "": it is of now
    # Where answers to searches count: what share of them would be wrong, if all copies were stale.
    at_stake: float | None = None
    searches: float = 0.0  # a second
    others: int = 0  # files and results of queries, which other budgets pay
    rules: str = ""  # which wishes of the operator a plan leaves out; "": there are none

    @property
    def count(self) -> int:
        """How many pages are planned for."""
        return len(self.names)


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if share == 1:
        raise ConfigError("No budget keeps every copy fresh all the time.", hint='Ask for less, such as "99.9%".')
    if not 0 < share < 1:
        raise ConfigError(f"{text!r} is not a share of requests.", hint='Write it like "95%" or "0.95".')
    return share


def _from_store(config: Path | None, store: str | None, *, quality: bool = False) -> Known:
    from afresh.cli.opening import open_store, settings

    read = settings(config, store)
    with open_store(read, create=False) as kept:
        return known_pages(kept, read, quality=quality)


def known_pages(kept: Store, read: Config, *, quality: bool = False) -> Known:
    """What is believed of the pages of a store; InputError if nothing is."""
    import numpy as np

    from afresh.cli.allowed import allowed, host_rates
    from afresh.frontier import host_of

    polite, last = allowed(kept, read), kept.get("budget")
    budget = understood("budget", lambda: float(last)) if last is not None else read.crawl.budget
    pages, waiting = kept.totals().pages, kept.totals().inbox_entries
    beliefs = _beliefs_now(kept, read) if pages <= MANY else _beliefs_kept(kept)
    # Files and queries have budgets of their own: this is about that of the crawl.
    everything = len(beliefs)
    beliefs = {url: each for url, each in beliefs.items() if not url.startswith(("file:", "sql:"))}
    others = everything - len(beliefs)
    found = [(each.request_rate, each.change_rate, each.recall, each.false_rate) for each in beliefs.values()]
    numbers: dict[str, int] = {}
    host = [numbers.setdefault(host_of(url), len(numbers)) for url in beliefs]
    most = host_rates(kept, read, list(numbers), polite)
    searched = weights_kept(kept.get) if quality else None
    if not found:
        if others:
            raise InputError(
                f"There are no pages to plan for: all {show_count(others, 'thing')} here have budgets of their own.",
                hint="A plan is about [crawl] budget; afresh status shows what the others spend.",
            )
        raise InputError(
            "Nothing is known of any page yet.", hint="Let `afresh run` crawl first, or give --rates FILE."
        )
    columns = np.array(found, dtype=np.float64).T
    arrays: dict[str, Any] = dict(zip(COLUMNS, columns, strict=False))
    if most and max(most) < float("inf"):
        arrays |= {"host": np.array(host, dtype=np.int64), "host_budget": np.array(most)}
    left_out = pages - everything
    at_stake = None
    if quality:
        if searched is None:
            raise InputError(
                "Nothing is known of searches yet.",
                hint="Set [index] enabled = true, search, and let `afresh run` crawl for a while.",
            )
        weights, base, searches = searched
        each = np.array([weights.get(url, base) for url in beliefs])
        arrays["request_rate"] = np.maximum(each, 1e-12) * searches
        at_stake = min(float(each.sum()), 1.0)
    return Known(
        arrays,
        list(beliefs),
        left_out,
        budget,
        polite,
        _as_of(pages, waiting),
        at_stake,
        searched[2] if quality and searched is not None else 0.0,
        others,
        _rules_left_out(read),
    )


def plan_facts(kept: Store, config: Config, budgets: list[float], goals: list[float]) -> dict[str, Any]:
    """What budgets buy and goals cost; of many pages, as a sample of them says."""
    pages = kept.totals().pages
    known, share = (known_pages(kept, config), 1.0) if pages <= MANY else _sampled(kept, config, pages)
    facts, _ = reckoned(known, [each * share for each in budgets], goals)
    for row in (*facts["budgets"], *facts["goals"]):
        row["budget"] = None if row["budget"] is None else row["budget"] / share
    return facts | {"pages": pages, "sample": known.count, "is_sample": pages > MANY}


def _sampled(kept: Store, config: Config, pages: int) -> tuple[Known, float]:
    """Some of the pages, for all, and how large a share they are: hosts are not limited one by one, but all together
    by what politeness allows."""
    import numpy as np

    from afresh.cli.allowed import allowed
    from afresh.cli.stated import some_states

    states = some_states(kept)
    found, share = [state for state in states if state.beliefs is not None], len(states) / pages
    if not found:
        raise InputError("Nothing is known of any page yet.", hint="Let `afresh run` crawl first.")
    rows = [(b.request_rate, b.change_rate, b.recall, b.false_rate) for state in found if (b := state.beliefs)]
    columns = np.array(rows, dtype=np.float64).T
    arrays: dict[str, Any] = dict(zip(COLUMNS, columns, strict=False))
    polite = allowed(kept, config)
    if polite.rate < float("inf"):
        arrays |= {"host": np.zeros(len(found), dtype=np.int64), "host_budget": np.array([polite.rate * share])}
    names = [state.page.url for state in found]
    budget = number_kept(kept, "budget") or float(config.crawl.budget)
    return Known(arrays, names, pages - len(found), budget * share, polite, _as_of(pages, 0)), share


def _beliefs_kept(kept: Store) -> dict[str, Beliefs]:
    """What was believed of each page when it was last crawled, or a request or signal for it came."""
    return {state.page.url: state.beliefs for _, state in kept.states() if state.beliefs is not None}


def _beliefs_now(kept: Store, config: Config) -> dict[str, Beliefs]:
    """What a runner would believe now: requests for some pages tell of the others, too."""
    from afresh.cli.build import rules_for
    from afresh.cli.stated import beliefs_now

    states = [state for _, state in kept.states() if state.beliefs is not None]
    beliefs = beliefs_now(kept, states, now(), config.importance, rules_for(config))
    return dict(zip((state.page.url for state in states), beliefs, strict=True))


def _rules_left_out(config: Config) -> str:
    """A sentence about what the settings want of sites and a plan does not count."""
    names = ("budget", "hours", "shortest_interval", "longest_interval")
    found = [name for name in names if any(getattr(site, name, None) for site in config.site)]
    return f"what [[site]] says of {', '.join(found)} is not counted" if found else ""


def _as_of(pages: int, waiting: int) -> str:
    """A sentence about how old the beliefs are, where that matters."""
    if waiting:
        batches = show_count(waiting, "batch of signals or requests", "batches of signals or requests")
        return f"{batches} not counted yet: `afresh run` takes them in"
    if pages > MANY:
        return "of so many pages, each counts as it was believed to be when it was last crawled or heard of"
    return ""


def _from_csv(path: Path) -> Known:
    import numpy as np

    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            names = [name.strip() for name in next(reader, [])]
            _check_names(path, names)
            lines = [(number, row) for number, row in enumerate(reader, start=2) if row]
            pages = _taken_out(path, names, lines)
            rows = [_numbers(path, number, names, row) for number, row in lines]
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.", hint="Check its name.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read as CSV: {error}.", hint="Save it as UTF-8 text.") from None
    if not rows:
        raise InputError(f"{path} has no pages.", hint="Write one page a line below the line of names.")
    columns = np.array(rows, dtype=np.float64).T
    return Known(dict(zip(names, columns, strict=True)), pages)


def _taken_out(path: Path, names: list[str], lines: list[tuple[int, list[str]]]) -> list[str]:
    """The pages' own names, which are taken out of the lines; their numbers, if they have none."""
    if NAMED not in names:
        return [str(nth) for nth in range(1, len(lines) + 1)]
    place = names.index(NAMED)
    for number, row in lines:
        if len(row) <= place:
            raise InputError(f"{path}, line {number} names no page.", hint="One value for every column.")
    names.pop(place)
    return [row.pop(place) for _, row in lines]


def _check_names(path: Path, names: list[str]) -> None:
    wrong = [name for name in names if name not in (*COLUMNS, NAMED)]
    missing = [name for name in COLUMNS[:NEEDED] if name not in names]
    if wrong or missing or len(set(names)) != len(names):
        what = (
            f"has an unknown column {wrong[0]!r}"
            if wrong
            else f"lacks the column {missing[0]}"
            if missing
            else "names a column twice"
        )
        raise InputError(
            f"{path}, line 1 {what}.",
            hint=f"Its first line names columns: {', '.join((*COLUMNS, NAMED))}; the first two are needed.",
        )


def _numbers(path: Path, number: int, names: list[str], row: list[str]) -> list[float]:
    if len(row) != len(names):
        raise InputError(
            f"{path}, line {number} has {show_count(len(row), 'value')} instead of {len(names)}.",
            hint="One value for every column.",
        )
    values = []
    for name, text in zip(names, row, strict=True):
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        most = 1.0 if name == "recall" else float("inf")
        if not 0 <= value <= most or value == float("inf") or (name == "cost" and value == 0):
            raise InputError(
                f"{path}, line {number}: {text[:40]!r} is not a {name}.",
                hint="Recall lies between 0 and 1, cost is above 0, rates are per second and at least 0.",
            )
        values.append(value)
    return values


def _cost_of(wanted: float, pages: Known) -> dict[str, Any]:
    """What a share of fresh copies costs, or where answers to searches count, of right answers."""
    from afresh.value.optimum import optimum
    from afresh.value.plan import budget_for

    stake = pages.at_stake or 1.0
    goal = 1.0 - (1.0 - wanted) / stake
    if goal <= 0.0:  # so many are right even if nothing is crawled
        return {"freshness": 0.0, "budget": 0.0}
    if "host_budget" in pages.arrays:
        most = optimum(budget=float(pages.arrays["host_budget"].sum()), **pages.arrays).freshness
        if goal > most:
            at_most = math.floor(1e4 * (1.0 - stake * (1.0 - most))) / 100
            return {"freshness": goal, "budget": None, "why": f"none: politeness allows at most {at_most:g} %"}
    try:
        return {"freshness": goal, "budget": budget_for(goal, **pages.arrays).cost}
    except AfreshError as error:
        return {"freshness": goal, "budget": None, "why": str(error)}


def _print(facts: dict[str, Any]) -> None:
    left_out = (
        f" ({facts['left_out']:,} more {'is' if facts['left_out'] == 1 else 'are'} not known yet)"
        if facts["left_out"]
        else ""
    )
    console.print(f"The best that any schedule could do for {show_count(facts['pages'], 'page')}{left_out}:")
    served, name, gained = "served fresh", "freshness", "fresh requests"
    if "at_stake" in facts:
        served, name, gained = "right answers", "quality", "right answers"
    buys = Table("budget", served, "one more crawl a second gains", title="What a budget buys", title_justify="left")
    for row in facts["budgets"]:
        buys.add_row(show_rate(row["budget"]), f"{100 * row[name]:.1f} %", f"{row['price']:.3g} {gained} a second")
    costs = Table(served, "budget", title="What a goal costs", title_justify="left")
    for row in facts["goals"]:
        costs.add_row(_percent(row[name]), row["why"] if row["budget"] is None else show_rate(row["budget"]))
    console.print(buys, costs, sep="\n")
    if facts["others"]:
        others = show_count(facts["others"], "file or result of a query", "files and results of queries")
        console.print(labelled("", f"Planned is [crawl] budget alone: {others} of other budgets are left out.", 0))
    if "at_stake" in facts:
        stake, answers = f"{100 * facts['at_stake']:.3g} %", show_rate(facts["searches"])
        console.print(f"There are {answers} answers. If all copies were outdated, {stake} of them would be wrong.")
    if "worth" in facts:
        beyond = facts["worth"]["budget"]
        said = "from the first crawl on" if beyond is None else f"beyond a budget of {show_rate(beyond)}"
        console.print(f"One more crawl gains less than {facts['worth']['gain']:g} {gained} {said}.")
    for note in ("as_of", "rules", "politeness"):
        if facts[note]:
            console.print(labelled("Note:", f"{facts[note]}.", 6))


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def _draw(
    path: Path, budgets: "npt.NDArray[np.float64]", freshness: "npt.NDArray[np.float64]", facts: dict[str, Any]
) -> None:
    from afresh.lab.pictures import pyplot as drawing

    pyplot = drawing()
    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    axes.semilogx(budgets, 100 * freshness, color="tab:blue")
    for row in facts["goals"]:
        if row["budget"]:
            axes.plot(row["budget"], 100 * row["freshness"], "o", color="tab:orange")
            label = f"{_percent(row['freshness'])}: {show_rate(row['budget'])}"
            axes.annotate(
                label, (row["budget"], 100 * row["freshness"]), (8, -12), textcoords="offset points", fontsize=8
            )
    axes.set(xlabel="budget (crawls per second)", ylabel="requests served fresh (%)", ylim=(0, 102))
    axes.set_title(f"What a budget buys for {show_count(facts['pages'], 'page')}", loc="left")
    axes.grid(alpha=0.3)
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise ConfigError(f"The picture {path} cannot be written: {error}.", hint="Use a name like plan.png.") from None
    finally:
        pyplot.close(figure)
