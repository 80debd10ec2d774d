"""What `afresh status` says where refresh rates are learned from costs."""

import json
import math
from collections.abc import Iterator
from typing import Any

from afresh.cli.terminal import labelled, plain
from afresh.cli.wording import INDENT
from afresh.config import Config
from afresh.store import Store, understood
from afresh.store.messages import COSTS_KEPT
from afresh.units import show_count, show_duration

UNKNOWN = {"failed": "failed", "too slow": "took too long", "no cost": "gave no cost"}
BUSY = "busy"  # at other crawls: the function was not asked


def learning_of(kept: Store, config: Config, said: dict[str, Any]) -> dict[str, Any] | None:
    """How far learning is: by the runner, or by the store; None if nothing is learned from costs."""
    if said:
        learning: dict[str, Any] | None = said.get("learning")
        return learning and {**learning, "asked": said.get("costs")}
    if config.crawl.policy != "mirror":
        return None
    from afresh.daemon.keeping import LEARNED_RATES
    from afresh.mirror.kept import cost_in, read_learned

    asked = _asked_before(kept, config.crawl.cost)
    nothing = {
        "cost": config.crawl.cost,
        "mean": None,
        "updates": 0,
        "refreshes": 0,
        "next_update": None,
        "probes": asked["probes"] if asked else 0,
        "asked": asked,
    }
    text = kept.get(LEARNED_RATES)
    if text is None or cost_in(text) != config.crawl.cost:
        return nothing
    head, _ = understood(LEARNED_RATES, lambda: read_learned(text))
    mean = head.cost / head.refreshes if head.refreshes else None
    return {**nothing, "mean": mean, "updates": int(head.updates), "refreshes": int(head.samples)}


def _asked_before(kept: Store, cost: str) -> dict[str, Any] | None:
    """How the last run fared with this cost; None if there was none, or it had another."""
    text = kept.get(COSTS_KEPT)
    asked: dict[str, Any] | None = understood(COSTS_KEPT, lambda: _fared(json.loads(text))) if text else None
    return {**asked, "ended": True} if asked and asked["cost"] == cost else None


def _fared(kept: dict[str, Any]) -> dict[str, Any]:
    for number in (kept["known"], kept["probes"], *kept["unknown"].values()):
        int(number)
    for number in (kept["share_asked"], kept["seconds"], kept["slowest"]):
        float(number or 0.0)
    kept["complaint"], kept["cost"] = str(kept["complaint"]), str(kept["cost"])
    return kept


def learning_lines(learning: dict[str, Any]) -> Iterator[str]:
    """What the rates follow from, how far learning is, and what became of the costs, for people."""
    updates = show_count(learning["updates"], "update")
    so_far = f"{updates} so far" if learning["updates"] else "none learned yet: all pages have the same rate"
    yield labelled("rates", f"learned from costs ({plain(learning['cost'], 80)}): {so_far}", len(INDENT))
    if learning["next_update"]:
        done = f"{learning['refreshes']:,} of the {show_count(learning['next_update'], 'refresh', 'refreshes')}"
        yield labelled("", f"the next update: {done} with a known cost are done", len(INDENT))
    known = learning["mean"] is not None and not math.isnan(learning["mean"])
    parts = [f"{learning['mean']:.3g} on average at refreshes" if known else "none known yet"]
    asked = learning["asked"]
    if asked:
        since = f"{'in the last run' if asked.get('ended') else 'since the start'} {asked['known']:,} known"
        parts.append(f"{since}, {show_count(learning['probes'], 'probe')} among them")
    yield labelled("costs", "; ".join(parts), len(INDENT))
    wrong = {kind: count for kind, count in asked["unknown"].items() if kind != BUSY} if asked else {}
    if asked and wrong:
        each = ", ".join(f"{UNKNOWN.get(kind, plain(kind, 20))} {count:,} times" for kind, count in wrong.items())
        yield labelled(
            "", f"not known where the function {each}; the last: {plain(asked['complaint'], 160)}", len(INDENT)
        )
    if asked and asked["unknown"].get(BUSY):
        share = f"{100 * asked['share_asked']:.3g} % of the crawls"
        yield labelled(
            "", f"the function cannot keep up: it is asked about {share}, the others teach nothing", len(INDENT)
        )
    if asked and asked["seconds"] is not None:
        mean, slowest = show_duration(asked["seconds"]), show_duration(asked["slowest"])
        yield labelled("", f"the function takes {mean} on average, {slowest} at most", len(INDENT))
