"""Pages that have no copy: how many can be crawled, and what keeps the others from it."""

from collections import Counter
from collections.abc import Container

from afresh.cli.wording import HELD
from afresh.frontier import in_trouble, is_unreachable
from afresh.store import Store
from afresh.store.base import Failing
from afresh.store.messages import Pauses
from afresh.types import HostState, Outcome


def held_without_copy(kept: Store, never: Container[str], pauses: Pauses, when: float) -> dict[str, int]:
    """How many pages without a copy are not crawled soon, by what holds them back."""
    held, by_host = Counter[str](), Counter[str]()
    hosts = {state.host: state for state in kept.hosts()}
    unasked = {host for host, _, _ in kept.pages_by_host() if host in never}
    for each in kept.failing():
        kind = "" if each.host in unasked else _kind(each)
        if kind and each.without_copy:
            held[kind] += each.without_copy
            by_host[each.host] += each.without_copy
    for host, pages, copies in kept.pages_by_host():
        others = pages - copies - by_host[host]
        if host in unasked:
            held["never"] += others
        elif pauses.everything or host in pauses.hosts:
            held["paused"] += others
        elif _rests(hosts.get(host), when):
            held["resting"] += others
    return {kind: held[kind] for kind in HELD if held[kind] > 0}


def _kind(failing: Failing) -> str:
    """What holds pages back by themselves; "" if they are tried again as soon as their host is."""
    match failing.outcome:
        case Outcome.GONE | Outcome.MOVED:
            return str(failing.outcome)
        case Outcome.REFUSED:
            return "forbidden" if failing.reason == "robots" else "refused"
        case Outcome.FAILED if not is_unreachable(failing.reason):
            return "failing"
    return ""


def _rests(state: HostState | None, when: float) -> bool:
    return state is not None and (in_trouble(state) or (state.failures > 0 and state.ready > when))
