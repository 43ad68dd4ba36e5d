"""The Spark session of the command line: the active session, or a local session."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from spark_ext._compat import WHOLE, needs
from spark_ext.streaming._state_store import PROVIDER, ROCKSDB

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class NoJava(RuntimeError):
    """Spark needs Java, and Java was not found."""

    def __init__(self) -> None:
        super().__init__(
            "Spark needs Java 17 or 21, and Java was not found: install it (Debian and Ubuntu: apt-get install "
            "openjdk-17-jre-headless; macOS: brew install openjdk@17), or set JAVA_HOME to its folder"
        )


def session(*, bar: bool = True) -> SparkSession:
    """Return the session of ``spark-submit`` or ``SPARK_REMOTE``, or else a session on all cores of this machine.

    Args:
        bar: Whether Spark shows its own progress bar on a terminal.

    Raises:
        NoJava: if a local session is needed and Java is missing.
        NotImplementedError: if PySpark is older than 4.0.
    """
    from pyspark.sql import SparkSession

    needs("the command line", WHOLE)
    builder = SparkSession.builder.appName("msgid")
    if "SPARK_REMOTE" not in os.environ and SparkSession.getActiveSession() is None:
        if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
            raise NoJava
        if "PYSPARK_GATEWAY_PORT" not in os.environ:  # otherwise spark-submit has set these
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers need msgid too
            quiet = Path(__file__).with_name("log4j2.properties").as_uri()
            defaults = {
                "spark.master": "local[*]",
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": str(bar and sys.stderr.isatty()).lower(),  # Spark's own progress bar
                PROVIDER: ROCKSDB,  # for the stateful functions
                "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}",
            }
            for key, value in defaults.items():
                builder = builder.config(key, value)
    return builder.getOrCreate()
