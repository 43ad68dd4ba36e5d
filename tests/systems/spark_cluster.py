"""A standalone cluster of Spark on the loopback interface: a master and workers, with a Python of the workers' own.

Start the cluster with the fixture ``spark_cluster`` and run a driver as a process with `SparkCluster.submit` or
`SparkCluster.run`: its master and small sizes are in a ``spark-defaults.conf``, as on a cluster that somebody manages.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sysconfig
import time
import venv
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WORKERS = 3
START_SECONDS = 90
STOP_SECONDS = 20
EXECUTOR_PACKAGES = ("numpy", "pandas", "protobuf", "psutil", "getmac", "pyarrow", "python-dateutil", "pytz", "six",
                     "tzdata", "xxhash")  # fmt: skip
"""The packages of the workers' Python. It has neither msgid nor PySpark: executors take PySpark from Spark's folder."""
OTHER = {
    # Code that depends on the time zone or the locale of a worker gives other results there than on the driver.
    "TZ": "Asia/Kathmandu",
    "JAVA_TOOL_OPTIONS": "-Duser.language=de -Duser.country=DE",
    "LC_ALL": "C",
}
"""The environment of the workers."""
DEFAULTS = """\
spark.master {master}
spark.executor.cores 1
spark.executor.memory 600m
spark.driver.memory 600m
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.ui.enabled false
spark.ui.showConsoleProgress false
spark.log.level WARN
spark.sql.shuffle.partitions 3
spark.default.parallelism 3
spark.python.authenticate.socketTimeout 120s
spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.executor.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
"""


def java_or_skip() -> None:
    """Skip the test if Java or PySpark is missing."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("the cluster of Spark needs Java")


def spark_home() -> Path:
    """Return the folder of the Spark that PySpark brings."""
    import pyspark

    return Path(pyspark.__file__).parent


def make_python(folder: Path, packages: Iterable[str] = EXECUTOR_PACKAGES) -> Path:
    """Create a virtual environment with links to some installed packages; return its interpreter."""
    venv.create(folder, symlinks=True)
    scheme = {"base": str(folder), "platbase": str(folder)}
    target = Path(sysconfig.get_path("purelib", "venv", scheme))
    for package in packages:
        found = metadata.distribution(package)
        for name in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (target / name).exists():
                (target / name).symlink_to(found.locate_file(name))
    return folder / "bin" / "python3"


