"""Why a page is due when it is, what is wrong with it, and what it waits for, in sentences."""

import math
from typing import Any

from afresh.cli.reasons import words
from afresh.cli.terminal import moment, plain
from afresh.cli.wishes import held
from afresh.types import Outcome
from afresh.units import show_count, show_duration, show_rate

OLDEST = 1e100  # seconds; an age at which all is gained that time brings


def why(facts: dict[str, Any], when: float) -> str:
    """The decision in a sentence or two."""
    trouble = trouble_of(facts)
    if facts["held_by"] == "paused":
        return held(facts) or "It is paused."
    if facts["refresh"]:
        return f"A refresh was asked for, which goes ahead of all others; {facts['refresh']}."
    if facts["gone"]:
        return _gone(facts, when)
    if trouble and facts["copy"] is None:
        return f"It was never fetched: {trouble}."
    if facts["copy"] is None or facts["beliefs"] is None:
        return _for_first_turn(facts, when)
    if facts.get("learned_rate") and not trouble and not facts.get("put_off", 0.0) > when:
        return _by_costs(facts, when)
    reason = _reason(facts, when)
    if facts["price"] is None:
        return f"No runner has set a price yet; {reason}."
    if facts["first_crawls"] and not facts["budget_spare"]:
        reason += f"; {show_count(facts['first_crawls'], 'first crawl goes', 'first crawls go')} before it"
    if facts["waiting"]:
        waiting = show_count(facts["waiting"], "page waits for its first crawl", "pages wait for their first crawl")
        reason += f"; {waiting}, for which half of the orders are kept"
    if trouble:
        reason += f"; {trouble}"
    if facts.get("put_off", 0.0) > when:
        return f"It is put off until {moment(facts['put_off'])}: {reason}."
    return _by_value(facts, when, reason)


def _for_first_turn(facts: dict[str, Any], when: float) -> str:
    """What a page without a copy waits for."""
    waits = [*([queue_of(facts)] if facts["ahead"] else []), *rest_of(facts, when)]
    others = ""
    if facts["held_by"] == "first turn":
        many = show_count(facts["waiting"], "page does", "pages do")
        others = f" as {many}, for which half of the orders are kept"
    never = "There is no copy of it yet" if facts["crawls"] else "It was never crawled"
    return f"{never}; it waits for its first turn{others}{': ' if waits else ''}{'; '.join(waits)}."


def _by_costs(facts: dict[str, Any], when: float) -> str:
    """When a page is due whose rate was learned from costs."""
    learned, passed = facts["learned_rate"], facts["value"]
    every = show_duration(1.0 / learned["rate"]) if learned["rate"] else "no time"
    says = (
        f"Its costs have taught a refresh every {every}"
        if is_learned(learned)
        else f"All pages get a refresh every {every}"
    )
    if not is_learned(learned):
        says += ", as nothing was learned from its costs yet"
    if facts["host_allows_every"]:
        says += "; its host takes less than its pages are to get, which makes that one every "
        says += show_duration(facts["host_allows_every"])
    if facts["by"] == "store":
        return f"{says}."
    if waits_for_host(facts, when):
        return f"{says}; {queue_of(facts)}."
    if facts["due"] <= when:
        return f"{says}; it is due, and what has been due longest goes first."
    if passed >= 1.0:
        return f"{says}; it is due once its host has rested."
    return f"{says}; {100 * max(passed, 0.0):.0f} % of that time has passed since the last one."


def is_learned(learned: dict[str, Any]) -> bool:
    """Whether a page had a part in an update: before, its rate is the common one."""
    return learned["slope"] is not None and not math.isnan(learned["slope"])


def told_of_costs(learned: dict[str, Any]) -> list[tuple[str, str]]:
    """Rate, slope and last costs of a page whose rate is learned from costs, as lines with a name each.

    >>> told_of_costs({"rate": 0.5, "slope": -2.0, "cost": 0.25, "probe": 0.1})[1][1]
    '0.25 at the last refresh; 0.1 at the last probe; a refresh more in an hour would save 0.000556 of its mean cost'
    >>> told_of_costs({"rate": 0.5, "slope": 0.0, "cost": 0.0, "probe": 0.0})[1][1]
    '0 at the last refresh; 0 at the last probe; nothing to gain so far from another refresh'
    """
    known = {name: value for name, value in learned.items() if value is not None and not math.isnan(value)}
    last = f"{known['cost']:.3g} at the last refresh" if "cost" in known else "not known yet"
    probe = f"{known['probe']:.3g} at the last probe" if "probe" in known else "not probed yet"
    gain = "what another refresh would save is not known yet"
    if "slope" in known and "probe" in known:  # without a probe nothing is known of it
        gain = "nothing to gain so far from another refresh"
        if known["slope"] < 0.0:
            gain = f"a refresh more in an hour would save {-known['slope'] / 3600:.3g} of its mean cost"
    by = "learned from costs" if is_learned(learned) else "like all pages: nothing was learned from its costs yet"
    return [("rate", f"{show_rate(learned['rate'])}, {by}"), ("costs", f"{last}; {probe}; {gain}")]


