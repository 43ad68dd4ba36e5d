"""The JAR files of servers, from Maven by its ordinary client."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[2] / "build" / "systems"
"""Downloaded JAR files stay here between runs."""

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>msgid.systems</groupId><artifactId>{name}</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
PARTS = ("groupId", "artifactId", "version", "classifier")


def class_path(name: str, artifacts: list[str], *programs: str) -> str:
    """Return the class path of artifacts, ``group:artifact:version[:classifier]``; skip without Java or Maven.

    Maven adds the artifacts on which they depend. The test needs the other programs, too.
    """
    for program in ("java", "mvn", *programs):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    folder = CACHE / name
    pom = POM.format(name=name, dependencies="".join(map(_dependency, artifacts)))
    done = folder / "pom.xml"
    if not done.exists() or done.read_text(encoding="utf-8") != pom:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        asked = folder / "asked.xml"
        asked.write_text(pom, encoding="utf-8")
        command = ["mvn", "-q", "-B", "-f", str(asked), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        got = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if got.returncode:
            pytest.skip(f"Maven cannot get {name}: {(got.stdout or got.stderr).strip()[:200]}")
        asked.rename(done)  # last, so that a download that was cut off is done again
    return f"{folder}/*"


def _dependency(artifact: str) -> str:
    parts = zip(PARTS, artifact.split(":"), strict=False)
    return f"<dependency>{''.join(f'<{name}>{part}</{name}>' for name, part in parts)}</dependency>"
