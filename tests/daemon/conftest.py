"""For all tests of the daemon: what it needs is compiled before one of them waits for it."""

import pytest

from afresh.engine.ahead import compile_ahead


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    """As `afresh run` does it: a first start on a machine compiles for longer than these tests have patience."""
    compile_ahead()
