"""Iceberg's REST catalog on the loopback interface: its servlet from Iceberg's tests, in Jetty, over SQLite."""

from __future__ import annotations

import subprocess
from pathlib import Path

from systems.lakehouse import SQLITE
from systems.maven import class_path

ARTIFACTS = [
    "org.apache.iceberg:iceberg-core:1.11.0",
    "org.apache.iceberg:iceberg-core:1.11.0:tests",
    "org.eclipse.jetty.ee10:jetty-ee10-servlet:12.1.14",
    "org.apache.hadoop:hadoop-client-runtime:3.4.2",
    SQLITE,
]


class IcebergRest:
    """A server of Iceberg's REST catalog; the test is skipped without Java's compiler or Maven.

    Args:
        folder: An empty folder for the tables and the database.
    """

    def __init__(self, folder: Path) -> None:
        source = str(Path(__file__).with_name("IcebergRest.java"))
        command = ["setpriv", "--pdeathsig=KILL", "java", "-Xmx192m", "-XX:+UseSerialGC", "-cp"]
        command += [class_path("iceberg-rest", ARTIFACTS, "javac", "setpriv"), source]
        with (folder / "output").open("wb") as errors:
            self._process = subprocess.Popen(
                [*command, str(folder / "warehouse"), str(folder / "catalog.db")], stdout=subprocess.PIPE, stderr=errors
            )
        assert self._process.stdout is not None
        port = self._process.stdout.readline().decode().strip()  # printed when it answers; nothing if it ends
        assert port, (folder / "output").read_text(errors="replace")[-2000:]
        self.uri = f"http://127.0.0.1:{port}/"
        """The value of the setting ``uri`` of a catalog."""

    def kill(self) -> None:
        """End the server with SIGKILL."""
        self._process.kill()
        self._process.wait()
