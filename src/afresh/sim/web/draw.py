"""How a synthetic web is drawn from its options: hosts, sizes, change rates, popularity, deletions."""

import numpy as np
from numpy.typing import NDArray

from afresh.sim.web import dice
from afresh.sim.web.dice import Stream
from afresh.sim.web.options import KINDS, Kind, SiteOptions


def _layout(options: SiteOptions) -> int:
    return dice.key(options.seed, Stream.LAYOUT)


def host_kinds(options: SiteOptions) -> list[Kind]:
    """A kind for each host, in the set shares as nearly as whole hosts allow."""
    names = [name for name, share in options.kinds if share > 0]
    shares = np.array([share for _, share in options.kinds if share > 0], dtype=np.float64)
    ends = np.floor(np.cumsum(shares / shares.sum()) * options.hosts + 0.5).astype(int)
    order = np.argsort(dice.uniform_many(_layout(options), np.arange(options.hosts), 0), kind="stable")
    kinds = [KINDS[names[-1]]] * options.hosts
    for rank, host in enumerate(order.tolist()):
        kinds[host] = KINDS[names[min(int(np.searchsorted(ends, rank, side="right")), len(names) - 1)]]
    return kinds


def host_names(kinds: list[Kind]) -> list[str]:
    """Names such as news-03.localhost, numbered within each kind."""
    seen: dict[str, int] = {}
    names = []
    for kind in kinds:
        seen[kind.name] = number = seen.get(kind.name, 0) + 1
        names.append(f"{kind.name}-{number:02d}.localhost")
    return names


def first_pages(options: SiteOptions) -> NDArray[np.int64]:
    """The first page of each host: a few large hosts, many small ones, none empty."""
    hosts, spare = options.hosts, options.pages - options.hosts
    weights = np.exp(dice.normal_many(_layout(options), np.arange(hosts), 1))
    ends = np.floor(np.cumsum(weights) / weights.sum() * spare + 1e-9).astype(np.int64)
    return np.concatenate([[0], ends[:-1]]) + np.arange(hosts)


def change_rates(options: SiteOptions, kinds: list[Kind], host_of: NDArray[np.int32]) -> NDArray[np.float64]:
    """Changes per second of each page: log-normal round what is typical of its kind."""
    typical = np.array([1.0 / kind.change_interval for kind in kinds])[host_of]
    spread = np.exp(options.rate_spread * dice.normal_many(_layout(options), np.arange(options.pages), 2))
    return np.asarray(typical * spread * options.change_factor / options.day)


def request_rates(options: SiteOptions, change_rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Requests per second of each page: Zipf over ranks that lean to quickly changing pages as far as they should."""
    pages = np.arange(options.pages)
    rank = np.empty(options.pages)
    rank[np.argsort(change_rate, kind="stable")] = (pages + 0.5) / options.pages
    # Rank of the change rate, scaled to variance 1, mixed with pure luck of the same variance.
    score = np.sqrt(3.0) * (2.0 * rank - 1.0)
    lean = options.popularity_correlation
    luck = dice.normal_many(_layout(options), pages, 3)
    order = np.argsort(-(lean * score + np.sqrt(1.0 - lean * lean) * luck), kind="stable")
    rates = np.empty(options.pages)
    rates[order] = (pages + 1.0) ** -options.zipf
    return np.asarray(rates / rates.sum() * options.requests)


def deletions(options: SiteOptions, first_page: NDArray[np.int64]) -> NDArray[np.float64]:
    """When each page is deleted; infinity for never, and for front pages."""
    pages, stream = np.arange(options.pages), dice.key(options.seed, Stream.GONE)
    moments = dice.uniform_many(stream, pages, 1) * options.gone_within * options.day
    gone = dice.uniform_many(stream, pages, 0) < options.gone_share
    gone[first_page] = False
    return np.where(gone, moments, np.inf)
