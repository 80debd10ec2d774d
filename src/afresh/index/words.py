"""The words of a text, told apart exactly as the index does: by its own tokenizer."""

import threading
from typing import cast

import apsw

from afresh.index.documents import spaced
from afresh.index.schema import TOKENIZERS


class Tokenizer:
    """Tells words apart; for any thread.

    >>> Tokenizer("english").words("The Ferries, running")
    ['the', 'ferri', 'run']
    """

    def __init__(self, name: str) -> None:
        first, *rest = TOKENIZERS[name].split()
        self._connection = apsw.Connection(":memory:")
        self._tokenizer = self._connection.fts5_tokenizer(first, rest)
        self._lock = threading.Lock()

    def words(self, text: str) -> list[str]:
        """The words, in their order."""
        with self._lock:
            found = self._tokenizer(
                spaced(text).encode("utf-8", "replace"),
                apsw.FTS5_TOKENIZE_DOCUMENT,
                None,
                include_offsets=False,
                include_colocated=False,
            )
        return cast(list[str], found)
