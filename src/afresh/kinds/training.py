"""How the network and the Bayes classifier get their weights from pages whose kind is known.

The penalty on the first layer's weights keeps them a mix of the training pages' inputs, so training works with what
pages have in common (a thousand numbers a page) instead of with the inputs (tens of thousands). The network is
trained for two things at once: the kinds, and what pages say of themselves, for those that do.

The classifier needs to know how far the network can be believed on pages that it has not seen. So the pages are
split by owner, and the network that speaks of a part is trained on the other parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from afresh.kinds.bayes import KINDS, STATED, Bayes, tables
from afresh.kinds.criteria import FIGURES, Criteria
from afresh.kinds.minimise import least
from afresh.kinds.network import PLACES, Network, inputs, places, scaled, softmax

# Chosen by cross-validation, see docs/kinds.md.
HIDDEN = 12
FIRST_PENALTY, SECOND_PENALTY = 5e-4, 1e-3
STEPS = 250
STATED_SHARE = 0.2  # of what pages say of themselves, beside the kinds, in what is minimised
FEWEST_PAGES = 2  # that have a word, or it tells nothing
PARTS = 5  # that the pages are split into for the classifier
POWER_PENALTY = 0.02  # on how far the classifier's powers are from where they start
_POWERS = np.array([0.8, 0.4, 0.4, 0.4])

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Examples:
    """Pages whose kind is known."""

    found: tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]  # places of the input, and how many words there
    figures: NDArray[np.float32]
    values: NDArray[np.int64]  # of the classifier's criteria
    kinds: NDArray[np.int64]
    owners: tuple[str, ...]  # pages of one are never split

    def part(self, nth: NDArray[np.int64]) -> "Examples":
        """Some of the pages."""
        return Examples(
            tuple(self.found[each] for each in nth.tolist()),
            self.figures[nth],
            self.values[nth],
            self.kinds[nth],
            tuple(self.owners[each] for each in nth.tolist()),
        )


def examples(
    pages: Sequence[Criteria], kinds: Sequence[str], values: Sequence[tuple[int, ...]], owners: Sequence[str]
) -> Examples:
    """Pages as they are trained on."""
    return Examples(
        tuple(places(page) for page in pages),
        np.array([page.figures for page in pages], np.float32).reshape(-1, len(FIGURES)),
        np.array(values, np.int64).reshape(len(pages), -1),
        np.array([KINDS.index(kind) for kind in kinds]),
        tuple(owners),
    )


def split(owners: Sequence[str], parts: int, seed: int) -> NDArray[np.int64]:
    """The part of each page, at random, those of one owner in one part."""
    different = sorted(set(owners))
    order = np.random.default_rng(seed).permutation(len(different))
    part = {different[owner]: place % parts for place, owner in enumerate(order.tolist())}
    return np.array([part[owner] for owner in owners])


def train_network(pages: Examples, seed: int) -> Network:
    """The network of these pages."""
    telling = _telling(pages)
    mean, spread = pages.figures.mean(axis=0), pages.figures.std(axis=0) + np.float32(1e-6)
    words, figures = _matrix(pages, telling), scaled(pages.figures, mean, spread)
    common = (words @ words.T + figures @ figures.T).astype(np.float64)
    powers, ways = np.linalg.eigh(common)
    kept = powers > 1e-6 * powers.max()
    roots = np.sqrt(powers[kept])
    basis = ways[:, kept] * roots
    first, bias, out, out_bias = _fit(basis, ways[:, kept], pages, seed)
    mix = (ways[:, kept] / roots @ first).astype(np.float32)  # how much of each page is in each hidden unit
    weights = words.T @ mix
    scale = np.maximum(np.abs(weights).max(axis=0) / 127.0, 1e-12)
    return Network(
        telling=telling,
        words=np.rint(weights / scale).astype(np.int8),
        scale=scale.astype(np.float32),
        mean=mean.astype(np.float32),
        spread=spread.astype(np.float32),
        figures=(figures.T @ mix).astype(np.float32),
        bias=bias.astype(np.float32),
        out=out.astype(np.float32),
        out_bias=out_bias.astype(np.float32),
    )


def logits_of(network: Network, pages: Examples) -> Floats:
    """What a network says of pages, one row each."""
    rows = []
    figures = scaled(pages.figures, network.mean, network.spread) @ network.figures
    for (taken, counts), own in zip(pages.found, figures, strict=True):
        words = inputs(taken, counts, network.telling) @ network.words[taken].astype(np.float32) * network.scale
        rows.append(np.tanh(words + own + network.bias) @ network.out + network.out_bias)
    return np.array(rows, np.float64).reshape(-1, len(KINDS))


def train(pages: Examples, seed: int) -> tuple[Network, Bayes]:
    """Both, of these pages."""
    part = split(pages.owners, PARTS, seed)
    unseen = np.zeros((len(pages.kinds), len(KINDS)))
    for nth in range(PARTS):
        within, without = np.flatnonzero(part == nth), np.flatnonzero(part != nth)
        if within.size and without.size:
            unseen[within] = logits_of(train_network(pages.part(without), seed), pages.part(within))
    return train_network(pages, seed), train_bayes(pages, unseen, part)


def train_bayes(pages: Examples, unseen: Floats, part: NDArray[np.int64]) -> Bayes:
    """The classifier; `unseen` is what networks say of pages that they have not been trained on."""
    logs = np.log(np.maximum(softmax(unseen), 1e-9))
    speaking = np.zeros((pages.values.shape[1], len(pages.kinds), len(KINDS)))
    for nth in np.unique(part):  # the tables, too, must not have seen the pages that they are weighed on
        within = np.flatnonzero(part == nth)
        rest = pages.part(np.flatnonzero(part != nth))
        for criterion, table in enumerate(tables(rest.values, rest.kinds)):
            own = pages.values[within, criterion]
            speaking[criterion, within] = np.where(own[:, None] >= 0, table[own], 0.0)
    evidence = np.concatenate((logs[None], speaking))
    wanted = np.eye(len(KINDS))[pages.kinds]

    def loss(powers: Floats) -> tuple[float, Floats]:
        shares = softmax(np.tensordot(powers, evidence, 1))
        value = -float(np.log(np.maximum((shares * wanted).sum(axis=1), 1e-12)).mean())
        slope = ((shares - wanted) * evidence).sum(axis=2).mean(axis=1)
        away = powers - _POWERS
        return value + POWER_PENALTY / 2 * float(away @ away), slope + POWER_PENALTY * away

    powers = np.maximum(least(loss, _POWERS, 100), 0.0)
    return Bayes(tables(pages.values, pages.kinds), powers)


def _telling(pages: Examples) -> NDArray[np.float32]:
    """How telling the words of each place are: the rarer the more, and nothing if hardly a page has them."""
    having = np.zeros(PLACES)
    for taken, _ in pages.found:
        having[taken] += 1
    telling = np.log((1.0 + len(pages.kinds)) / (1.0 + having)) + 1.0
    return np.asarray(np.rint(np.where(having >= FEWEST_PAGES, telling, 0.0) * 24) / 24, np.float32)


def _matrix(pages: Examples, telling: NDArray[np.float32]) -> NDArray[np.float32]:
    """The inputs of all pages, one row each."""
    matrix = np.zeros((len(pages.kinds), PLACES), np.float32)
    for row, (taken, counts) in zip(matrix, pages.found, strict=True):
        row[taken] = inputs(taken, counts, telling)
    return matrix


def _fit(basis: Floats, ways: Floats, pages: Examples, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """The layers over a basis of the inputs.

    They start from the same random mix of pages whatever basis a machine's library finds.
    """
    count, wide = basis.shape
    kinds = np.eye(len(KINDS))[pages.kinds]
    stated = np.eye(len(STATED))[np.maximum(pages.values[:, 0], 0)]
    stated[(pages.values[:, 0] <= 1)] = 0.0  # silent, or says nothing that is known
    tasks = ((slice(0, len(KINDS)), kinds, 1.0), (slice(len(KINDS), None), stated, STATED_SHARE))
    outs = len(KINDS) + len(STATED)
    rng = np.random.default_rng(seed)
    sizes = ((wide, HIDDEN), (HIDDEN,), (HIDDEN, outs), (outs,))
    start = [
        ways.T @ rng.normal(size=(count, HIDDEN)),
        np.zeros(HIDDEN),
        0.3 * rng.normal(size=sizes[2]),
        np.zeros(outs),
    ]
    cuts = np.cumsum([each.size for each in start])[:-1]

    def parts(flat: Floats) -> list[Floats]:
        return [part.reshape(size) for part, size in zip(np.split(flat, cuts), sizes, strict=True)]

    def loss(flat: Floats) -> tuple[float, Floats]:
        first, bias, out, out_bias = parts(flat)
        hidden = np.tanh(basis @ first + bias)
        logits = hidden @ out + out_bias
        value = FIRST_PENALTY / 2 * float((first**2).sum()) + SECOND_PENALTY / 2 * float((out**2).sum())
        wrong = np.zeros_like(logits)
        for columns, wanted, share in tasks:
            shares = softmax(logits[:, columns])
            value -= share * float((wanted * np.log(np.maximum(shares, 1e-12))).sum()) / count
            wrong[:, columns] = share * (shares * wanted.sum(axis=1, keepdims=True) - wanted) / count
        back = (wrong @ out.T) * (1.0 - hidden * hidden)
        slopes = (
            basis.T @ back + FIRST_PENALTY * first,
            back.sum(0),
            hidden.T @ wrong + SECOND_PENALTY * out,
            wrong.sum(0),
        )
        return value, np.concatenate([slope.ravel() for slope in slopes])

    first, bias, out, out_bias = parts(least(loss, np.concatenate([each.ravel() for each in start]), STEPS))
    return first, bias, out[:, : len(KINDS)], out_bias[: len(KINDS)]
