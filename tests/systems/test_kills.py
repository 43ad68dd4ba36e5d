"""Workers, a driver of Spark and the PostgreSQL server are killed for a time: each result is exact."""

import shutil

import pytest
from systems import kills

pytestmark = [pytest.mark.systems, pytest.mark.faults]

SECONDS = 120
"""`python -m systems.kills --seconds 3600` runs for an hour."""


def test_stores_and_sinks_are_exact_after_kills_of_processes_and_of_the_server(tmp_path, seed):
    """SQLite and PostgreSQL have each message once and in order; PostgreSQL, Delta and Parquet have each row."""
    pytest.importorskip("psycopg")
    kills.run(SECONDS, seed, tmp_path)
    shutil.rmtree(tmp_path)
