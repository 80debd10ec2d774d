"""`afresh senders`: who sends change hints, and what they are worth."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afresh.cli.handover import hand_over, said_of
from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, console, errors, labelled, now, plain
from afresh.errors import ConfigError, InputError
from afresh.store import LastingStore, Sqlite, Store, understood
from afresh.store.socket_file import ask
from afresh.units import show_duration

if TYPE_CHECKING:
    from afresh.cli.cluster_learned import Learned
    from afresh.estimate.grades import Grade

NAME_WIDTH = 36
HEADING = f"{'sender':{NAME_WIDTH}} {'worth':>14} {'checked':>8} {'late by':>9} {'hosts':>7}"
GRADES = f"{'sender':12} {'host':17} {'heard':>7} {'precision':>10} {'recall':>10} {'late':>6} {'saved':>6} {'now':>5}"
BY_WORKERS = (
    "By a cluster's workers, as each last wrote it down: every 30 s while it works. Worth is the mean of theirs."
)
BY_FORMER = "* By who held the host before: the one that holds it now has no grade there."
ENOUGH = 20  # checked signals; of fewer, nothing is said
SHOWN = 20  # grades; --json has all
MAX_WEIGHT = 1.0  # the best sender's own

Names = Annotated[list[str] | None, typer.Option(help="Repeatable.", show_default=False)]


def senders(
    mute: Annotated[list[str] | None, typer.Option(help="Let this sender weigh nothing; repeatable.")] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(help="Give a sender a weight, from 0 to the best one's, 1: NAME=0.5; repeatable."),
    ] = None,
    free: Annotated[list[str] | None, typer.Option(help="Let it be learned again; repeatable.")] = None,
    host: Annotated[str, typer.Option(help="With those: on this host only.")] = "",
    plot: Annotated[
        Path | None, typer.Option(help="Draw precision and recall, weighted by importance, into this .png or .svg.")
    ] = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """List who sends change hints, and what their signals are worth. The most reliable come first.

    Worth is how much one signal of a sender says, compared with one of the sender that is best so far. It is learned:
    crawls show which signals were true. "Checked" is how many signals it rests on; with few, the range is wide. "Late
    by" is how long after a change its signals still come. The hosts are those where it was learned.

    Then every sender on each host: how many signals were heard; precision, the share of them that meant a change;
    recall, the share of changes that it told of; how late it is; crawls that it saved; and the weight of its signals
    now (! if you have set it). Ranges hold nine times in ten.

    Example: afresh senders --mute ping --host example.com
    """
    from afresh.cli.opening import open_store, settings

    if plot is not None:
        from afresh.lab.plots import check_picture

        check_picture(plot)
    with open_store(settings(config, store), create=False) as kept:
        if mute or pin or free:
            _pin(kept, mute or [], pin or [], free or [], host)
            return
        found, graded = sender_facts(kept), grade_facts(kept)
        if plot is not None:
            _plot(kept, graded, plot)
            return
    if json:
        for facts in found:
            mine = [grade for grade in graded if grade["sender"] == facts["sender"]]
            typer.echo(as_json({**facts, "grades": mine}))
        names = {facts["sender"] for facts in found}
        for grade in graded:
            if grade["sender"] not in names:  # validators, which send no signals
                typer.echo(as_json({"sender": grade["sender"], "grades": [grade]}))
        return
    if not found and not graded:
        console.print("No signals were heard yet. `afresh signal` sends one.")
        return
    _show(found, graded)


def _show(found: list[dict[str, Any]], graded: list[dict[str, Any]]) -> None:
    if found:
        _show_worth(found)
    if graded:
        _show_grades(graded)
    if any("workers" in facts for facts in found) or any("worker" in grade for grade in graded):
        console.print()
        console.print(BY_WORKERS)
        if any(grade.get("former") for grade in graded[:SHOWN]):
            console.print(BY_FORMER)


def _show_worth(found: list[dict[str, Any]]) -> None:
    console.print(HEADING)
    # Those of whom little was checked stand below: anybody may send under a thousand names.
    for facts in sorted(found, key=lambda each: each["checked"] < ENOUGH)[:SHOWN]:
        name = plain(facts["sender"], 100)
        if len(name) > NAME_WIDTH:
            console.print(name)
            name = ""
        late = show_duration(facts["late"]) if facts["late"] else "-"
        checked = f"{facts['checked']:,.0f}"
        console.print(f"{name:{NAME_WIDTH}} {_worth(facts, len(found)):>14} {checked:>8} {late:>9} {facts['hosts']:7,}")
    if len(found) > SHOWN:
        console.print(f"and {len(found) - SHOWN:,} more (--json has all)")
    if not any(facts["evidence"] for facts in found):
        console.print("No crawl has checked any of their signals yet: all count alike.")


def _show_grades(graded: list[dict[str, Any]]) -> None:
    console.print()
    console.print(GRADES)
    for grade in graded[:SHOWN]:
        late = "-" if grade["late"] is None else show_duration(grade["late"])
        weight = "" if grade["weight"] is None else f"{grade['weight']:.2f}{'' if grade['pinned'] is None else '!'}"
        checked = grade["precision"] is not None and grade["heard"] >= ENOUGH
        saved = f"{grade['saved']:,.0f}" if checked and weight else ""
        sender, host = plain(grade["sender"], 100), plain(grade["host"], 300) + "*" * grade.get("former", False)
        if len(sender) > 12 or len(host) > 17:  # a line of their own, whole
            console.print(f"{sender:12} {host}", soft_wrap=True)
            sender = host = ""
        console.print(
            f"{sender:12} {host:17} {grade['heard']:7,.0f} "
            f"{_share(grade, 'precision'):>10} {_share(grade, 'recall'):>10} {late:>6} {saved:>6} {weight:>5}",
            soft_wrap=True,
        )
    if len(graded) > SHOWN:
        console.print(f"and {len(graded) - SHOWN:,} more (--json has all)")


def _saved(grade: dict[str, Any]) -> float:
    """How many crawls a sender has saved."""
    from afresh.estimate.saved import crawls_saved

    if grade["precision"] is None or grade["recall"] is None:
        return 0.0
    return crawls_saved(grade["crawls"], grade["changes"], grade["precision"], grade["recall"])


def _share(grade: dict[str, Any], name: str) -> str:
    """A share with about what it may be off."""
    if grade[name] is None:
        return "-"
    low, high = grade[f"{name}_range"]
    return f"{grade[name]:.2f} ±{(high - low) / 2:.2f}"


def _worth(facts: dict[str, Any], senders: int) -> str:
    """What a sender is worth, as far as that can be told."""
    if not facts["evidence"]:
        return "not yet"
    if facts["checked"] < ENOUGH:
        return "too few"
    if senders == 1:
        return "the only one"
    if facts["worth_from"] == facts["worth_to"]:
        return "the best"
    return f"{100 * facts['worth_from']:.0f} to {100 * facts['worth_to']:.0f} %"


def sender_facts(kept: LastingStore) -> list[dict[str, Any]]:
    """Every sender and what its signals are worth, the most reliable first."""
    answer = ask(kept.path, "senders")
    return answer if isinstance(answer, list) else _from_store(kept)


def grade_facts(kept: LastingStore) -> list[dict[str, Any]]:
    """The grades of every sender on every host."""
    grades = ask(kept.path, "grades")
    found: list[dict[str, Any]] = grades if isinstance(grades, list) else _grades_from_store(kept)
    return [{**grade, "saved": round(_saved(grade), 1)} for grade in found]


def _by_workers(kept: LastingStore) -> "Learned | None":
    """What the workers of a cluster left; None where one process runs or ran."""
    if isinstance(kept, Sqlite):
        return None
    from afresh.cli.cluster_learned import learned_by_workers

    return learned_by_workers(kept)


def _from_store(kept: LastingStore) -> list[dict[str, Any]]:
    from afresh.estimate import Senders

    if (workers := _by_workers(kept)) is not None:
        return workers.of_senders()
    return understood("senders", lambda: Senders.recalled(kept.get)).summary()


def _grades_from_store(kept: LastingStore) -> list[dict[str, Any]]:
    from dataclasses import asdict

    from afresh.store.messages import PINNED, Pins

    workers = _by_workers(kept)
    pins, found = understood(PINNED, lambda: Pins.from_text(kept.get(PINNED))), []
    for grade, weight, whose in _of_one(kept) if workers is None else workers.of_hosts():
        pinned = pins.of(grade.sender, grade.host)
        found.append({**asdict(grade), "weight": weight if pinned is None else pinned, "pinned": pinned, **whose})
    return sorted(found, key=lambda each: (-each["heard"], each["sender"], each["host"]))


def _of_one(kept: Store) -> Iterator[tuple["Grade", float | None, dict[str, Any]]]:
    """The grades that one process left, with the weights that it learned."""
    from afresh.estimate import Senders
    from afresh.estimate.grades import Grades

    grades = understood("grades", lambda: Grades.from_text(kept.get("grades")))
    learned = understood("senders", lambda: Senders.recalled(kept.get))
    for grade in grades.all():
        known = grade.sender in learned.names
        yield grade, learned.weight(grade.host, learned.number(grade.sender)) if known else None, {}


def _pin(kept: LastingStore, mute: list[str], pin: list[str], free: list[str], host: str) -> None:
    """Hand over what an operator says of senders."""
    from afresh.store.messages import packed

    items: list[list[object]] = [[name, host, 0.0] for name in mute]
    for each in pin:
        name, equals, text = each.rpartition("=")
        try:
            weight = float(text)
        except ValueError:
            weight = -1.0
        if not equals or not name or not 0.0 <= weight <= MAX_WEIGHT:
            raise ConfigError(f"{each[:80]!r} is not a sender and a weight.", hint="Write --pin NAME=0.5, from 0 to 1.")
        items.append([name, host, weight])
    items += [[name, host, None] for name in free]
    if any(not 0 < len(str(item[0])) <= 100 for item in items):
        raise InputError("That is no name of a sender.", hint="`afresh senders` lists them.")
    names = [str(item[0]) for item in items]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"Two things are said of {plain(twice, 40)}.", hint="Mute it, pin it once, or free it.")
    if host and next(iter(kept.states_of_host(host)), None) is None:
        raise InputError(f"No page of {plain(host, 80)} is kept.", hint="Give a host as `afresh hosts` lists it.")
    strange = [name for name in names if name not in _heard_of(kept)]
    handed = hand_over(kept, packed("pin", items, now()))
    where = f" on {plain(host, 80)}" if host else ""
    said = [
        f"{plain(str(name), 40)} {'is learned again' if weight is None else f'weighs {weight:g}'}"
        for name, _, weight in items
    ]
    typer.echo(f"{', '.join(said)}{where}.{said_of(handed)}")
    if strange:
        unheard = ", ".join(plain(name, 40) for name in strange)
        errors.print(labelled("Note:", f"Nothing was heard yet of {unheard}.", 6))


def _heard_of(kept: LastingStore) -> set[str]:
    """The names of senders that anything is known of, or said of by the operator."""
    from afresh.store.messages import PINNED, Pins

    known = [*sender_facts(kept), *grade_facts(kept)]
    pinned = understood(PINNED, lambda: Pins.from_text(kept.get(PINNED))).weights
    return {str(each["sender"]) for each in known} | {name for name, _ in pinned}


def _plot(kept: Store, graded: list[dict[str, Any]], path: Path) -> None:
    """Histograms of precision and recall over hosts, each weighted by how much its pages are asked for."""
    from afresh.lab.plots import draw_grades

    graded = [grade for grade in graded if grade["heard"] >= ENOUGH]  # of fewer, a bar says nothing
    if not graded:
        raise InputError(
            f"No sender was heard {ENOUGH} times on a host yet.",
            hint="Let it run for a while: crawls show which signals were true.",
        )
    weights: dict[str, float] = {}
    for _, state in kept.states():
        rate = state.beliefs.request_rate if state.beliefs is not None else 1.0
        weights[state.page.host] = weights.get(state.page.host, 0.0) + rate
    rows = [(g["sender"], g["precision"], g["recall"], weights.get(g["host"], 0.0)) for g in graded]
    draw_grades(rows, path)
    console.print(f"Wrote {plain(str(path))}.")
