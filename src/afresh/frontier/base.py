"""What a duplicate eliminator promises, in memory (`frontier.Seen`) or on disk (`store.SeenOnDisk`)."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Eliminator(Protocol):
    """Remembers every 64-bit fingerprint that it was ever shown."""

    def add_many(self, fingerprints: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of these were never shown before; a repetition within the batch is not new."""
        ...

    def look(self, fingerprints: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of these would be new, were they added now; a repetition is not. Nothing changes."""
        ...

    def keep(self, fingerprints: NDArray[np.uint64]) -> None:
        """Add fingerprints that `look` has just called new."""
        ...

    def __len__(self) -> int: ...
