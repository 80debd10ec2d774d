"""The network: marks of words and figures of structure in, a probability of each kind out.

The input has a part for each group of marks: as many places as `BITS` say, which words share by their marks. A part
is the words' counts in logarithms, times how telling each word is, at length one. So a long page has no more to say
than a short one. One hidden layer of `tanh`, and a softmax.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.kinds.criteria import FIGURES, Criteria

BITS = (12, 13, 14, 13, 13, 11)  # places of each group's part, as a power of two
# How much each part has to say, then the figures; chosen by cross-validation.
WEIGHTS = (2.0, 3.0, 2.0, 1.5, 0.5, 1.0)
FIGURES_WEIGHT = 1.0
_STARTS = np.concatenate(([0], np.cumsum([1 << bits for bits in BITS])))
PLACES = int(_STARTS[-1])
_SHIFTS = np.array([64 - bits for bits in BITS], np.uint64)
_ROOTS = np.sqrt(np.array(WEIGHTS, np.float32))
FARTHEST = 3.0  # standard deviations that a figure may be from the mean: beyond, it says no more

Floats = NDArray[np.float32]
Places = NDArray[np.int64]


def places(found: Criteria) -> tuple[Places, NDArray[np.int64]]:
    """The places of the input that a page's words fall on, each once, and how many words do."""
    groups = found.groups
    at = (found.marks >> _SHIFTS[groups]).astype(np.int64) + _STARTS[groups]
    return np.unique(at, return_counts=True)


def inputs(taken: Places, counts: NDArray[np.int64], telling: Floats) -> Floats:
    """The values at those places: each group's part has the length of its weight's root."""
    values = (1.0 + np.log(counts.astype(np.float32))) * telling[taken]
    groups = np.searchsorted(_STARTS, taken, side="right") - 1
    lengths = np.sqrt(np.bincount(groups, values * values, len(BITS)))
    scale = np.where(lengths > 0, _ROOTS / np.maximum(lengths, 1e-9), 0.0)
    return np.asarray(values * scale[groups], np.float32)


def scaled(figures: Floats, mean: Floats, spread: Floats) -> Floats:
    """Figures in standard deviations from the mean, as the network takes them."""
    far = np.clip((figures - mean) / spread, -FARTHEST, FARTHEST)
    return np.asarray(far * np.sqrt(FIGURES_WEIGHT / len(FIGURES)), np.float32)


@dataclass(frozen=True, slots=True)
class Network:
    """The weights. Those of words are small integers, times a scale for each hidden unit."""

    telling: NDArray[np.float32]  # how telling the words of each place are
    words: NDArray[np.int8]  # place × hidden
    scale: Floats  # of each hidden unit
    mean: Floats  # of the figures,
    spread: Floats  # their standard deviations,
    figures: Floats  # and weights: figure × hidden
    bias: Floats
    out: Floats  # hidden × kind
    out_bias: Floats

    def logits(self, found: Criteria) -> Floats:
        """What the network says of each kind, before the softmax."""
        taken, counts = places(found)
        hidden = inputs(taken, counts, self.telling) @ self.words[taken].astype(np.float32) * self.scale
        hidden += scaled(found.figures, self.mean, self.spread) @ self.figures + self.bias
        return np.asarray(np.tanh(hidden) @ self.out + self.out_bias, np.float32)


def softmax(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Probabilities of what has these logarithms, but for a constant; of each row."""
    high = np.asarray(logits, np.float64)
    powers = np.exp(high - high.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def packed(network: Network) -> Mapping[str, NDArray[Any]]:
    """The weights as they are kept: how telling words are in steps of 1/24."""
    telling = np.rint(network.telling * 24).clip(0, 255).astype(np.uint8)
    rest = ("words", "scale", "mean", "spread", "figures", "bias", "out", "out_bias")
    return {"telling": telling, **{name: getattr(network, name) for name in rest}}


def unpacked(kept: Mapping[str, NDArray[Any]]) -> Network:
    """The network of weights that were kept."""
    rest = ("words", "scale", "mean", "spread", "figures", "bias", "out", "out_bias")
    telling = np.asarray(kept["telling"], np.float32) / np.float32(24)
    return Network(telling, *(kept[name] for name in rest))
