"""PySpark 4.1 with the JAR files of Delta and Iceberg, as an environment for processes that the tests start.

No JAR of Delta or Iceberg is published for the newest PySpark. So a folder with PySpark 4.1 stands before the packages
of this environment, and `spark-defaults.conf` has the settings that the documentation of both formats names. Each
process with this environment starts Spark as a user of such a cluster does, without settings of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from systems.maven import CACHE, class_path

PYSPARK = "pyspark==4.1.*"
DELTA = "io.delta:delta-spark_4.1_2.13:4.3.1"
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
SQLITE = "org.xerial:sqlite-jdbc:3.50.3.0"
"""A database for Iceberg's JDBC catalog."""
OWN = ("delta-", "iceberg-", "sqlite-", "unitycatalog-")
"""The JAR files that Spark lacks; it has the others in versions of its own."""
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",  # 50 by default: each look at a small table has as many tasks
    "spark.driver.memory": "1g",
}
INSTALL_SECONDS, TEST_SECONDS, NIGHT_SECONDS = 900, 900, 7200


class Lakehouse:
    """The environment of processes that run PySpark 4.1 with both JAR files.

    Args:
        folder: An empty folder for the settings and the tables of Spark's catalog.
        options: Options of pytest for all tests.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        found = Path(class_path("lakehouse", [DELTA, ICEBERG, SQLITE])).parent.glob("*.jar")
        jars = ":".join(sorted(str(jar) for jar in found if jar.name.startswith(OWN)))
        settings = {**SETTINGS, "spark.driver.extraClassPath": jars, "spark.executor.extraClassPath": jars}
        settings["spark.sql.warehouse.dir"] = str(folder / "warehouse")
        lines = "".join(f"{key} {value}\n" for key, value in settings.items())
        (folder / "spark-defaults.conf").write_text(lines, encoding="utf-8")
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(_installed(PYSPARK)),
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
