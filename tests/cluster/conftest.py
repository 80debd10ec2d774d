"""A PostgreSQL server for the tests of a file, and a store in it; a file may have a `url` of its own, with pages."""

from collections.abc import Iterator

import pytest

from afresh.cluster.register import Register
from afresh.store.postgres import Postgres
from postgres import Postgres as Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def url(server: Server) -> str:
    url = server.fresh("cluster")
    Postgres(url).close()
    return url


@pytest.fixture
def register(url: str) -> Iterator[Register]:
    made = Register(url)
    yield made
    made.close()
