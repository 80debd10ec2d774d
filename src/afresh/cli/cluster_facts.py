"""How a cluster is, as a whole and by worker: for `afresh cluster status`, and for all that shows a collection."""

import time
from typing import Any

from afresh.cluster.register import Member, Register
from afresh.errors import StoreError
from afresh.store import LastingStore, Store
from afresh.store.figures import NAME, Figures, figures_in, figures_kept, together
from afresh.store.postgres import Postgres


def cluster_facts(register: Register) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Of all workers together, and of each."""
    running, parts, budget, settings = register.wanted()
    facts = [_facts(member) for member in register.members() if member.part < parts or member.alive]
    pages, copies = register.counts()
    weights = [(each["weight"], each["fresh"]) for each in facts if each["fresh"] is not None]
    weight = sum(own for own, _ in weights)
    whole = {
        "running": running,
        "workers": parts,
        "budget": budget,
        "granted": sum(each["budget"] for each in facts if each["alive"]),
        "rate": sum(each["rate"] for each in facts),
        "pages": pages,
        "copies": copies,
        "slices_moving": register.in_transit() if parts else 0,
        "drained": list(settings.get("drained", ())),
        "fresh": sum(own * share for own, share in weights) / weight if weight else None,
        "by_requests": any(each["by_requests"] for each in facts),
    }
    return whole, facts


def _facts(member: Member) -> dict[str, Any]:
    """Of one worker."""
    said = member.said if member.alive else {}
    return {
        "part": member.part,
        "node": str(said.get("node", "")),
        "holder": member.holder,
        "alive": member.alive,
        "pages": member.pages,
        "copies": member.copies,
        "slices": member.slices,
        "price": member.price if member.alive and member.price >= 0 else None,
        "budget": member.budget if member.alive else 0.0,
        "spending": member.spending if member.alive else 0.0,
        "rate": float(said.get("rate") or 0.0),
        "fresh": said.get("fresh"),
        "weight": float(said.get("weight") or 0.0),
        "by_requests": bool(said.get("by_requests")),
        "lag": member.lag if member.alive else None,
    }


def as_its_owner(kept: Store, url: str) -> Store:
    """The store as the worker sees it that owns a page: with the price there, and what that worker has learned."""
    return kept.as_its_owner(url) if isinstance(kept, Postgres) else kept


def figures_of_all(kept: LastingStore, since: float) -> list[Figures]:
    """How it was, minute by minute: what one process left, or the workers of a cluster together."""
    if not isinstance(kept, Postgres):
        return figures_kept(kept, since)
    parts = sorted(
        kept.values_of_parts(NAME).items()
    )  # the whole store's first: workers may have gone on with its rows
    return together([figures_in(values, since) for _, values in parts])


def said_by_cluster(kept: object) -> dict[str, Any] | None:
    """What a runner would say of itself, of the workers together; None if none of them lives."""
    if not isinstance(kept, Postgres):
        return None
    register = Register(kept.address)
    try:
        whole, facts = cluster_facts(register)
    except StoreError:
        return None
    finally:
        register.close()
    alive = [each for each in facts if each["alive"]]
    if not alive:
        return None
    # Budget flows until prices agree. Until then the highest says what the next crawl must gain somewhere.
    prices = [each["price"] for each in alive if each["price"] is not None]
    said: dict[str, Any] = {"budget": whole["budget"], "price": max(prices, default=None), "workers": len(alive)}
    if whole["fresh"] is not None:
        said["freshness"] = {"share": whole["fresh"], "by_requests": whole["by_requests"], "time": time.time()}
    return said
