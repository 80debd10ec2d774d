"""Functions of a bundle are compiled together, once, and what is kept of them is used only if it is whole."""

import subprocess
import sys
from pathlib import Path

import pytest

import afresh

SCRIPT = """
import numpy as np
from numpy.typing import NDArray
from afresh.value.compiled import bundle, compiled, heard

@compiled
def double(x: float) -> float:
    return 2.0 * x

@compiled
def four_times(x: float) -> float:
    return double(double(x))

@compiled
def all_doubled(values: NDArray[np.float64], more: tuple[NDArray[np.float64], NDArray[np.float64]]) -> float:
    for k in range(values.size):
        values[k] = double(values[k]) + more[0][k] + more[1][k]
    return values.sum()

together = bundle("numbers", double, four_times, all_doubled)

def main() -> None:
    names, one = [], np.ones(3)
    with heard(names.append):
        print(double(1.5), four_times(1.5), all_doubled(np.ones(3), (one, one)))
    print(len(names))
"""


def run(folder: Path) -> list[str]:
    (folder / "numbers_of_ours.py").write_text(SCRIPT)
    environment = {
        "PYTHONPATH": f"{Path(afresh.__file__).parent.parent}:{folder}",
        "NUMBA_CACHE_DIR": str(folder / "compiled"),
    }
    command = [sys.executable, "-c", "import numbers_of_ours; numbers_of_ours.main()"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("damage", [None, b"", b"\x80", b"not a pickle", 0.5, "a flipped bit"])
def test_a_bundle_is_kept_and_a_damaged_one_is_made_again(tmp_path: Path, damage: bytes | float | str | None) -> None:
    *values, compiled = run(tmp_path)
    assert values == ["3.0", "6.0", "12.0"]
    assert int(compiled) > 0
    (kept,) = tmp_path.rglob("*.bundle")
    if damage is not None:
        whole = kept.read_bytes()
        if isinstance(damage, str):
            place = len(whole) // 2
            damage = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        kept.write_bytes(whole[: int(len(whole) * damage)] if isinstance(damage, float) else damage)
    *values, compiled = run(tmp_path)
    assert values == ["3.0", "6.0", "12.0"]
    assert (int(compiled) > 0) == (damage is not None)
    assert run(tmp_path)[-1] == "0"


def test_where_there_is_no_room_nothing_is_kept_and_all_works(tmp_path: Path) -> None:
    (tmp_path / "compiled").write_text("a file where the folder would go")
    for _ in range(2):
        *values, compiled = run(tmp_path)
        assert values == ["3.0", "6.0", "12.0"]
        assert int(compiled) > 0
