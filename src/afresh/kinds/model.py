"""The model that comes with the package: from criteria to the probability of each kind."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.errors import InputError
from afresh.kinds.bayes import KINDS, VALUES, Bayes, values
from afresh.kinds.criteria import Criteria
from afresh.kinds.network import Network, packed, softmax, unpacked

SHIPPED = "weights.npz"  # beside this file
MAX_BYTES = 1 << 20  # of weights
FORM = 1  # of what is kept


@dataclass(frozen=True, slots=True)
class Model:
    """A network, and the classifier that weighs it with what pages say of themselves."""

    network: Network
    bayes: Bayes

    def probabilities(self, found: Criteria) -> NDArray[np.float64]:
        """How likely each of `KINDS` is: a mixture where the page does not tell."""
        logs = np.log(np.maximum(softmax(self.network.logits(found)), 1e-9))
        return softmax(self.bayes.logits(logs, values(found.said)))

    def to_bytes(self) -> bytes:
        """The model as it is kept: the same for the same weights."""
        arrays: dict[str, Any] = dict(packed(self.network))
        for name, table in zip(VALUES, self.bayes.tables, strict=True):
            arrays[f"table_{name}"] = table.astype(np.float32)
        arrays["powers"] = self.bayes.powers.astype(np.float32)
        arrays["form"] = np.array([FORM, len(KINDS)])
        kept = BytesIO()
        np.savez_compressed(kept, **arrays)
        return kept.getvalue()

    @classmethod
    def from_bytes(cls, kept: bytes) -> "Model":
        """The model that was kept so."""
        try:
            if not kept.startswith(b"PK"):
                raise ValueError("they are no .npz file")
            with np.load(BytesIO(kept), allow_pickle=False) as arrays:
                if arrays["form"].tolist() != [FORM, len(KINDS)]:
                    raise ValueError("another form")
                tables = tuple(arrays[f"table_{name}"].astype(np.float64) for name in VALUES)
                return cls(unpacked(arrays), Bayes(tables, arrays["powers"].astype(np.float64)))
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise InputError(
                f"These weights of the kinds of pages cannot be read: {error}.",
                hint="Make them with afresh lab kinds train.",
            ) from None


def compile_ahead() -> None:
    """Compile and load all that telling a kind takes, by doing it once."""
    from afresh.kinds.criteria import WANTED, criteria
    from afresh.reading import read

    shipped().probabilities(criteria(read(b"<title>Tides</title><p>High water", wanted=WANTED), "http://e.org/tides"))


@cache
def shipped() -> Model:
    """The model that comes with the package."""
    return Model.from_bytes((files("afresh.kinds") / SHIPPED).read_bytes())
