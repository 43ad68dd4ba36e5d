"""The options of the commands, as a user passes them."""

import io
import os
import sys
import warnings

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from spark_ext import _session, cli
from spark_ext._shipping import CoreNote
from spark_ext.cli import spark_ext
from spark_ext.jobs._input import InputWarning

pytestmark = pytest.mark.spark


def run(*arguments):
    return CliRunner().invoke(spark_ext, [str(argument) for argument in arguments])


REQUIRED = {"ids": ["--output", "o"], "messages": ["--output", "o"], "audit": []}


@pytest.mark.parametrize("command", REQUIRED)
def test_input_that_is_not_utf_8_is_refused(command):
    """The commands end with one line before Spark starts."""
    done = CliRunner().invoke(spark_ext, [command, os.fsdecode(b"M\xe4rz.csv"), *REQUIRED[command]])
    assert done.exit_code == 2
    assert r"a path must be UTF-8, got 'M\udce4rz.csv'" in done.output


POSITION = ["--source", "s", "--offset", "o", "--at", "t"]
WRONG_OPTIONS = [
    (["ids", "in.csv", "-o", "o", "--source", "s"], "need --source, --offset and --at"),
    (["ids", "in.csv", "-o", "o", "--timezone", "UTC"], "need --source, --offset and --at"),
    (["ids", "in.csv", "-o", "o", "--option", "sep"], "must be NAME=VALUE, got sep"),
    (
        ["ids", "in.csv", "-o", "o", *POSITION, "--timezone", "Mars/Olympus"],
        "--timezone must be a time zone, such as Europe/Berlin or +02:00, got 'Mars/Olympus'",
    ),
    (["messages", "in", "-o", "o", "--format", "kafak"], "must be one of iggy"),
    (
        ["messages", "in", "-o", "o", "--format", "kafka", "--policy", "enforce"],
        "policy 'enforce' needs a registry of schemas: pass registry",
    ),
    (["messages", "in", "-o", "o", "--format", "kafka", "--registry", "no.json"], "no schema registry no.json"),
    (["audit", "in.csv", "--without", "lost"], "without must name checks, got 'lost'"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG_OPTIONS)
def test_wrong_option_is_told_before_spark_starts(monkeypatch, arguments, words):
    """The last line names the option and the value; nothing is a traceback."""
    monkeypatch.setattr("spark_ext.cli.session", lambda **_: pytest.fail("Spark has started"))
    done = run(*arguments)
    assert done.exit_code in (1, 2)
    assert words in done.output.strip().splitlines()[-1]


@pytest.mark.parametrize("command", REQUIRED)
def test_each_command_has_quiet(monkeypatch, tmp_path, command):
    """It reaches the session, which is asked for once."""
    asked = []

    def session(*, quiet):
        asked.append(quiet)
        raise _session.NoJava

    monkeypatch.setattr(cli, "session", session)
    (tmp_path / "in.csv").write_text("id\n")
    more = {"ids": ["--output", "o"], "messages": ["--output", "o", "--format", "kafka"], "audit": []}[command]
    for option in ([], ["-q"], ["--quiet"]):
        run(command, tmp_path / "in.csv", *more, *option)
    assert asked == [False, True, True]


def test_quiet_shows_no_notes_and_the_warnings_of_the_input(capsys):
    """A warning says that the result may be wrong; a note says that it took longer."""
    for quiet in (False, True):
        with cli._one_line_errors("out", quiet=quiet):
            warnings.warn("the workers run pure Python", CoreNote, stacklevel=1)
            warnings.warn("a file is empty", InputWarning, stacklevel=1)
    shown = capsys.readouterr().err.splitlines()
    assert shown == ["Warning: the workers run pure Python", *2 * ["Warning: a file is empty"]]


@pytest.mark.parametrize("quiet", [False, True])
def test_quiet_turns_off_the_progress_of_a_new_session(monkeypatch, quiet):
    """A terminal gets Spark's progress bar; the settings of a session are chosen before it starts."""
    chosen = {}

    class Builder:
        def appName(self, name):
            return self

        def config(self, key, value):
            chosen[key] = value
            return self

        def getOrCreate(self):
            raise _session.NoJava

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(SparkSession, "builder", Builder())
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("JAVA_HOME", "/java")
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(_session.NoJava):
        _session.session(quiet=quiet)
    assert chosen["spark.ui.showConsoleProgress"] == str(not quiet).lower()
