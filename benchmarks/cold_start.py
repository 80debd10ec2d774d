"""What kinds are worth for pages that are new: their first five visits foretold with and without, hosts held out.

    python benchmarks/cold_start.py DATA [SET ...]

DATA is a folder with recorded histories whose items say something of each page's kind: `histories/teletext` (kinds are
bins of the features of a page's first text), `histories/ota_contrib` (the type of a document; or what the shipped model
says of its first text), `mdn_content` (the section of a path; every fourth page). The hosts of a third of all pages are
new in the middle of the time: their pages are visited five times, like all others. Printed are the log likelihood and
the Brier score of what was foretold of these visits: without kinds, with them, and with kinds that were shuffled; then
without kinds, with the dates of last changes: true ones, dates of now on half of the hosts, and stuck ones there.
"""

import gzip
import json
import lzma
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from afresh.estimate import Learner, kin_of
from afresh.estimate.dates import LEAST_TRUST, DateTrust
from afresh.estimate.kinds import pack

DAY = 86400.0
VISITS = 5


@dataclass
class Collection:
    """Pages, their changes in order, and what is known of them at their first crawl."""

    hosts: list[str]
    urls: list[str]
    kinds: list[int]  # packed
    changes: list[np.ndarray]
    start: float
    end: float
    every: float


def lines(path: Path) -> list[str]:
    """All lines of a packed file."""
    opened = lzma.open if path.suffix == ".xz" else gzip.open
    return opened(path).read().decode().split("\n")


def by_page(ts: np.ndarray, page: np.ndarray, keep: np.ndarray, count: int) -> list[np.ndarray]:
    """The times of each page's changes."""
    order = np.lexsort((ts[keep], page[keep]))
    pages, times = page[keep][order], ts[keep][order].astype(np.float64)
    cuts = np.searchsorted(pages, np.arange(count + 1))
    return [times[cuts[n] : cuts[n + 1]] for n in range(count)]


def whole(kind: int) -> int:
    """A page that is of one kind only."""
    return pack([0.0] * (kind - 1) + [1.0])


def teletext(data: Path) -> Collection:
    """Kinds are bins of the share of digits and of the length of the first text; hosts are broadcasters."""
    with np.load(data / "histories/teletext.npz") as file:
        ts, page, kind, text, features = (file[n] for n in ("ts", "page", "kind", "text_changed", "first_features"))
        snapshots = file["snapshots"].astype(float)
    names = lines(data / "histories/teletext.items.txt.gz")[: len(features)]
    changes = by_page(ts, page, (kind == 1) & (text == 1), len(names))
    digits = np.searchsorted(np.quantile(features[:, 1], [0.2, 0.4, 0.6, 0.8]), features[:, 1])
    length = np.searchsorted(np.quantile(features[:, 0], [0.33, 0.66]), features[:, 0])
    kinds = [whole(int(d * 3 + n) + 1) for d, n in zip(digits, length, strict=True)]
    hosts = [name.partition("/")[0] for name in names]
    urls = [f"http://{name}" for name in names]
    return Collection(hosts, urls, kinds, changes, snapshots.min(), snapshots.max(), 0.25 * DAY)


def _ota(data: Path) -> tuple[list[dict], list[np.ndarray], float, float]:
    items = [json.loads(line) for line in lines(data / "histories/ota_contrib.items.jsonl.xz") if line]
    with np.load(data / "histories/ota_contrib.npz") as file:
        ts, page, kind, technical = (file[n] for n in ("ts", "page", "kind", "technical"))
    changes = by_page(ts, page, (kind == 1) & (technical == 0), len(items))
    return items, changes, float(np.quantile(ts, 0.02)), float(ts.max())


def ota(data: Path) -> Collection:
    """Kinds are types of documents; hosts are services."""
    items, changes, start, end = _ota(data)
    types = [each["type"] for each in items]
    common = sorted(set(types), key=lambda name: -types.count(name))[:14]
    kinds = [whole(common.index(name) + 1 if name in common else 15) for name in types]
    hosts = [each["service"] for each in items]
    urls = [f"http://{each['service']}/{each['type']}".replace(" ", "_") for each in items]
    return Collection(hosts, urls, kinds, changes, start, end, 14 * DAY)


def ota_model(data: Path) -> Collection:
    """Kinds are what the shipped model says of the first text."""
    from html import escape

    from afresh.kinds.criteria import WANTED, criteria
    from afresh.kinds.model import shipped
    from afresh.reading import read

    found = ota(data)
    items = _ota(data)[0]
    for n, each in enumerate(items):
        body = f"<title>{escape(each['type'])}</title><p>{escape(each['first_text'])}".encode()
        found.kinds[n] = pack(shipped().probabilities(criteria(read(body, "text/html", wanted=WANTED), "")).tolist())
    return found