class Daemon:
    """A process of the cluster that can be killed, paused and started again."""

    def __init__(self, command: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
        self._command, self.folder, self._environment = list(command), folder, environment
        self.folder.mkdir(parents=True, exist_ok=True)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The ID of the process; None if it does not run."""
        running = self._process is not None and self._process.poll() is None
        return self._process.pid if running and self._process is not None else None

    @property
    def output(self) -> str:
        """The text that the process has printed since its last start."""
        return (self.folder / "output").read_text(errors="replace")

    def start(self) -> None:
        """Start the process; `wait_for` waits until it is ready."""
        with (self.folder / "output").open("wb") as output:
            self._process = subprocess.Popen(
                self._command, stdout=output, stderr=output, cwd=self.folder, env=self._environment
            )

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Return the first match of a regular expression in the output."""
        end = time.monotonic() + START_SECONDS
        while (found := re.search(pattern, self.output)) is None:
            if time.monotonic() > end or self.pid is None:
                raise AssertionError(f"{self.folder.name} is not ready:\n{self.output[-2000:]}")
            time.sleep(0.1)
        return found

    def signal(self, number: int) -> None:
        """Send a signal, if the process runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End the process with SIGKILL."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(STOP_SECONDS)

    def stop(self) -> None:
        """End the process with SIGTERM, or with SIGKILL if it goes on for some seconds."""
        self.signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self._process is not None:
                self._process.wait(STOP_SECONDS)
        self.kill()


class SparkCluster:
    """A master and three workers of one core each, which keep their state when they are killed and started again.

    Args:
        folder: An empty folder. Each worker has a folder of its own in it, in which its executors run.
        packages: The packages of the workers' Python.
        within: A command that runs the commands of the cluster, such as that of a `SmallDisk`.
    """

    def __init__(
        self, folder: Path, packages: Iterable[str] = EXECUTOR_PACKAGES, *, within: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        self._within = list(within)
        self.python = make_python(folder / "python", packages)
        """The interpreter of the workers: ``python3`` of their path."""
        self.configuration = folder / "conf"
        self.configuration.mkdir()
        spark = str(spark_home() / "bin" / "spark-class")
        state = f"-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory={folder / 'state'}"
        daemons = {
            **_without_spark(),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "192m",
            "SPARK_DAEMON_JAVA_OPTS": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {state}",
            "SPARK_HOME": str(spark_home()),
            "SPARK_CONF_DIR": str(folder / "daemons"),
        }
        (folder / "daemons").mkdir()
        self._spark, self._environment = spark, daemons
        self.unshared = folder / "unshared"
        """A folder that the last worker does not share with the driver, if `hides_folder`."""
        self.hides_folder = False
        self.master: Daemon
        self.url = ""
        self.workers: list[Daemon] = []

    def start(self, workers: int = WORKERS) -> None:
        """Start the cluster, and wait until the workers are registered."""
        name = "org.apache.spark.deploy.master.Master"
        first = Daemon(self._master(name, 0), self.folder / "master", self._environment)
        first.start()
        self.url = first.wait_for(r"Starting Spark master at (spark://\S+)")[1]
        self.master = first
        # A master that is started again must have the port that its workers know.
        self.master._command = self._master(name, int(self.url.rpartition(":")[2]))
        (self.configuration / "spark-defaults.conf").write_text(DEFAULTS.format(master=self.url))
        for number in range(workers - 1):
            self.add_worker(f"worker-{number}")
        self.add_worker(f"worker-{workers - 1}", before=self._without_the_folder())
        for worker in self.workers:
            worker.wait_for("Successfully registered with master")

    def _master(self, name: str, port: int) -> list[str]:
        return [*self._within, self._spark, name, "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]

    def add_worker(self, name: str, *, before: Sequence[str] = ()) -> Daemon:
        """Start one more worker; ``before`` is a command that runs its command, such as ``unshare --mount``."""
        folder = self.folder / name
        command = [self._spark, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--port", "0"]
        sizes = ["--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work")]
        path = os.pathsep.join((str(self.python.parent), self._environment["PATH"]))
        environment = {**self._environment, **OTHER, "PATH": path}
        worker = Daemon([*self._within, *before, *command, *sizes, self.url], folder, environment)
        worker.start()
        self.workers.append(worker)
        return worker

    def _without_the_folder(self) -> list[str]:
        """Return a command before another one, for which the folder `unshared` is a folder of its own."""
        private = self.folder / "private"
        for folder in (self.unshared, private):
            folder.mkdir()
        mount = f'mount --bind {private} {self.unshared} && exec "$@"'
        for options in (["--mount"], ["--mount", "--map-root-user"]):
            before = ["unshare", *options, "sh", "-c", mount, "sh"]
            with contextlib.suppress(OSError):
                if subprocess.run([*before, "true"], capture_output=True, timeout=30, check=False).returncode == 0:
                    self.hides_folder = True
                    return before
        return []

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a driver: an activated virtual environment with the packages of these tests."""
        path = os.pathsep.join((sysconfig.get_path("scripts"), self._environment["PATH"]))
        return {
            **_without_spark(),
            "PATH": path,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_CONF_DIR": str(self.configuration),
            "TZ": "America/New_York",
        }

    def run(
        self, command: Sequence[str], *, cwd: Path, timeout: float = 240, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of a driver to its end, and return its output; variables are added to its environment."""
        driver = subprocess.Popen(
            list(command),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env={**self.environment, **environment},
            start_new_session=True,
        )
        try:
            output, errors = driver.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            _kill_group(driver)
            output, errors = driver.communicate()
            raise AssertionError(f"{command} did not end:\n{output[-2000:]}\n{errors[-4000:]}") from None
        return subprocess.CompletedProcess(list(command), driver.returncode, output, errors)

    def submit(
        self, *arguments: str, cwd: Path, timeout: float = 240, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run ``spark-submit`` with arguments."""
        return self.run(["spark-submit", *arguments], cwd=cwd, timeout=timeout, **environment)

    def executors(self) -> dict[int, str]:
        """Return the running executors: the ID of each process, and the name of its worker."""
        found = {}
        for worker in self.workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                for process in psutil.Process(worker.pid).children(recursive=True) if worker.pid else ():
                    if any("CoarseGrainedExecutorBackend" in part for part in _command_line(process)):
                        found[process.pid] = worker.folder.name
        return found

    def stop(self) -> None:
        """End all processes of the cluster."""
        executors = self.executors()
        for daemon in (*self.workers, self.master):
            daemon.signal(signal.SIGCONT)
            daemon.kill()
        for pid in executors:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class SmallDisk:
    """A disk of its own in memory, which the processes that `command` starts see in a folder; the test skips without.

    As a target of faults, the disk is full from ``kill``, ``stop`` or SIGSTOP on, until ``start`` or SIGCONT.
    """

    def __init__(self, folder: Path, size: str = "64m") -> None:
        self.folder = folder
        mount = f"mount -t tmpfs -o size={size} none {folder} && echo up && exec sleep infinity"
        for options, entered in (([], []), (["--map-root-user"], ["--user", "--preserve-credentials"])):
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", "unshare", "--mount", *options, "sh", "-c", mount],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            assert self._process.stdout is not None
            if self._process.stdout.readline():
                self.command = ["nsenter", f"--target={self._process.pid}", "--mount", *entered]
                return
        pytest.skip("a disk of its own needs the right to mount")

    def _run(self, script: str) -> None:
        subprocess.run([*self.command, "sh", "-c", script], check=False, capture_output=True, timeout=60)

    def kill(self) -> None:
        """Fill the disk."""
        self._run(f"cat /dev/zero > {self.folder}/ballast")

    stop = kill

    def start(self) -> None:
        """Free the disk."""
        self._run(f"rm -f {self.folder}/ballast")

    def signal(self, number: int) -> None:
        """Fill the disk, or free it."""
        self.kill() if number == signal.SIGSTOP else self.start()

    def end(self) -> None:
        """Remove the disk."""
        self._process.kill()
        self._process.wait()


def _without_spark() -> dict[str, str]:
    """Return the environment of this process without what other tests have set for Spark and Python."""
    foreign = ("SPARK_", "PYSPARK_", "PYTHONPATH", "MSGID_", "JAVA_TOOL_OPTIONS", "LC_", "TZ")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _kill_group(process: subprocess.Popen[Any]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
