"""Settings for all tests, and public test cases written by others, which are not part of the project."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# In CI the draws are the same every time; elsewhere they go on searching.
# The first example of a property may compile a function, which takes as long as it takes.
settings.register_profile("afresh", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("afresh")

ROOT = Path(__file__).parent.parent

# Workers begin with equal parts of the tests, in this order. What compiles most comes first, and what compiles
# little last, so that they do not all compile the same functions at the same time.
_FIRST = ("estimate", "schedule", "sim", "value", "lab", "engine", "src", "daemon", "test_daemon.py", "cli")
_LAST = ("test_architecture.py", "frontier", "fetch", "signals", "store", "reading", "detect")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests by their folder; within one they stay as they are."""
    order = {name: place for place, name in enumerate((*_FIRST, "", *_LAST))}

    def place(item: pytest.Item) -> int:
        parts = item.path.relative_to(ROOT).parts
        return order.get(parts[0] if parts[0] == "src" else parts[1], order[""])

    items.sort(key=place)


@pytest.fixture
def suite() -> Callable[[str], Path]:
    """A folder of public cases; the test is skipped where they are absent."""
    home = Path(os.environ.get("AFRESH_SUITES", ROOT.parent / "shared" / "suites"))

    def find(name: str) -> Path:
        if not (home / name).exists():
            pytest.skip(f"no public cases at {home / name}: set AFRESH_SUITES to the folder that holds them")
        return home / name

    return find


@pytest.fixture(autouse=True)
def _pipes_as_before() -> Iterator[None]:
    """A command that runs in this process lets a closed pipe end it, which must not hold for the tests after it."""
    before = signal.getsignal(signal.SIGPIPE)
    yield
    signal.signal(signal.SIGPIPE, before)
