"""A PostgreSQL that all tests of a process share, and a disk that is really full."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from postgres import Postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB."""
    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)], capture_output=True)
    if made.returncode:
        pytest.skip("only root may mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)
