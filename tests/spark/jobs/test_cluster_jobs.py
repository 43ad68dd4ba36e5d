"""The command line on a cluster, as far as one machine shows it: settings, signals and leftovers."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest
from click.testing import CliRunner
from pyspark.errors import PySparkException

from spark_ext import _session, cli
from spark_ext.cli import spark_ext

pytestmark = pytest.mark.spark

ID = "0156F7E71C361B21BC024CCDBE00000000"


def run(*arguments):
    return CliRunner().invoke(spark_ext, [str(argument) for argument in arguments])


def test_settings_of_the_cluster_are_kept(tmp_path, monkeypatch):
    """A builder would override them: the names in ``spark-defaults.conf`` are known in each of Java's spellings."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert _session.configured_settings() == set()
    lines = [
        "spark.master spark://host:7077",
        "  spark.ui.enabled=true",
        "# spark.no 1",
        "spark.a-b.c:  2",
        "other 3",
        "",
    ]
    (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
    assert _session.configured_settings() == {"spark.master", "spark.ui.enabled", "spark.a-b.c"}


def test_error_of_spark_is_one_line(spark, tmp_path, monkeypatch):
    """Spark's text has the plan and the stack of Java; the line has the reason."""
    from spark_ext.jobs import ids_job

    def fail(*_, **__):
        raise PySparkException("[STREAM_FAILED] Query terminated: no space left\n" + "Project [id#1]\n" * 5000)

    monkeypatch.setattr(ids_job, "run", fail)
    done = run("ids", tmp_path / "in.txt", "-o", tmp_path / "out")
    assert (done.exit_code, done.output.count("\n")) == (1, 1)
    assert "no space left" in done.output


@pytest.mark.programs
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_run_after_a_signal_succeeds(tmp_path, number):
    """A process that gets a signal while it writes leaves a folder like that of a run; ``--overwrite`` replaces it."""
    (tmp_path / "in.txt").write_text(f"{ID}\n" * 3_000_000)
    command = [sys.executable, "-m", "spark_ext", "ids", str(tmp_path / "in.txt"), "-o", str(tmp_path / "out")]
    left, end = tmp_path / "out" / "ids" / "_temporary", time.monotonic() + 180
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE) as job:
        while not left.exists():
            assert time.monotonic() < end
            assert job.poll() is None, job.stderr.read()
            time.sleep(0.05)
        job.send_signal(number)
        errors = job.stderr.read()
        job.wait(120)
    assert job.returncode == (-number if number == signal.SIGKILL else 130)
    assert number == signal.SIGKILL or errors.strip().endswith(b"Aborted!"), errors
    assert os.path.exists(left.parent)
    done = subprocess.run([*command, "--overwrite"], capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.programs
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["WARNING", "setLogLevel"], ids=["before the JVM answers", "after it"])
def test_signal_while_spark_starts_prints_no_traceback_and_leaves_no_process(tmp_path, moment, number):
    """Py4J logs each call that the signal ends, and a JVM without a connection does not see that Python has ended."""
    (tmp_path / "in.txt").write_text(f"{ID}\n")
    command = [sys.executable, "-m", "spark_ext", "ids", str(tmp_path / "in.txt"), "-o", str(tmp_path / "out")]
    errors, end = tmp_path / "errors", time.monotonic() + 120
    with errors.open("w") as out, subprocess.Popen(command, start_new_session=True, stderr=out) as job:
        while moment not in errors.read_text():
            assert time.monotonic() < end
            time.sleep(0.1)
        job.send_signal(number)
        job.wait(120)
    said = errors.read_text()
    assert job.returncode == 130
    assert "Traceback" not in said
    assert "Aborted!" in said
    end = time.monotonic() + 60
    while is_alive(job.pid):
        assert time.monotonic() < end
        time.sleep(0.1)


def is_alive(group):
    """Return whether a group has a process that has not ended."""
    for process in psutil.process_iter(["status"]):
        with suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                return True
    return False


def test_error_that_an_interrupt_has_caused_is_an_interrupt():
    """Python keeps the interrupt as the context of the error that Py4J raises for it."""
    caused = RuntimeError("Gateway must be connected")
    caused.__context__ = KeyboardInterrupt()
    assert cli._is_interrupt(caused)
    assert not cli._is_interrupt(RuntimeError("other"))
