"""Micro-batches and partitions that are larger than the memory of a Python worker."""

import json
import subprocess
import sys
from contextlib import ExitStack

import pytest
from helpers.servers import running_postgres
from helpers.vector_files import PROGRAMS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.volume,
    pytest.mark.skipif(sys.platform != "linux", reason="Spark limits the memory of a worker on Linux alone"),
]


@pytest.mark.parametrize(
    ("way", "rows", "megabytes", "counts"),
    [
        ("process", 500_000, 1024, {"new": 450_000, "duplicate": 50_000}),
        ("deduplicate", 1_000_000, 1024, {"new": 900_000, "duplicate": 100_000}),
        ("upsert", 1_000_000, 420, {"inserted": 900_000, "present": 100_000, "conflicts": 0}),
    ],
)
def test_worker_with_a_limit_handles_a_batch_of_any_size(tmp_path, way, rows, megabytes, counts):
    """Each of them ended with `MemoryError` when the rows of a bucket or a partition stood in the worker at once."""
    with ExitStack() as stack:
        server = [stack.enter_context(running_postgres())] if way == "upsert" else []
        command = [sys.executable, PROGRAMS / "limited.py", way, tmp_path, str(rows), str(megabytes), *server]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == counts