def mdn(data: Path) -> Collection:
    """Kinds are sections of the site; hosts are folders below them."""
    with np.load(data / "mdn_content.npz") as file:
        ts, page, kind = (file[n] for n in ("ts", "page", "kind"))
    names = lines(data / "mdn_content.pages.txt.gz")[: int(page.max()) + 1]
    changes = by_page(ts, page, kind == 1, len(names))
    parts = [name.partition("\t")[2].lower().removeprefix("files/").split("/") for name in names]
    sections = ["/".join(each[1:3]) for each in parts]
    common = sorted(set(sections), key=lambda name: -sections.count(name))[:14]
    kinds = [whole(common.index(name) + 1 if name in common else 15) for name in sections]
    kept = [n for n, each in enumerate(parts) if len(each) > 3 and n % 4 == 0]
    changes, kinds, parts = [changes[n] for n in kept], [kinds[n] for n in kept], [parts[n] for n in kept]
    hosts = ["/".join(each[:4]) for each in parts]
    return Collection(
        hosts, [f"http://{h}/x" for h in hosts], kinds, changes, float(ts.min()) + 90 * DAY, float(ts.max()), 30 * DAY
    )


SETS: dict[str, Callable[[Path], Collection]] = {"teletext": teletext, "ota": ota, "ota-model": ota_model, "mdn": mdn}


def foretell(
    all_pages: Collection, kinds: list[int] | None, seed: int, lies: str | None = None
) -> tuple[np.ndarray, Learner]:
    """What was foretold of each of the first visits to pages of new hosts, and whether it had changed.

    `lies`: what dates say on half of the hosts, "" if they are true everywhere, None if there are none at all.
    """
    rng = np.random.default_rng(seed)
    names = sorted(set(all_pages.hosts))
    order = rng.permutation(len(names))
    new = {names[n] for n in order[: max(1, round(len(names) / 3))]}
    liars = {names[n] for n in order[::2]} if lies else set()
    middle = (all_pages.start + all_pages.end) / 2
    visits = []
    for n, host in enumerate(all_pages.hosts):
        begin = (middle if host in new else all_pages.start) + rng.random() * all_pages.every
        last = begin + VISITS * all_pages.every if host in new else all_pages.end
        times = np.arange(begin, min(last + 1, all_pages.end), all_pages.every)
        visits += [(float(at), n, k) for k, at in enumerate(times)]
    visits.sort()
    learner, trust, shown = Learner(typical_rate=1 / all_pages.every), DateTrust(), {}
    found = []
    for at, n, k in visits:
        host, changes = all_pages.hosts[n], all_pages.changes[n]
        last = changes[np.searchsorted(changes, at) - 1] if len(changes) and changes[0] < at else None
        if host in liars:
            last = at - 5.0 if lies == "now" else all_pages.start - 900 * all_pages.every
        if k == 0:
            learner.add(n, now=at, kin=kin_of(all_pages.urls[n], host))
            shown[n] = last
            if kinds is not None:
                learner.told_kind(n, kinds[n])
            if lies is not None and last is not None and (w := trust.of(host)) > LEAST_TRUST:
                learner.told_age(n, at - last, w)
            continue
        changed = bool(np.searchsorted(changes, at) > np.searchsorted(changes, at - all_pages.every))
        if host in new:
            found.append((learner.fresh_probability(n, all_pages.every, 0.0), not changed, k))
        learner.crawled(n, elapsed=all_pages.every, signals=0.0, changed=changed)
        if lies is not None and last is not None and shown[n] is not None:
            moved, within = last != shown[n], at - all_pages.every <= last
            trust.grade(host, changed=changed, moved=moved and (within or not changed))
            if changed and moved and within and (w := trust.of(host)) > LEAST_TRUST:
                learner.told_last_change(n, at - last, all_pages.every, w)
        shown[n] = last
        learner.glance()
    return np.array(found), learner


def scored(found: np.ndarray) -> str:
    """Log likelihood of the first visit and of all five, and the Brier score."""
    said, held = np.clip(found[:, 0], 1e-9, 1 - 1e-9), found[:, 1]
    likely = np.where(held > 0, np.log(said), np.log1p(-said))
    first = found[:, 2] == 1
    return f"{likely[first].mean():9.4f}{likely.mean():9.4f}{((said - held) ** 2).mean():9.4f}"


def main() -> None:
    """Print a table."""
    data, names = Path(sys.argv[1]), sys.argv[2:] or list(SETS)
    print(f"{'set':11}{'kinds':11}{'first':>9}{'five':>9}{'Brier':>9}   powers; nats a crawl at each level")
    for name in names:
        pages = SETS[name](data)
        shuffled = np.random.default_rng(0).permutation(pages.kinds).tolist()
        for label, kinds, lies in (
            ("without", None, None),
            ("with", pages.kinds, None),
            ("shuffled", shuffled, None),
            ("dates", None, ""),
            ("half now", None, "now"),
            ("half stuck", None, "stuck"),
        ):
            scores, learner = [], Learner()
            for seed in range(2):
                found, learner = foretell(pages, kinds, seed, lies)
                scores.append(found)
            worth = learner.of_kinds().worth
            told = " ".join(f"{each.power:.2f}" for each in worth) + "; " + " ".join(f"{w.gained:.4f}" for w in worth)
            print(f"{name:11}{label:11}{scored(np.concatenate(scores))}   {told if kinds else ''}", flush=True)


if __name__ == "__main__":
    main()
