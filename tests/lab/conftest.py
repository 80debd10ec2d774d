"""What commands of the lab leave behind in a process that goes on, as no command line does."""

from collections.abc import Iterator

import pytest

from afresh.cli.terminal import console


@pytest.fixture(autouse=True)
def _own_output() -> Iterator[None]:
    """`--json -` leaves standard output to the JSON for the rest of the process."""
    before = console.stderr
    yield
    console.stderr = before
