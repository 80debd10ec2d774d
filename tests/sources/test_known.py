from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from afresh.errors import ConfigError, StoreError, StoreLocked
from afresh.sources.web.known import LEAST_MEMORY, Known
from afresh.testing import check_seen


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    return (tmp_path / f"known{nth}" for nth in count())


def test_it_answers_as_a_plain_set_does_in_memory_and_beyond(folders: Iterator[Path]) -> None:
    for near in (1 << 30, 5_000, 0):
        check_seen(lambda near=near: Known(next(folders), memory=LEAST_MEMORY, near=near), rounds=12)  # type: ignore[misc]
    check_seen(Known, rounds=6)


def test_it_goes_on_where_it_ended(tmp_path: Path) -> None:
    keys = np.random.default_rng(1).integers(0, 1 << 63, 60_000).astype(np.uint64)
    for part, some in enumerate(np.split(keys, 6)):
        with Known(tmp_path / "known", memory=LEAST_MEMORY, near=25_000) as known:
            assert len(known) == part * 10_000
            assert not known.look(keys[: part * 10_000]).any()
            assert known.add_many(some).all()
            assert known.on_disk == max(len(known) - 25_000, 0)
            secret = known.secret
            with pytest.raises(StoreLocked):
                Known(tmp_path / "known")
    with Known(tmp_path / "known") as known:
        assert known.secret == secret
        assert known.nbytes > 0
    path = tmp_path / "known" / "secret"
    whole = path.read_bytes()
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])  # with this one all that is known would be new
    with pytest.raises(StoreError, match="secret"):
        Known(tmp_path / "known")
    path.write_bytes(whole[:16])  # as earlier versions wrote it
    Known(tmp_path / "known").close()
    path.unlink()
    with pytest.raises(StoreError, match="secret"):
        Known(tmp_path / "known")
    with pytest.raises(ConfigError, match="too little memory"):
        Known(memory=1_000)
    with pytest.raises(StoreError, match="closed"):
        known.add_many([1])
