"""How much work a run would be, before it starts."""

from afresh.errors import ConfigError

MAX_VISITS = 1e9  # of one policy over one history: about a quarter of an hour for our own
MAX_EVENTS = 50_000_000  # changes or signals of a history: each takes 16 bytes and more


def check_visits(visits: float, hint: str = "Give a larger --every, or a smaller --budget.") -> None:
    """ConfigError if a policy would have to make more visits than anybody waits for."""
    if not visits <= MAX_VISITS:
        raise ConfigError(
            f"That would be {_rough(visits)} visits for each policy, more than {_rough(MAX_VISITS)}.", hint
        )


def check_events(events: float, what: str, hint: str) -> None:
    """ConfigError if there would be more changes or signals than there is room for."""
    if not events <= MAX_EVENTS:
        raise ConfigError(f"That would be {_rough(events)} {what}, more than {_rough(MAX_EVENTS)}.", hint)


def _rough(count: float) -> str:
    return f"{count:,.0f}" if count < 1e15 else f"{count:.3g}"
