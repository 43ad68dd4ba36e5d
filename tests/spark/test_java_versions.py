"""One checkpoint, one table and one report, carried from one version of Java to the next."""

import json
import os
import subprocess
import sys

import pytest
from helpers.javas import javas
from helpers.servers import running_postgres
from helpers.vector_files import PROGRAMS

pytestmark = [pytest.mark.spark, pytest.mark.programs]
NEW = 24
"""The new rows of a turn."""


def test_what_one_java_has_stored_is_known_to_the_next(tmp_path):
    """Numbers whose text depends on Java have one content, also if a user goes back to the first Java."""
    homes = javas(tmp_path)
    if len(homes) < 2:
        pytest.skip("only one version of Java is installed")
    reports = []
    with running_postgres() as server:
        for turn, java in enumerate([*homes, next(iter(homes))]):
            command = [sys.executable, PROGRAMS / "on_java.py", tmp_path, str(turn), server]
            variables = {**os.environ, "JAVA_HOME": str(homes[java])}
            done = subprocess.run(command, env=variables, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[-2000:]
            result = json.loads(done.stdout.splitlines()[-1])
            reports.append(result.pop("report"))
            known = NEW * turn
            assert result == {
                "java": str(java),
                "labels": {"new": NEW, **({"duplicate": known, "conflict": 1} if turn else {})},
                "written": [False] * turn + [True],
                "rows": known + NEW,
                "upserted": {"inserted": NEW, "present": known, "conflicts": 0},
                "compared": {"error": 0, "warning": 0, "info": 0},
            }
    assert reports[0]["findings"]
    assert reports == reports[:1] * len(reports)
