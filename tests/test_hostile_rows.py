"""Everything hostile that must be survived has a test of its row: fetching F, addresses S, traps T, signals G."""

import re
from pathlib import Path

ROWS = [f"f{number}" for number in range(1, 16)] + [f"s{number}" for number in range(1, 7)]
ROWS += [f"t{number}" for number in range(1, 6)] + [f"g{number}" for number in range(1, 9)]


def test_every_row_has_a_test_of_its_name() -> None:
    files = [path for path in Path(__file__).parent.rglob("test_*.py") if path != Path(__file__)]
    names = re.findall(r"^def test_([fgst][0-9]+)_\w+\(", "\n".join(path.read_text() for path in files), re.MULTILINE)
    assert sorted(set(names)) == sorted(ROWS)
