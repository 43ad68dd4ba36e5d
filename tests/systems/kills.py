"""Kill workers, drivers and the PostgreSQL server for a time, and compare each result with the exact one.

    PYTHONPATH=tests:tests/programs python -m systems.kills --seconds 3600

Workers handle messages on SQLite and on PostgreSQL. A driver of Spark writes files to PostgreSQL, Delta and Parquet. At
random times, a worker is killed or paused, or a second worker gets its partition; the driver, its JVM or its Python
workers are killed in a batch; the server or one of its sessions is killed, or all sessions are ended. Each program that
has ended starts again. At the end, each message has changed its state once and in order, and each table has its rows.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from helpers.servers import PostgresServer
from systems import kill_programs as programs
from systems.faults import Program

STORES = {"sqlite": ("s0", "s1"), "postgres": ("p0", "p1")}
"""The partitions of each store."""
RATE = 20
"""Messages per second of a partition."""
FILE_EVERY = 10
"""Seconds between two files for the queries."""
WORKER_EVERY, SERVER_EVERY, DRIVER_EVERY = (1, 4), (25, 70), (20, 60)
"""Seconds between two faults, at least and at most; those of the driver begin when it writes."""
_DONE = 1800
"""Seconds to handle the rest without faults."""
_GONE = (
    "connection|closed|terminat|shut|starting up|recovery|not yet accepting|server|Broken pipe|EOF|SSL SYSCALL|reset"
)
EXPECTED = {
    "OperationalError": f"{_GONE}|database is locked|states.db",
    "AdminShutdown": "",
    "CrashShutdown": "",
    "CannotConnectNow": "",
    "InterfaceError": "",
    "IdleInTransactionSessionTimeout": "",
    "LockNotAvailable": "",
    "BatchFailed": "the handler fails",
    "ConnectionError": "the handler fails",
    "StreamingQueryException": rf"PostgresError.*({_GONE})|Python worker exited|Py4J|Connection reset|Broken pipe"
    r"|Stream closed|SparkContext",
}
"""The errors that faults may cause, and what their text has."""


class Kills:
    """The programs, and the faults that befell them."""

    def __init__(self, folder, seed):
        self.folder, self.chance, self.faults = folder, random.Random(seed), Counter()
        self.server = PostgresServer()
        self.server.create()
        self.server.start()
        self.address = self.server.address
        (folder / "in").mkdir()
        self.workers = {}
        """Two places for workers of each partition; the second one has a worker at times."""
        for kind, partitions in STORES.items():
            for partition in partitions:
                for place in range(2):
                    self.workers[partition, place] = self.program(f"work-{partition}-{place}", kind, partition)
        self.driver = self.program("land")
        self.paused = {}
        """The time at which a paused process goes on, by its pid."""
        self.files, self.server_at, self.seen = 0, 0, 0

    def program(self, name, *arguments):
        what = ["land"] if name == "land" else ["work"]
        command = [sys.executable, "-m", "systems.kill_programs", *what, str(self.folder)]
        command += [self.address] if name == "land" else [arguments[0], self.address, arguments[1]]
        return Program(command, self.folder / f"{name}.log", PYSPARK_PYTHON=sys.executable)

    def note(self, fault):
        self.faults[fault] += 1
        print(f"{time.strftime('%H:%M:%S')} {fault}", flush=True)

    def tend(self):
        """Start each program that has ended, and let paused processes go on."""
        now = time.monotonic()
        for pid, end in list(self.paused.items()):
            if now > end:
                del self.paused[pid]
                _signal(pid, signal.SIGCONT)
        for (_, place), worker in self.workers.items():
            if place == 0:
                worker.start()
        self.driver.start()
        if self.server_at and now > self.server_at:
            try:
                self.server.start()
                self.server_at = 0
            except subprocess.CalledProcessError:  # a process of the killed server has not ended yet
                self.server_at = now + 0.5

    def worker_fault(self):
        name = self.chance.choice(list(self.workers))
        worker, fault = self.workers[name], self.chance.choice(["kill", "kill", "kill", "pause", "second worker"])
        if fault == "second worker":
            if self.workers[name[0], 1].is_alive:
                return
            self.workers[name[0], 1].start()
        elif not worker.is_alive:
            return
        elif fault == "kill":
            worker.kill()
        else:
            self.pause(worker._process.pid)
        self.note(f"{fault} {name[0]}")

    def pause(self, pid):
        if _signal(pid, signal.SIGSTOP):
            self.paused[pid] = time.monotonic() + self.chance.uniform(0.5, 9)

    def server_fault(self):
        fault = self.chance.choice(
            ["postmaster", "postmaster", "session", "immediate", "fast", "all sessions", "pause"]
        )
        if self.server_at:
            return
        pid_file = self.server.data / "postmaster.pid"
        if fault == "postmaster":
            _signal(int(pid_file.read_text().split()[0]), signal.SIGKILL)
        elif fault in ("immediate", "fast"):
            self.server.control("-m", fault, "stop")
        else:
            self.session_fault(fault)
            return
        self.server_at = time.monotonic() + self.chance.choice([0, 1, 4, 15])
        self.note(f"server: {fault}")

    def session_fault(self, fault):
        import psycopg

        try:
            with psycopg.connect(self.address, autocommit=True, connect_timeout=5) as connection:
                asked = "SELECT pid, query FROM pg_stat_activity WHERE backend_type = 'client backend'"
                asked += " AND pid <> pg_backend_pid() ORDER BY state = 'idle', random()"
                sessions = connection.execute(asked).fetchall()
                if fault == "all sessions":
                    connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM unnest(%s) pid", [[p for p, _ in sessions]]
                    )
                elif sessions and fault == "session":  # the server ends all sessions, and recovers
                    _signal(sessions[0][0], signal.SIGKILL)
                elif sessions:
                    self.pause(sessions[0][0])
                self.note(f"server: {fault}")
        except psycopg.OperationalError:
            pass

    def driver_fault(self):
        """Kill the driver, its JVM or its Python workers shortly after a batch has begun."""
        written = [one.stat().st_mtime for one in self.folder.glob("writing-*")]
        if not self.driver.is_alive or max(written, default=0) <= self.seen:
            return False
        self.seen = max(written)
        time.sleep(self.chance.uniform(0, 1.2))
        pid, fault = self.driver._process.pid, self.chance.choice(["driver", "driver", "JVM", "Python workers"])
        if fault == "driver":
            self.driver.kill()
        else:
            children = _children(pid)
            java = [one for one in children if _command(one).startswith("java") or "/java" in _command(one)]
            chosen = (
                java if fault == "JVM" else [one for one in children if "pyspark" in _command(one) and one not in java]
            )
            for one in chosen:
                _signal(one, signal.SIGKILL)
            if not chosen:
                return False
        self.note(f"sinks: {fault}")
        return True

    def put_file(self):
        number = self.files
        programs.replace(
            self.folder / f"{number:06}.json", "".join(f"{json.dumps(row)}\n" for row in programs.rows_of_file(number))
        )
        (self.folder / f"{number:06}.json").rename(self.folder / "in" / f"{number:06}.json")
        self.files += 1

    def run(self, seconds):
        """Let the faults happen for a time."""
        start = time.monotonic()
        due = {"worker": start + 3, "server": start + 15, "driver": start + 20}
        every = {"worker": WORKER_EVERY, "server": SERVER_EVERY, "driver": DRIVER_EVERY}
        while (now := time.monotonic()) < start + seconds:
            self.tend()
            programs.replace(self.folder / "limit", str(int((now - start) * RATE)))
            if self.files <= (now - start) / FILE_EVERY:
                self.put_file()
            for what, at in due.items():
                if now > at and getattr(self, f"{what}_fault")() is not False:
                    due[what] = now + self.chance.uniform(*every[what])
            time.sleep(0.05)

    def finish(self):
        """Run everything to its end without faults."""
        for pid in self.paused:
            _signal(pid, signal.SIGCONT)
        self.paused.clear()
        self.driver.kill()
        (self.folder / "over").touch()
        end, ended = time.monotonic() + _DONE, set()
        while len(ended) < len(self.workers) + 1:
            assert time.monotonic() < end, f"only {ended} have ended"
            self.tend_server()
            for name, program in {**self.workers, "driver": self.driver}.items():
                if name not in ended and program.wait(0) == 0:
                    ended.add(name)
                elif name not in ended:
                    program.start()
            time.sleep(0.2)

    def tend_server(self):
        if self.server_at:
            self.server_at = 0.001
            try:
                self.server.start()
                self.server_at = 0
            except subprocess.CalledProcessError:
                time.sleep(0.5)

    def judge(self):
        """Compare the results with the exact ones, and print their numbers."""
        errors = self.folder / "errors.jsonl"
        found, odd = Counter(), []
        for line in errors.read_text().splitlines() if errors.exists() else ():
            who, kind, text = json.loads(line)
            found[kind] += 1
            if kind not in EXPECTED or not re.search(EXPECTED[kind], text):
                odd.append(f"{who}: {kind}: {text[:2000]}")
        print(f"faults: {dict(sorted(self.faults.items()))}")
        print(f"errors of programs: {dict(found)}", flush=True)
        for kind, partitions in STORES.items():
            print(kind, programs.judge_store(self.folder, kind, self.address, partitions), flush=True)
        print("sinks", programs.judge_sinks(self.folder, self.address, self.files), flush=True)
        assert not odd, "unexpected errors:\n" + "\n".join(odd)

    def close(self):
        for program in (*self.workers.values(), self.driver):
            program.kill()
        self.server.remove()


def _signal(pid, number):
    """Send a signal; return whether the process was there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def _children(pid):
    """Return all processes below a process."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    below, found = {pid}, []
    while new := [one for one, parent in parents.items() if parent in below and one not in below]:
        below.update(new)
        found += new
    return found


def run(seconds, seed, folder):
    """Run the programs with faults for a time; raise AssertionError if a result is not exact."""
    kills = Kills(folder, seed)
    try:
        kills.run(seconds)
        kills.finish()
        kills.judge()
    finally:
        kills.close()


def main():
    parser = argparse.ArgumentParser(prog="python -m systems.kills", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600, help="the time with faults; default: 3600")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--folder", type=Path, help="an empty folder, which stays; default: a temporary one")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the programs and the server end, too
    print(f"--seed {arguments.seed}", flush=True)
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="msgid-kills-"))
    run(arguments.seconds, arguments.seed, folder)
    if arguments.folder is None:
        shutil.rmtree(folder)
    print("each result is exact", flush=True)


if __name__ == "__main__":
    main()
