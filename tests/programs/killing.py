"""Kill a process with streaming queries: each query stops at a step, and then the process is killed.

A JVM takes longer to start than a query. So a process runs many queries, one after another, and each goes on to the
step that was chosen for it and waits there. Then the process and its JVM are killed.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession

_PATIENCE = 120


def session(master):
    """Create a session that starts quickly, whose workers find the modules that this process finds."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "1")
    # The process lives for seconds, so Java compiles quickly and without optimization.
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    builder = builder.config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    return builder.config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path))


class Steps:
    """The steps of one query: it stops at the step ``at`` until the process is killed.

    A step of the driver is named with its number, ``rename 1``; a step of a worker without one.
    """

    running = None
    """The steps of the query that was started last; earlier queries have stopped or ended."""

    def __init__(self, folder, at):
        self.folder, self.at = Path(folder), at
        self._counts = {}
        Steps.running = self
        for name in ("stand", "stands"):
            (self.folder / name).unlink(missing_ok=True)
        if at is not None:
            (self.folder / "stand").write_text(at)

    @property
    def stands(self):
        return (self.folder / "stands").exists()

    def step(self, name):
        """Make a step in the driver."""
        self._counts[name] = self._counts.get(name, 0) + 1
        if f"{name} {self._counts[name]}" == self.at:
            (self.folder / "stands").touch()
            threading.Event().wait()


def step_around(module, before, name, after):
    """Add a step before and after a function of a module in the running query."""
    function = getattr(module, name)

    def stepped(*arguments):
        Steps.running.step(before)
        value = function(*arguments)
        Steps.running.step(after)
        return value

    setattr(module, name, stepped)


def worker_step(folder, name):
    """Make a step in a Python worker, which ends with its parent."""
    stand = Path(folder) / "stand"
    if stand.exists() and stand.read_text() == name:
        (Path(folder) / "stands").touch()
        parent = os.getppid()
        while os.getppid() == parent:
            time.sleep(0.1)
        os._exit(1)


def once(mark):
    """Return True for the first process that creates the file of a mark."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def end_executor(delay=0.0):
    """End the executor that this worker belongs to, at once or after seconds, while it goes on."""
    with open(f"/proc/{os.getppid()}/stat") as stat:  # the daemon of workers
        executor = int(stat.read().rsplit(")", 1)[1].split()[1])
    if delay:
        subprocess.Popen(["sh", "-c", f"sleep {delay}; kill -9 {executor}"])
    else:
        os.kill(executor, signal.SIGKILL)


def meet(folder, name, who, count=2):
    """Wait until ``count`` processes have reached a step."""
    (Path(folder) / f"{name}-met-by-{who}").touch()
    end = time.monotonic() + _PATIENCE
    while len(list(Path(folder).glob(f"{name}-met-by-*"))) < count:
        if time.monotonic() > end:
            raise TimeoutError(f"nobody came to {name}")
        time.sleep(0.01)


def run_until_killed(spark, plan, start):
    """Run the queries that ``start(name, at)`` returns with their steps, and kill all if one stands at its step.

    A query without a step runs to its end.
    """
    standing = 0
    for name, at in plan.items():
        query, steps = start(name, at)
        while query.isActive and not steps.stands:
            time.sleep(0.02)
        if query.exception() is not None:
            raise query.exception()
        if at is not None and not steps.stands:
            raise AssertionError(f"the query {name} has ended and has not come to the step {at!r}")
        standing += steps.stands
    if standing:
        os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    spark.stop()
