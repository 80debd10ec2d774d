"""A PostgreSQL that all tests of a process share."""

from collections.abc import Iterator

import pytest

from postgres import Postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()
