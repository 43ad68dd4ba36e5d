"""PySpark with the JAR file of Delta or Iceberg, as an environment for processes that the tests start.

Neither JAR is published for the newest PySpark. So a folder with the newest PySpark that a JAR supports stands before
the packages of this environment, and `spark-defaults.conf` has the settings that the documentation of the format names.
Each process with this environment starts Spark as a user of such a cluster does, without settings of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from systems.maven import CACHE, class_path

SQLITE = "org.xerial:sqlite-jdbc:3.50.3.0"
"""A database for Iceberg's JDBC catalog."""


class Lake(NamedTuple):
    """A format, with the newest JAR file and the newest PySpark that the JAR supports."""

    name: str
    pyspark: str
    artifacts: tuple[str, ...]
    settings: dict[str, str]


DELTA = Lake(
    "delta",
    "pyspark==4.2.*",
    ("io.delta:delta-spark_4.2_2.13:4.4.0",),
    {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # 50 by default: each look at a small table has as many tasks
        "spark.databricks.delta.snapshotPartitions": "2",
    },
)
ICEBERG = Lake(
    "iceberg",
    "pyspark==4.1.*",
    ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", SQLITE),
    {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
)
OWN = ("delta-", "iceberg-", "sqlite-", "unitycatalog-")
"""The JAR files that Spark lacks; it has the others in versions of its own."""
INSTALL_SECONDS, TEST_SECONDS, NIGHT_SECONDS = 900, 900, 7200


class Lakehouse:
    """The environment of processes that run PySpark with the JAR file of a format.

    Args:
        lake: The format.
        folder: An empty folder for the settings and the tables of Spark's catalog.
        options: Options of pytest for all tests.
    """

    def __init__(self, lake: Lake, folder: Path, *options: str) -> None:
        found = Path(class_path(f"lakehouse-{lake.name}", [*lake.artifacts])).parent.glob("*.jar")
        jars = ":".join(sorted(str(jar) for jar in found if jar.name.startswith(OWN)))
        settings = {**lake.settings, "spark.driver.extraClassPath": jars, "spark.executor.extraClassPath": jars}
        settings |= {"spark.driver.memory": "1g", "spark.sql.warehouse.dir": str(folder / "warehouse")}
        lines = "".join(f"{key} {value}\n" for key, value in settings.items())
        (folder / "spark-defaults.conf").write_text(lines, encoding="utf-8")
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(_installed(lake.pyspark)),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_CONF_DIR": str(folder),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "LAKEHOUSE": "1",
        }
        for name in ("SPARK_HOME", "PYSPARK_SUBMIT_ARGS"):  # of another session of this process
            self.environment.pop(name, None)
        self._folder, self._options = folder, options

    def run_tests(self, *arguments: str) -> None:
        """Run tests in a process of this environment; a failure has its output, which is shown at once after ``-s``.

        Relative paths, which guides have, are in the folder of the environment.
        """
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *self._options, *arguments]
        shown = "-s" in arguments
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self._folder,
            capture_output=not shown,
            text=True,
            timeout=NIGHT_SECONDS if shown else TEST_SECONDS,
        )
        print(done.stdout or "")
        if done.returncode:
            pytest.fail(f"{done.stdout}\n{(done.stderr or '')[-2000:]}", pytrace=False)


def _installed(requirement: str) -> Path:
    """Return a folder into which pip has installed a package with its requirements; skip the test if pip cannot."""
    folder = CACHE / requirement.replace("==", "-").rstrip(".*")
    if not folder.exists():
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--target", str(part), requirement]
        got = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        if got.returncode:
            pytest.skip(f"pip cannot install {requirement}: {got.stderr.strip()[:200]}")
        part.rename(folder)  # last, so that an installation that was cut off is done again
    return folder
