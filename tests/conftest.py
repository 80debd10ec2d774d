"""Settings for all tests, and public test cases written by others, which are not part of the project."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# In CI the draws are the same every time; elsewhere they go on searching.
# The first example of a property may compile a function, which takes as long as it takes.
settings.register_profile("afresh", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("afresh")

ROOT = Path(__file__).parent.parent


@pytest.fixture
def suite() -> Callable[[str], Path]:
    """A folder of public cases; the test is skipped where they are absent."""
    home = Path(os.environ.get("AFRESH_SUITES", ROOT.parent / "shared" / "suites"))

    def find(name: str) -> Path:
        if not (home / name).exists():
            pytest.skip(f"no public cases at {home / name}: set AFRESH_SUITES to the folder that holds them")
        return home / name

    return find
