"""The stores that the tests of processing run on, a real PostgreSQL server among them."""

import random

import pytest
from helpers.servers import running_postgres

from msgid.processing import MemoryStore, PostgresStore, SqliteStore

KINDS = ["memory", "sqlite", "postgres"]


@pytest.fixture(scope="session")
def postgres():
    """A real PostgreSQL server, if PostgreSQL and psycopg are installed."""
    pytest.importorskip("psycopg")
    with running_postgres() as conninfo:
        yield conninfo


@pytest.fixture
def schema(postgres):
    """The address of an empty schema for one test."""
    import psycopg

    name = f"s{random.randrange(1 << 60)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{postgres} options='-c search_path={name}'"


@pytest.fixture
def published():
    return []


@pytest.fixture(params=KINDS)
def new_store(request, tmp_path):
    """A function that opens the same store each time; the store is empty at first."""
    memory, opened = MemoryStore(), []

    def new():
        if request.param == "memory":
            return memory
        if request.param == "sqlite":
            opened.append(SqliteStore(tmp_path / "states.db"))
        else:
            opened.append(PostgresStore(request.getfixturevalue("schema")))
        return opened[-1]

    yield new
    for store in opened:
        store.close()
