"""The table of runs in the page of versions: ``--write-versions`` writes a row for each file of tests that passed."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from systems.brokers import KAFKA, SPARK_KAFKA
from systems.rocketmq_broker import GO_CLIENT, NODE_CLIENT, ROCKETMQ, ROCKETMQ_CLIENT

if TYPE_CHECKING:
    import pytest

PAGE = Path(__file__).parents[2] / "docs" / "pages" / "versions.md"
HEAD = "| tests | with | passed | date |\n|---|---|---|---|\n"
BROKER = [artifact for artifact in ROCKETMQ if artifact.split(":")[1] == "rocketmq-broker"]
SYSTEMS = {
    "test_kafka": (KAFKA[:1], ["confluent-kafka", "aiokafka"]),
    "test_kafka_faults": ([*KAFKA[:1], SPARK_KAFKA[0]], ["confluent-kafka", "pyspark"]),
    "test_kafka_pages": ([*KAFKA[:1], SPARK_KAFKA[0]], ["confluent-kafka", "aiokafka", "pyspark"]),
    "test_rocketmq": ([*BROKER, *ROCKETMQ_CLIENT], []),
    "test_rocketmq_clients": (BROKER, []),
    "test_rocketmq_faults": (BROKER, ["rocketmq-python-client"]),
    "test_rocketmq_pages": (BROKER, ["rocketmq-python-client"]),
    "test_soak": ([*KAFKA[:1], *BROKER], ["confluent-kafka", "rocketmq-python-client", "pyspark"]),
}
"""The artifacts and the packages of each file of tests."""
MORE = {"test_rocketmq_clients": [client.replace("@", " ") for client in (NODE_CLIENT, GO_CLIENT)]}
"""The clients in other languages."""


def rows_of(page: str) -> dict[str, str]:
    """Return the rows of the table, by the file of tests."""
    rows = itertools.takewhile(lambda line: line.startswith("|"), page.partition(HEAD)[2].splitlines())
    return {row.split("`")[1]: row for row in rows}


def with_rows(page: str, rows: dict[str, str]) -> str:
    """Return the page with these rows in its table; the others stay."""
    table = {**rows_of(page), **rows}
    start, head, rest = page.partition(HEAD)
    assert head
    lines = [f"{table[name]}\n" for name in sorted(table)]
    after = itertools.dropwhile(lambda line: line.startswith("|"), rest.splitlines(keepends=True))
    return "".join([start, head, *lines, *after])


def row_of(name: str, passed: int, day: str) -> str:
    """Return the row of a file of tests."""
    artifacts, packages = SYSTEMS[name]
    parts = [" ".join(artifact.split(":")[1:3]) for artifact in artifacts]
    parts += [f"{package} {version(package)}" for package in packages] + MORE.get(name, [])
    return f"| `{name}` | {', '.join(parts)} | {passed} | {day} |"


class Versions:
    """A plugin that counts the outcomes of each file of tests, and writes the rows at the end of the run."""

    def __init__(self) -> None:
        self._outcomes: dict[str, Counter[str]] = defaultdict(Counter)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test that passed, and any part of a test that failed."""
        if report.failed or (report.when == "call" and report.passed):
            self._outcomes[Path(report.nodeid.partition("::")[0]).stem][report.outcome] += 1

    def pytest_sessionfinish(self) -> None:
        """Write a row for each known file of tests without a failure."""
        day = datetime.now(timezone.utc).date().isoformat()
        rows = {
            name: row_of(name, outcomes["passed"], day)
            for name, outcomes in self._outcomes.items()
            if name in SYSTEMS and not outcomes["failed"]
        }
        PAGE.write_text(with_rows(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
