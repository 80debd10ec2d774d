"""Engines of the index keep every promise."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from afresh.index.engines import Fts5
from afresh.store import Sqlite
from afresh.testing import check_engine


@pytest.fixture
def stores(tmp_path: Path) -> Callable[[], Sqlite]:
    numbers = count()
    return lambda: Sqlite(tmp_path / f"{next(numbers)}.db")


def test_fts5(stores: Callable[[], Sqlite]) -> None:
    check_engine(Fts5, stores)
