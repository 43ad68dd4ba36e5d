"""Measure the rate of `msgid.processing` on each store, and how its cost grows with a key's history.

python bench/processing.py [--messages 100000] [--rounds 5] [--postgres "host=... dbname=..."]

Without ``--postgres``, an installed server is started in a temporary folder. Its commits wait for
the disk.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import os
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rounds import machine, table

import msgid
from msgid.processing import MemoryStore, Message, PostgresStore, Processor, SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GOAL_HANDLE = 0.7
"""Goal: the minimum rate of `handle` on SQLite, as a fraction of the rate of bare transactions."""
GOALS_MANY = {"SQLite": 20_000, "PostgreSQL": 10_000}
"""Goals: messages per second of `handle_many`."""
GOAL_GROWTH = 1.3
"""Goal: the maximum cost of a message with a long history of its key, relative to one without a history."""
WINDOW = 100
_numbers = itertools.count()
BATCH = 1000


def count(state: Any, message: Message, context: Any) -> Any:
    """Count the messages of a key, and publish the number."""
    seen = (state or {"seen": 0})["seen"] + 1
    context.publish({"seen": seen})
    return {"seen": seen}


def messages(start: int, number: int, keys: int = 1) -> list[Message]:
    return [
        Message(str(msgid.position_id("log", n, 1_700_000_000)), f"key {n % keys}", {"pieces": 1})
        for n in range(start, start + number)
    ]


@contextlib.contextmanager
def server(address: str | None) -> Iterator[str | None]:
    """Yield the address of a PostgreSQL server: the given one, a new one, or None."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if address is not None or not programs:
        yield address
        return
    folder = Path(tempfile.mkdtemp(prefix="msgid-"))
    as_user = []
    if os.geteuid() == 0:
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
    options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
    data = ["-D", str(folder / "data")]
    for call in (
        ["initdb", *data, "-A", "trust", "-U", "msgid"],
        ["pg_ctl", *data, "-w", "-o", options, "-l", str(folder / "log"), "start"],
    ):
        subprocess.run([*as_user, str(programs[0] / call[0]), *call[1:]], check=True, capture_output=True, cwd=folder)
    try:
        yield f"host={folder} user=msgid dbname=postgres"
    finally:
        stop = [str(programs[0] / "pg_ctl"), *data, "-m", "immediate", "stop"]
        subprocess.run([*as_user, *stop], check=True, capture_output=True, cwd=folder)
        shutil.rmtree(folder)


