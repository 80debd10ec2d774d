"""How well the next page is foretold: train on the first sessions of a log, test on the rest, each model by itself."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.errors import ConfigError, InputError
from afresh.estimate.paths.counts import link
from afresh.estimate.paths.layout import MAX_LINKS, MODELS, PAGES, room_in, tables_for
from afresh.estimate.paths.trials import foretell_sessions, learn_sessions
from afresh.lab.pictures import pyplot as _pyplot
from afresh.lab.plots import COLOURS, save
from afresh.lab.sessions import Sessions
from afresh.value.curves import Curve, Sliced, enveloped
from afresh.value.downloads import KB, Downloads, Piece
from afresh.value.idle import Idle, best

SHOWN = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50)  # pages prefetched, of the curve
MIXTURE = "mixture"

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Row:
    """How often the next page was among so many that a model foretold."""

    model: str
    prefetched: int
    hit: float
    sessions: int  # of the test
    transitions: int
    saved_ms_per_kb: float  # of readers' waiting, for every kilobyte prefetched


@dataclass(frozen=True, slots=True)
class Costs:
    """What a page costs that is not there: time until its first byte, bytes a second, bytes where the log has none."""

    latency: float = 0.2
    rate: float = 1e6
    size: float = 30e3


def measure(
    sessions: Sessions,
    *,
    train: float = 0.9,
    memory: int = 256 << 20,
    costs: Costs | None = None,
    progress: Progress = lambda done, total: None,
) -> list[Row]:
    """The curve of every model: learned from the first sessions, and nothing more from the others."""
    costs = costs or Costs()
    cut = int(len(sessions) * train)
    learned, tested = sessions.part(0, cut), sessions.part(cut, len(sessions))
    if not learned.moves or not tested.moves:
        raise InputError("There are too few sessions to train on some and test on others.", hint="Give a longer log.")
    room = room_in(memory)
    if sessions.count > room.pages:
        raise ConfigError(
            f"{sessions.count:,} pages do not fit into this memory, {room.pages:,} do.", hint="Give a larger --memory."
        )
    tables = tables_for(room)
    tables.pages["site"][: sessions.count] = 0
    tables.sites[0, PAGES] = sessions.count
    for page, targets in sessions.links.items():
        link(tables, page, np.array(targets[:MAX_LINKS], np.int32))
    names = [name for name in MODELS if name != "links" or sessions.links]
    progress(0, len(names) + 2)
    learn_sessions(tables, learned.pages, learned.offsets, learned.dwells)
    sizes = np.full(room.pages, costs.size)
    if sessions.sizes is not None:
        sizes[: sessions.count] = sessions.sizes
    waits, rows = costs.latency + sizes / costs.rate, list[Row]()
    for at, name in enumerate([*names, MIXTURE]):
        progress(at + 1, len(names) + 2)
        sums = np.zeros((3, max(SHOWN)))
        model = -1 if name == MIXTURE else MODELS.index(name)
        moves = foretell_sessions(tables, tested.pages, tested.offsets, model, waits, sizes, sums)
        if name == "uniform":  # any page will do: what that comes to on average
            share = sessions.count - np.minimum(np.arange(max(SHOWN)), sessions.count) > 0
            at_random = np.array([1.0, float(waits[_visited(tested)].mean()), sizes[: sessions.count].sum()])
            sums = np.outer(at_random * moves / sessions.count, share)
        hits, saved, spent = np.cumsum(sums, axis=1)
        for count in SHOWN:
            per_kb = 1000.0 * saved[count - 1] / max(spent[count - 1] / KB, 1e-9)
            rows.append(Row(name, count, float(hits[count - 1] / moves), len(tested), moves, float(per_kb)))
    progress(len(names) + 2, len(names) + 2)
    return rows


def _visited(sessions: Sessions) -> NDArray[np.int64]:
    """The pages that somebody moved to."""
    to = np.ones(len(sessions.pages), bool)
    to[sessions.offsets[:-1][np.diff(sessions.offsets) > 0]] = False
    return sessions.pages[to]


@dataclass(frozen=True, slots=True)
class Orders:
    """What an order of downloads gains in idle times of a log, as a share of the best possible."""

    slices: float  # the greatest flux of the next slice
    envelope: float  # of the best beginning of what is left
    worst_slices: float
    drawn: int  # sets of documents


def compare_orders(sessions: Sessions, *, seed: int = 0, drawn: int = 40) -> Orders | None:
    """Greedy slices, and the envelope, beside the optimum for the idle times of a log; None if it has no times.

    Three documents at a time, each of up to six slices of a tenth of the median idle time, half of them worth nothing
    before their greater part is there.
    """
    lasted = sessions.dwells[sessions.dwells > 0]
    if len(lasted) < 10:
        return None
    idle, rng = Idle(lasted), np.random.default_rng(seed)
    slice_bytes = float(np.median(lasted)) / 10  # at a byte a second
    gained = np.array([_gains(idle, slice_bytes, rng) for _ in range(drawn)])
    shares = gained[:, :2] / gained[:, 2:]
    slices, envelope = shares.mean(axis=0).tolist()
    return Orders(slices, envelope, float(shares[:, 0].min()), drawn)


def _gains(idle: Idle, slice_bytes: float, rng: np.random.Generator) -> tuple[float, float, float]:
    documents: dict[str, tuple[float, Curve]] = {}
    for name, probability in zip("abc", rng.dirichlet(np.ones(4))[:3].tolist(), strict=True):
        size = float(rng.integers(2, 7)) * slice_bytes
        power = float(rng.choice([0.5, 4.0]))
        documents[name] = probability, Sliced(size, _powered(size, power), slice_bytes)
    hulls: dict[str, tuple[float, Curve]] = {
        name: (probability, enveloped(curve, slice_bytes)) for name, (probability, curve) in documents.items()
    }
    return (
        idle.worth(_order(documents), 1.0),
        idle.worth(_within(_order(hulls), documents, slice_bytes), 1.0),
        best(documents, idle, rate=1.0, slice_bytes=slice_bytes)[0],
    )


def _powered(size: float, power: float) -> Callable[[float], float]:
    return lambda done: float((done / size) ** power)


def _order(documents: dict[str, tuple[float, Curve]]) -> list[Piece]:
    downloads = Downloads()
    for name, (probability, curve) in documents.items():
        downloads.add(name, probability, curve)
    return list(downloads)


def _within(pieces: Sequence[Piece], documents: dict[str, tuple[float, Curve]], slice_bytes: float) -> list[Piece]:
    """The same bytes in the same order, in slices that gain what they really do."""
    slices = []
    for piece in pieces:
        probability, curve = documents[piece.name]
        for number in range(round(piece.size / slice_bytes)):
            start = piece.start + number * slice_bytes
            end = start + slice_bytes
            slices.append(Piece(piece.name, start, end, probability * (curve.value(end) - curve.value(start))))
    return slices


def rows_as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For a file."""
    return [asdict(row) for row in rows]


def draw_curves(rows: Sequence[Row], title: str, path: Path) -> None:
    """The picture: the probability that the next page is there, against how many were prefetched."""
    figure, axes = _pyplot().subplots(figsize=(7, 4.2))
    for at, name in enumerate(dict.fromkeys(row.model for row in rows)):
        curve = [row for row in rows if row.model == name]
        width = 2.4 if name == MIXTURE else 1.2
        counts, hits = [row.prefetched for row in curve], [row.hit for row in curve]
        axes.plot(counts, hits, label=name, marker="o", markersize=3, linewidth=width, color=COLOURS[at % len(COLOURS)])
    axes.set_xlabel("pages prefetched")
    axes.set_ylabel("probability that the next page is there")
    axes.set_ylim(0, 1)
    axes.legend(fontsize=8)
    axes.set_title(title, fontsize=10)
    save(figure, path)
