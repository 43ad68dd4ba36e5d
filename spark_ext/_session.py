"""The Spark session of the command line: the active session, or a local session."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_ext._compat import WHOLE, needs
from spark_ext._private import use_own_python
from spark_ext.streaming._state_store import PROVIDER, ROCKSDB

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTING: Final = re.compile(r"\s*(spark\.[\w.-]+)[\s=:]")
"""A line of ``spark-defaults.conf``, which is a file of Java properties."""


class NoJava(RuntimeError):
    """Spark needs Java, and Java was not found."""

    def __init__(self) -> None:
        super().__init__(
            "Spark needs Java 17 or 21, and Java was not found: install it (Debian and Ubuntu: apt-get install "
            "openjdk-17-jre-headless; macOS: brew install openjdk@17), or set JAVA_HOME to its folder"
        )


def session(*, quiet: bool = False) -> SparkSession:
    """Return the session of ``spark-submit`` or ``SPARK_REMOTE``, or else one with the master of Spark's configuration.

    Without a master in ``spark-defaults.conf``, the session has all cores of this machine. Its state store is RocksDB.

    Args:
        quiet: Whether a new session does not show Spark's progress bar, which only a terminal gets.

    Raises:
        NoJava: if a local session is needed and Java is missing.
        NotImplementedError: if PySpark is older than 4.0.
    """
    from pyspark.sql import SparkSession

    needs("the command line", WHOLE)
    builder = SparkSession.builder.appName("msgid")
    is_new = SparkSession.getActiveSession() is None
    if "SPARK_REMOTE" not in os.environ and is_new:
        if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
            raise NoJava
        if "PYSPARK_GATEWAY_PORT" not in os.environ:  # otherwise spark-submit has set these
            logging = Path(__file__).with_name("log4j2.properties").as_uri()
            wanted = {
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "true" if sys.stderr.isatty() and not quiet else "false",
                "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging}",
                # Each call of a function would tell the JVM its line of Python: half of the time to build a plan.
                "spark.python.sql.dataFrameDebugging.enabled": "false",
            }
            # Without a master, Spark takes that of its configuration, or all cores of this machine.
            for key in wanted.keys() - configured_settings():
                builder = builder.config(key, wanted[key])
    try:
        spark = builder.getOrCreate()
    except KeyboardInterrupt:
        _kill_children()
        raise
    use_own_python(spark)
    if is_new and "RocksDB" not in (spark.conf.get(PROVIDER, None) or ""):
        spark.conf.set(PROVIDER, ROCKSDB)  # for the stateful functions
    return spark


def _kill_children() -> None:
    """Kill the JVM: one that PySpark has not connected to yet would stay for ever."""
    import psutil

    for child in psutil.Process().children(recursive=True):
        child.kill()


def configured_settings() -> set[str]:
    """Return the names of the settings in ``spark-defaults.conf``, which a builder would override."""
    import pyspark

    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    folder = Path(os.environ.get("SPARK_CONF_DIR") or Path(home) / "conf")
    try:
        lines = (folder / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except OSError:
        return set()
    matches = (_SETTING.match(line) for line in lines)
    return {match[1] for match in matches if match}