def stores(folder: Path, address: str | None) -> dict[str, Callable[[], Any]]:
    """Return functions that create an empty store of each kind."""

    def postgres() -> PostgresStore:
        import psycopg

        name = f"bench{next(_numbers)}"
        with psycopg.connect(str(address), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return PostgresStore(f"{address} options='-c search_path={name}'")

    kinds: dict[str, Callable[[], Any]] = {
        "memory": MemoryStore,
        "SQLite": lambda: SqliteStore(folder / f"{next(_numbers)}.db"),
    }
    if address is not None:
        kinds |= {"PostgreSQL": postgres}
    return kinds


def verdict(met: bool) -> str:
    """Return the last column of a line with a goal."""
    return "met" if met else "missed"


def rate(work: Callable[[], Any], number: int) -> float:
    return rates(work, number)[0]


def rates(work: Callable[[], Any], number: int) -> tuple[float, float]:
    """Return the rate of ``number`` operations per second, and per second of CPU time of this process."""
    gc.collect()
    gc.freeze()  # the other stores' objects are not part of this work
    start, cpu = time.perf_counter(), time.process_time()
    work()
    done = number / (time.perf_counter() - start), number / (time.process_time() - cpu)
    gc.unfreeze()
    return done


def growth(kinds: dict[str, Callable[[], Any]], most: int, rounds: int) -> None:
    """Print microseconds per message by the number of messages that the key has.

    Each store has a key without history and, at each size, a key with that history. The two take turns.
    """
    sizes = [size for size in (1, 100, 1000, 4000, 10_000, 100_000) if size <= most]
    rows, ratios = [], []
    for name, new in kinds.items():
        row, ratio = [name], [name]
        store = new()
        old = Processor(store, count, list, name="old")
        done = 0
        for size in sizes:
            old.handle_many(messages(done, size - done), batch=BATCH)
            done = size
            times: dict[str, list[float]] = {"old": [], "fresh": []}
            for turn in range(rounds):
                fresh = Processor(store, count, list, name=f"fresh {size} {turn}")
                works = {"fresh": (fresh, messages(0, WINDOW)), "old": (old, messages(done, WINDOW))}
                done += WINDOW
                for which, (processor, wanted) in works.items():
                    for one in wanted:
                        start = time.perf_counter()
                        processor.handle(one)
                        times[which].append(time.perf_counter() - start)
            row.append(f"{statistics.median(times['old']) * 1e6:,.0f}")
            cost = statistics.median(times["old"]) / statistics.median(times["fresh"])
            ratio.append(f"{cost:.2f}")
        rows.append(row)
        ratios.append([*ratio, f"at most {GOAL_GROWTH}", verdict(cost <= GOAL_GROWTH)])
    headers = [f"{size:,}" for size in sizes]
    print(table(["microseconds per `handle`, by messages of the key before", *headers], rows) + "\n", flush=True)
    names = ["time of `handle`, relative to a new key", *headers, f"goal at {headers[-1]}", ""]
    print(table(names, ratios) + "\n", flush=True)


def bare(folder: Path, rounds: int) -> None:
    """Print `handle` on SQLite against transactions of one row, on a file with the same settings."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE states (key TEXT, id TEXT, state BLOB, PRIMARY KEY (key, id)) WITHOUT ROWID")
    processor = Processor(SqliteStore(folder / "handle.db"), count, list)

    def transactions(wanted: list[Message]) -> None:
        for one in wanted:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO states VALUES (?, ?, ?)", (one.key, one.id, b'{"seen":1}'))
            connection.execute("COMMIT")

    def handle(wanted: list[Message]) -> None:
        for one in wanted:
            processor.handle(one)

    seconds: dict[str, list[float]] = {"bare": [], "handle": []}
    for turn in range(2 * rounds + 1):
        wanted = messages(turn * WINDOW, WINDOW)
        for name, work in (("bare", transactions), ("handle", handle)):
            measured = rate(lambda work=work, wanted=wanted: work(wanted), WINDOW)  # type: ignore[misc]
            if turn:
                seconds[name].append(measured)
    bare_rate, handle_rate = (statistics.median(seconds[name]) for name in ("bare", "handle"))
    part = handle_rate / bare_rate
    met = part >= GOAL_HANDLE
    rows = [
        ["a transaction of one row", f"{bare_rate:,.0f}", "1.00", "", ""],
        [
            "`Processor.handle`",
            f"{handle_rate:,.0f}",
            f"{part:.2f}",
            f"at least {GOAL_HANDLE}",
            verdict(met),
        ],
    ]
    print(table(["SQLite, WAL, synchronous = FULL", "per second", "of the first", "goal", ""], rows) + "\n", flush=True)


def many(kinds: dict[str, Callable[[], Any]], rounds: int) -> None:
    """Print messages per second of `handle_many`, new ones and redelivered ones: the best of many short rounds."""
    rows = []
    processors = {name: Processor(new(), count, list) for name, new in kinds.items()}
    by_store: dict[str, dict[str, list[float]]] = {name: {"new": [], "cpu": [], "again": []} for name in kinds}
    number = 2 * BATCH
    for turn in range(6 * rounds):
        wanted = messages(turn * number, number, keys=BATCH)
        for name, processor in processors.items():
            for which in ("new", "again"):
                measured, cpu = rates(lambda p=processor, w=wanted: p.handle_many(w, batch=BATCH), number)  # type: ignore[misc]
                if turn:
                    by_store[name][which].append(measured)
                    by_store[name]["cpu"] += [cpu] if which == "new" else []
    for name, measures in by_store.items():
        new, cpu, again = (max(values) for values in measures.values())
        goal = GOALS_MANY.get(name)
        goal_cells = ["", ""] if goal is None else [f"at least {goal:,}", verdict(new >= goal)]
        rows.append([name, f"{new:,.0f}", f"{1e6 / new:.0f}", f"{cpu:,.0f}", f"{again:,.0f}", *goal_cells])
    names = [
        f"`handle_many`, batches of {BATCH:,}, best of many rounds, per second",
        "new",
        "seconds per million",
        "per CPU second",
        "redelivered",
        "goal",
        "",
    ]
    print(table(names, rows) + "\n", flush=True)


def size(folder: Path) -> None:
    """Print the size of a SQLite file: of messages and of keys that it remembers, and of messages that it forgot."""
    number, rows = 100_000, []
    sizes = {
        "messages, remembered with their states": (1000, False),
        "messages, forgotten, their hashes kept": (1000, True),
        "keys, each with the state of one message": (number, False),
    }
    for name, (keys, is_forgotten) in sizes.items():
        path = folder / f"size{len(rows)}.db"
        store = SqliteStore(path)
        processor = Processor(store, count, list, clock=itertools.count(0, 1000).__next__)
        processor.handle_many(messages(0, number, keys=keys), batch=BATCH)
        if is_forgotten:
            store.forget(100_000_000_000)  # all but the last batch, whose outputs may not be published
        store._connection().execute("VACUUM")
        store.close()
        bytes_each = path.stat().st_size / number
        rows.append([name, f"{bytes_each:.0f}", f"{bytes_each:.0f}"])
    print(table(["in a SQLite file", "bytes each", "MB per million"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000, help="the longest history")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--postgres", help="the address of a server")
    arguments = parser.parse_args()
    print(f"{machine()}; medians of {arguments.rounds} alternating rounds\n", flush=True)
    with tempfile.TemporaryDirectory() as name, server(arguments.postgres) as address:
        folder = Path(name)
        bare(folder, arguments.rounds)
        many(stores(folder, address), arguments.rounds)
        growth(stores(folder, address), arguments.messages, arguments.rounds)
        size(folder)


if __name__ == "__main__":
    main()