def _reason(facts: dict[str, Any], when: float) -> str:
    """What is believed of a page and its copy."""
    believed = facts["beliefs"]
    checks = show_count(believed["observations"], "check tells", "checks tell")
    changes, wanted = show_rate(believed["change_rate"]), show_rate(believed["request_rate"])
    factor = f"to within a factor of {math.exp(believed['shape'] ** -0.5):.2g}"
    within = f"as {checks} {factor}" if believed["observations"] else f"as other pages do, {factor}"
    wanted = f"to be wanted {wanted}" if facts["requests_known"] else "to be wanted as all pages are"
    parts = [f"it is believed to change {changes}, {within}, and {wanted}"]
    if facts["copy"]:
        age = max(when - facts["copy"]["checked"], 0.0)
        parts.append(f"the copy is {show_duration(age)} old with {show_count(facts['signals'], 'signal')}")
        fresh = f"so it is fresh with probability {facts['copy']['fresh_probability']:.2f}"
        parts.append("it is known to be outdated" if facts["copy"]["outdated"] else fresh)
    else:
        parts.append("there is no copy yet")
    return "; ".join(parts)


def _by_value(facts: dict[str, Any], when: float, reason: str) -> str:
    """What a crawl gains, against the price."""
    if facts["held_by"] == "path budget":
        return f"The budget of its path ([[site]]) is spent until {moment(facts['due'])}: {reason}."
    wishes, gains, price = facts["wishes"], f"A crawl now gains {facts['value']:.3g}", facts["price"]
    if facts["host_price"]:
        price = facts["host_price"]
    if wishes["longest"] and facts["host_allows_every"]:
        wanted, allowed = show_duration(wishes["longest"]), show_duration(facts["host_allows_every"])
        return f"It is wanted at least every {wanted}, but its host allows about one crawl in {allowed}: {reason}."
    if wishes["shortest"] and facts["due"] > when and facts["value"] >= price:
        return f"It is not crawled again within {show_duration(wishes['shortest'])}. {gains}: {reason}."
    if wishes["longest"] and facts["value"] < price:
        return f"It is crawled at least every {show_duration(wishes['longest'])}. {gains}: {reason}."
    rests = "".join(f". Now {each}" for each in rest_of(facts, when))
    if facts["budget_spare"] and not facts["host_price"]:
        turn = f"; {queue_of(facts)}" if facts["ahead"] else ""
        return f"{gains}. Hosts take less than the budget, so it need not gain the price{turn}: {reason}{rests}."
    if facts["value"] >= price and waits_for_host(facts, when):
        return f"{gains}, at least the price {price:.3g}, but {queue_of(facts)}: {reason}{rests}."
    if facts["value"] >= price:
        return f"{gains}, at least the price {price:.3g}: {reason}{rests}."
    if waits_for_host(facts, when):
        return f"{gains}, below the price {price:.3g}, and {queue_of(facts)}: {reason}."
    if math.isinf(facts["due"]):
        from afresh.value import crawl_value

        names = ("change_rate", "recall", "false_rate", "shape", "request_rate")
        most = crawl_value(OLDEST, **{name: facts["beliefs"][name] for name in names})
        return f"{gains} and never more than {most:.4g}, below the price {price:.4g}: {reason}."
    after = show_duration(max(facts["due"] - when, 0.0))
    if facts["host_turn"]:
        return f"{gains}, below the price {price:.3g}; pages that gain more go first, for about {after}: {reason}."
    return f"{gains}, below the price {price:.3g}, which it reaches in {after}: {reason}."


