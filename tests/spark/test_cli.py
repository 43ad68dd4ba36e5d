"""The options of the commands, as a user passes them."""

import os

import pytest
from click.testing import CliRunner

from spark_ext.cli import spark_ext

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
