"""`msgid audit` as a process, against a process with the queries that a person writes in DuckDB.

python bench/audit.py [--rows 500000] [--rounds 3] [--only csv compare] [--full]

The tables have 8 logs, named by two columns, with times; 0.01 % of the messages are lost, and 0.01 % are repeated. Both
sides run in turns, with one limit of memory and all cores. Each operation also runs on a tenth of the rows. With
``--full`` the tables have 5 million rows, one of Parquet has 50 million, and the goals are judged. The program fails if
a side finds other numbers of lost and repeated messages than the table has.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import NamedTuple

from audit_tables import Contents, make
from rounds import machine, table, table_row

BY_HAND = Path(__file__).with_name("audit_by_hand.py")
POSITION = 'topic, partition, "offset"'
COLUMNS = ["--source", "topic", "--source", "partition", "--offset", "offset", "--timestamp", "timestamp"]
DIGEST = """
import json, sys
from msgid.audit import digest
made = digest(sys.argv[1], source=["topic", "partition"], offset="offset", timestamp="timestamp")
print(json.dumps({"rows": sum(made["rows"].to_pylist())}))
"""
MILLION = 1_000_000
JUDGED = 4 * MILLION
"""The least rows of a table whose goals are judged: the start of a process is most of the time of a smaller one."""


class Work(NamedTuple):
    """An operation on a table.

    Attributes:
        name: Name in the table of results.
        form: Ending of the file.
        ids: The IDs of the table; see `audit_tables.make`.
        share: Share of the messages that are lost, and of those that are repeated.
        is_shuffled: Whether the rows are in random order.
        goal: Time of msgid over the time of the other side, at most; None without a goal.
        does: ``audit``, ``compare`` or ``digest``.
    """

    name: str
    form: str = "parquet"
    ids: str | None = None
    share: float = 1e-4
    is_shuffled: bool = False
    goal: float | None = None
    does: str = "audit"


WORKS = {
    "parquet": Work("positions, Parquet", goal=1.0),
    "csv": Work("positions, CSV", "csv", goal=0.9),
    "random": Work("random UUIDs, Parquet", ids="random", goal=1.2),
    "few": Work("IDs of 4 generators, Parquet", ids="few"),
    "unsuited": Work("8 IDs per generator, random order, 1 % faults", ids="many", share=0.01, is_shuffled=True),
    "compare": Work("compare of two sides, Parquet", does="compare"),
    "digest": Work("digest, Parquet", does="digest"),
}
SMALL = Work("positions, Parquet")
SMALL_ROWS = 1_000
SMALL_GOAL = 0.35
"""Seconds of the whole process for a small table, at most."""


class Run(NamedTuple):
    """A process that has ended: its seconds, those of the cores, its peak of memory, and the numbers it printed."""

    seconds: float
    of_cores: float
    memory: int
    numbers: dict[str, int]


class Measured(NamedTuple):
    """The runs of both sides on one table."""

    work: Work
    rows: int
    ours: list[Run]
    theirs: list[Run]

    @property
    def ratio(self) -> float:
        """The time of msgid over the time of the other side, by the fastest round of each."""
        return least(self.ours) / least(self.theirs)

    @property
    def ratio_of_cores(self) -> float:
        """The same of the time that the cores worked, which depends less on the load of the machine."""
        ours, theirs = (min(run.of_cores for run in runs) for runs in (self.ours, self.theirs))
        return ours / theirs

    @property
    def memory_ratio(self) -> float:
        """The same of memory."""
        return most_memory(self.ours) / most_memory(self.theirs)


def least(runs: list[Run]) -> float:
    """Return the seconds of the fastest run."""
    return min(run.seconds for run in runs)


def most_memory(runs: list[Run]) -> int:
    """Return the most bytes of memory that a run took."""
    return max(run.memory for run in runs)


def process(command: list[str], environment: dict[str, str]) -> Run:
    """Run a command to its end. The memory is that of this process alone.

    The parent stays small, because the system counts the memory of a parent as the least memory of its children.
    """
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=output, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{' '.join(command)} ended with status {child.returncode}")
        output.seek(0)
        of_cores = usage.ru_utime + usage.ru_stime
        return Run(seconds, of_cores, usage.ru_maxrss * 1_024, numbers_in(json.load(output)))


def numbers_in(printed: dict) -> dict[str, int]:
    """Return the numbers of rows, lost and repeated messages in a report of msgid, or as the other side prints them."""
    if "findings" not in printed:
        return printed

    def total(*checks: str) -> int:
        return sum(finding["count"] for finding in printed["findings"] if finding["check"] in checks)

    numbers = {"rows": printed["rows"], "lost": total("missing_offsets", "lost_messages")}
    of_ids, of_messages = total("duplicate_ids", "conflicting_ids"), total("duplicate_messages", "conflicting_messages")
    return {**numbers, "repeated": of_messages, "repeated_ids": of_ids}


def commands(work: Work, path: Path, sent: Path, memory: str, folder: Path) -> tuple[list[str], list[str]]:
    """Return the commands of msgid and of the other side."""
    limits = [*(["--memory", memory] if memory else []), "--temp-dir", str(folder), "--quiet"]
    python, by_hand = [sys.executable], [sys.executable, str(BY_HAND), work.does, str(path)]
    ends = [memory, str(folder)]
    if work.does == "digest":
        return [*python, "-c", DIGEST, str(path)], [*by_hand, *ends]
    audit = [*python, "-m", "msgid", "audit", str(path), *COLUMNS, *limits, "--json"]
    if work.does == "compare":
        return [*audit, "--id", "", "--sent", str(sent)], [*by_hand, str(sent), *ends]
    if work.form == "csv":
        audit += ["--timezone", "UTC"]
    return audit, [*by_hand, "id" if work.ids else POSITION, *ends]


def check(work: Work, table: Contents, run: Run) -> None:
    """End the program if a side finds other numbers than the table has."""
    numbers = run.numbers
    expected = {"rows": table.rows, "lost": table.lost, "repeated": table.repeated, "repeated_ids": table.repeated}
    if work.does == "compare":
        expected = {"lost": table.lost}
    if not work.ids:
        expected.pop("repeated_ids", None)
    different = {name: numbers[name] for name in expected if name in numbers and numbers[name] != expected[name]}
    if different or ("lost" not in numbers and work.does != "digest"):
        raise SystemExit(f"{work.name}: a side found {numbers}, and the table has {expected}")


def measured(work: Work, messages: int, rounds: int, memory: str, folder: Path) -> Measured:
    """Make a table, and run both sides on it in turns."""
    path, sent = folder / f"landed.{work.form}", folder / "sent.parquet"
    # Another process makes the table, so that this one stays small.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as makers:
        table = makers.submit(make, path, messages, work.ids, work.share, work.is_shuffled).result()
        if work.does == "compare":
            makers.submit(make, sent, messages, work.ids, 0.0).result()
    sides = commands(work, path, sent, memory, folder)
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    runs: tuple[list[Run], list[Run]] = ([], [])
    for _ in range(rounds):
        for side, command in zip(runs, sides, strict=True):
            side.append(process(command, environment))
            check(work, table, side[-1])
    for file in (path, sent):
        file.unlink(missing_ok=True)
    return Measured(work, table.rows, *runs)


HEADS = [
    "table", "rows", "msgid, s: least (median)", "s per million rows",
    "by hand, s: least (median)", "time", "goal", "time of the cores",
    "msgid, MB", "by hand, MB", "memory", "goal",
]  # fmt: skip


def shown(one: Measured) -> list[str]:
    """Return the cells of a table."""

    def seconds(runs: list[Run]) -> str:
        return f"{least(runs):.2f} ({median(run.seconds for run in runs):.2f})"

    def met(value: float, goal: float | None) -> str:
        if goal is None or one.rows < JUDGED:
            return ""
        return f"{goal}: {'met' if value <= goal else 'MISSED'}"

    has_goal = one.work.goal is not None
    return [
        one.work.name, f"{one.rows:,}", seconds(one.ours),
        f"{least(one.ours) / one.rows * MILLION:.2f}", seconds(one.theirs), f"{one.ratio:.2f}",
        met(one.ratio, one.work.goal), f"{one.ratio_of_cores:.2f}",
        f"{most_memory(one.ours) / 1e6:,.0f}", f"{most_memory(one.theirs) / 1e6:,.0f}", f"{one.memory_ratio:.2f}",
        met(one.memory_ratio, 1.0 if has_goal else None),
    ]  # fmt: skip


def grown(small: Measured, large: Measured) -> list[str]:
    """Return the cells of a table of growth: what a larger table takes, over what a smaller one takes."""
    return [
        large.work.name, f"{small.rows:,}", f"{large.rows:,}",
        *(f"{least(b) / least(a):.1f}" for a, b in ((small.ours, large.ours), (small.theirs, large.theirs))),
        *(f"{most_memory(b) / most_memory(a):.1f}"
          for a, b in ((small.ours, large.ours), (small.theirs, large.theirs))),
    ]  # fmt: skip


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=MILLION // 2, help="messages of a table")
    parser.add_argument("--full", action="store_true", help="5 million rows, and 50 million of Parquet")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each table")
    parser.add_argument("--only", nargs="+", choices=[*WORKS, "small"], default=[*WORKS, "small"])
    parser.add_argument("--memory", default="1430MiB", help="limit of both sides; an empty one leaves their own")
    arguments = parser.parse_args()
    rows = 5 * MILLION if arguments.full else arguments.rows
    print(f"{machine()}; {os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}; memory {arguments.memory}\n")
    print(table_row(HEADS), table_row(["---"] * len(HEADS)), sep="\n", flush=True)
    growth = []
    with tempfile.TemporaryDirectory() as folder:

        def row(work: Work, messages: int) -> Measured:
            one = measured(work, messages, arguments.rounds, arguments.memory, Path(folder))
            print(table_row(shown(one)), flush=True)
            return one

        if "small" in arguments.only:
            small = row(SMALL, SMALL_ROWS)
        for name in (name for name in WORKS if name in arguments.only):
            of_name = [row(WORKS[name], rows // 10), row(WORKS[name], rows)]
            if arguments.full and name == "parquet":
                of_name.append(row(WORKS[name], 10 * rows))
            growth += [grown(*of_name[index : index + 2]) for index in range(len(of_name) - 1)]
    if "small" in arguments.only:
        seconds = least(small.ours)
        met = "met" if seconds <= SMALL_GOAL else "MISSED"
        print(f"\naudit of {SMALL_ROWS:,} rows, whole process: {seconds:.2f} s (goal: at most {SMALL_GOAL}): {met}")
    heads = ["growth", "rows", "rows", "msgid: time, times", "by hand: time", "msgid: memory", "by hand: memory"]
    print("", table(heads, growth), f"\nload at the end: {os.getloadavg()[0]:.1f}", sep="\n")


if __name__ == "__main__":
    main()