def waits_for_host(facts: dict[str, Any], when: float) -> bool:
    """Whether the queue of its host, more than the budget, is what a page waits for.

    >>> waits_for_host({"ahead": 12, "host_turn": 1.2, "due": 115.0}, 100.0)
    True
    >>> waits_for_host({"ahead": 2, "host_turn": 1.2, "due": 115.0}, 100.0)
    False
    """
    if not facts["ahead"] or facts["due"] <= when:
        return False
    return math.isinf(facts["due"]) or bool(2 * facts["ahead"] * facts["host_turn"] >= facts["due"] - when)


def queue_of(facts: dict[str, Any]) -> str:
    """What a page waits for at its host, as a part of a sentence.

    >>> queue_of({"ahead": 12, "host_turn": 1.2, "due": 100.0})
    'its host is asked at most once in 1.2 s, and 12 crawls of its pages go before it'
    """
    if math.isinf(facts["due"]):
        return (
            f"its host is asked at most once in {show_duration(facts['host_turn'])}, and other pages of it gain more, "
            "again and again"
        )
    go = show_count(facts["ahead"], "crawl of its pages goes", "crawls of its pages go")
    return f"its host is asked at most once in {show_duration(facts['host_turn'])}, and {go} before it"


def rest_of(facts: dict[str, Any], when: float) -> list[str]:
    """What keeps the runner from a page's host just now, as parts of a sentence.

    >>> rest_of({"host_ready": None, "host_lent": 12.2}, 100.0)
    ['every second turn of its host goes to what readers may want next (12 in the last minute)']
    """
    parts = []
    if facts["host_ready"] and facts["host_ready"] > when:
        rest = facts.get("host_rest") or {"seconds": 0.0}
        known = rest["seconds"] >= 0.001  # else the usual rest is not what keeps it
        why = f", for {show_duration(rest['seconds'])} after each answer ({rest['because']})" if known else ""
        parts.append(f"its host rests until {moment(facts['host_ready'])}{why}")
    if facts.get("host_lent", 0.0) >= 1.0:
        turns = f"{facts['host_lent']:.0f} in the last minute"
        parts.append(f"every second turn of its host goes to what readers may want next ({turns})")
    return parts


def _gone(facts: dict[str, Any], when: float) -> str:
    times = "once" if facts["failures"] == 1 else f"{facts['failures']:,} times in a row"
    later = f", and is asked again {moment(facts['put_off'])}" if facts.get("put_off", 0.0) > when else ""
    if facts["gone"].get("reason"):
        return f"It is gone ({words(facts['gone'].get('reason'))}): found so {times}{later}."
    return f"Its server says that it is gone: {times}{later}."


def trouble_of(facts: dict[str, Any]) -> str:
    """What is wrong with a page or its host, as a part of a sentence; "" if nothing is."""
    failures, failing, host = facts["failures"], facts["failing"], facts["host"]
    parts = []
    if facts["gone"]:
        what = words(facts["gone"].get("reason")) if facts["gone"].get("reason") else facts["gone"]["status"]
        parts.append(f"gone ({what} since {moment(facts['gone']['since'])})")
    if failing and failing["outcome"] != Outcome.GONE:
        many = "last attempt" if failures == 1 else f"last {failures:,} attempts"
        said = f": {plain(failing['said'], 300)}" if failing.get("said") else ""
        parts.append(f"its {many} failed ({words(failing['reason'])}{said})")
    if host and host["in_trouble"]:
        times = f" ({host['failures']:,} in a row)" if host["failures"] > 1 else ""
        parts.append(f"its host fails: {words(host['reason'])} since {moment(host['since'])}{times}")
    return "; ".join(parts)


def waits_for(facts: dict[str, Any]) -> str:
    """What a page that an operator wants to be refreshed still waits for."""
    if facts["held_by"] == "paused":
        return "waits for its hours" if facts["wishes"]["held_by"] == ["hours"] else "waits for `afresh resume`"
    if facts["by"] == "store":
        return "goes first as soon as a runner sees it"
    if facts["held_by"] == "leased":
        return "it is being fetched"
    if facts["host_ready"]:
        return f"waits until its host has rested, {moment(facts['host_ready'])}"
    if facts["host_lent"] >= 1.0 and facts["held_by"] in ("host busy", "host resting"):
        return "waits while its host is asked for what a reader may want next"
    return {
        "host busy": "waits until its host has answered",
        "host resting": "waits until its host has rested",
        "host budget": "waits for its host's budget",
    }.get(facts["held_by"], "goes next, when the budget has a turn")
