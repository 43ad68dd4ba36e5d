"""A cluster under faults: executors, workers, master and driver are killed and paused, and the disk fills up."""

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from helpers.servers import running_postgres
from systems.faults import Program, inflict, schedule
from systems.spark_cluster import EXECUTOR_PACKAGES, SmallDisk, SparkCluster, java_or_skip

import msgid

pytestmark = [pytest.mark.systems, pytest.mark.faults]

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(__file__).with_name("cluster_programs.py"))
POSTGRES = ("psycopg", "psycopg-binary", "typing_extensions")
FAULTS, LONGEST_SECONDS, DONE_SECONDS = 7, 20, 600
"""Faults per schedule. A process is away for longer than Spark waits for it, so it comes back after it was replaced."""
FILES_APART_SECONDS, ORDERS, CUSTOMERS = 1.5, 120, 11
START = datetime(2026, 11, 25, tzinfo=timezone.utc)


class Executors:
    """The executors of a cluster as one target: a fault meets one of them, which the seed chooses."""

    def __init__(self, cluster, seed):
        self._cluster, self._chance, self._paused = cluster, random.Random(seed), None

    def signal(self, number):
        running = sorted(self._cluster.executors())
        one = self._paused if number == signal.SIGCONT else self._chance.choice(running) if running else None
        self._paused = one if number == signal.SIGSTOP else None
        with suppress(ProcessLookupError):
            if one is not None:
                os.kill(one, number)

    def kill(self):
        self.signal(signal.SIGKILL)

    def stop(self):
        self.signal(signal.SIGTERM)

    def start(self):
        """Wait for nothing: the cluster starts another executor."""


class Workers:
    """The workers of a cluster as one target."""

    def __init__(self, cluster, seed):
        self._workers, self._chance, self._one = cluster.workers, random.Random(seed), None

    def _chosen(self):
        self._one = self._chance.choice(self._workers)
        return self._one

    def signal(self, number):
        (self._one if number == signal.SIGCONT else self._chosen()).signal(number)

    def kill(self):
        self._chosen().kill()

    def stop(self):
        self._chosen().stop()

    def start(self):
        self._one.start()


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """Return a small disk that driver and workers share."""
    disk = SmallDisk(tmp_path_factory.mktemp("disk"))
    yield disk
    disk.end()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, disk):
    """Return a cluster whose processes see the small disk."""
    java_or_skip()
    pytest.importorskip("psycopg")
    cluster = SparkCluster(tmp_path_factory.mktemp("cluster"), (*EXECUTOR_PACKAGES, *POSTGRES), within=disk.command)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def postgres():
    """Return the connection string of a server."""
    with running_postgres() as conninfo:
        yield conninfo


def driver_of(cluster, disk, folder, **plan):
    """Return a driver, which is not started yet."""
    given = json.dumps({"folder": str(folder), "packages": str(ROOT), **plan})
    environment = {**cluster.environment, "PYSPARK_PYTHON": str(cluster.python), "PYTHONPATH": str(ROOT)}
    pairs = [f"{name}={value}" for name, value in environment.items()]
    return Program([*disk.command, "env", "-i", *pairs, sys.executable, PROGRAM, given], folder / "driver.log")


class Orders:
    """Files of orders, some of them twice, that arrive one after another."""

    def __init__(self, folder, seed):
        self._folder, self._chance, self._generator = folder, random.Random(seed), msgid.Generator()
        self._next, self._files = 0.0, 0
        self.sent = []
        (folder / "in").mkdir()

    def arrive(self):
        """Write the next file, if it is time."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + FILES_APART_SECONDS
        new = []
        for n in range(ORDERS):
            number = self._files * ORDERS + n
            at = (START + timedelta(seconds=number)).isoformat()
            customer = f"customer {self._chance.randrange(CUSTOMERS)}"
            row = {"id": self._generator.generate_hex(), "customer": customer, "at": at, "text": f"order {number}"}
            new.append(row)
        rows = new + self._chance.sample([*self.sent, *new], ORDERS // 10)
        part = self._folder / f"{self._files}.part"
        part.write_text("".join(json.dumps(row) + "\n" for row in rows))
        part.rename(self._folder / "in" / f"{self._files:05}.json")
        self.sent += rows
        self._files += 1


@pytest.mark.parametrize("number", range(7))
def test_streams_through_faults_are_in_each_sink_once(cluster, disk, postgres, tmp_path, seed, number):
    """Two streams, three sinks: every message has its label and its output once, and states are unbroken."""
    seed, began = seed + number, time.monotonic()
    database = f"faults_{number}"
    conninfo = create(postgres, database)
    orders, place = Orders(tmp_path, seed), disk.folder / str(number)
    driver = driver_of(cluster, disk, tmp_path, place=str(place), conninfo=conninfo)
    targets = {"executor": Executors(cluster, seed), "worker": Workers(cluster, seed), "master": cluster.master,
               "driver": driver, "disk": disk}  # fmt: skip
    starts = Counter()

    def tend():
        orders.arrive()
        if driver.wait(0):
            driver.start()
            starts["again"] += 1

    driver.start()
    try:
        inflict(schedule(seed, FAULTS, list(targets), apart=6, longest=LONGEST_SECONDS), targets, tend)
        (tmp_path / "done").touch()
        end = time.monotonic() + DONE_SECONDS
        while driver.wait(1) != 0 and time.monotonic() < end:
            driver.start()
    finally:
        driver.kill()
    assert (tmp_path / "rows").exists(), (tmp_path / "driver.log").read_text(errors="replace")[-4000:]
    found = json.loads((tmp_path / "rows").read_text())
    judge(orders.sent, found, conninfo)
    print(
        f"  seed {seed}, {FAULTS} faults, the driver ended by itself {starts['again']} times: {len(orders.sent)} rows "
        f"of {len({row['id'] for row in orders.sent})} messages, 0 lost, 0 repeated in 6 tables, "
        f"{time.monotonic() - began:.0f} s",
        flush=True,
    )


def create(postgres, database):
    """Create a database, and return its connection string."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}")
    return postgres.replace("dbname=postgres", f"dbname={database}")


def judge(sent, found, conninfo):
    """Compare the sent messages with those in each sink."""
    import psycopg

    times, of_id = Counter(row["id"] for row in sent), {row["id"]: row for row in sent}
    for format in ("parquet", "delta"):
        labels = Counter((row["id"], row["delivery"]) for row in found[f"labelled-{format}"])
        again = {(id, "duplicate"): n - 1 for id, n in times.items() if n > 1}
        assert labels == {**{(id, "new"): 1 for id in times}, **again}, format
        rows = found[f"handled-{format}"]
        assert Counter(row["kind"] for row in rows) == {"new": len(times), "duplicate": len(sent) - len(times)}
        new = {row["input_id"]: row for row in rows if row["kind"] == "new"}
        assert new.keys() == of_id.keys()
        assert {row["id"] for row in rows} == {row["id"] for row in new.values()}
        assert_unbroken([json.loads(row["body"]) for row in new.values()], of_id.values())
    assert found["audit"] == []
    with psycopg.connect(conninfo) as connection:
        labelled = connection.execute("SELECT id, customer, text FROM labelled").fetchall()
        assert sorted(labelled) == sorted((id, row["customer"], row["text"]) for id, row in of_id.items())
        handled = connection.execute("SELECT body FROM handled").fetchall()
        assert_unbroken([json.loads(body) for (body,) in handled], of_id.values())
        for table in ("labelled", "handled"):
            assert connection.execute(f"SELECT * FROM {table}_conflicts").fetchall() == []


def assert_unbroken(outputs, orders):
    """Check that each order has an output, and that those of a customer count from one."""
    pairs = sorted((output["customer"], output["order"]) for output in outputs)
    assert pairs == sorted((row["customer"], row["text"]) for row in orders)
    for customer in {customer for customer, _ in pairs}:
        numbers = sorted(output["number"] for output in outputs if output["customer"] == customer)
        assert numbers == list(range(1, len(numbers) + 1)), customer
