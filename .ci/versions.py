"""Run the quick tests on several versions of Python, Java and packages, and print what passed as a Markdown table.

    python .ci/versions.py --python python3.10 --python python3.13         # the unit tests, without an extra
    python .ci/versions.py --pure                                          # on the pure-Python reference
    python .ci/versions.py --extra test --pyspark 4.0.2 --tests tests/unit --tests tests/spark
    python .ci/versions.py --extra test --java /usr/lib/jvm/jdk-21 --tests tests/spark/columns
    python .ci/versions.py --extra test --lowest --write       # the lowest versions that are declared

Each combination gets an environment of its own, made by uv, and its own compiled core. With ``--write``, the rows take
the place of the rows of the same versions in ``.ci/versions.md``; the other rows stay.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / ".ci" / "versions.md"
SHOWN = ("pyspark", "numpy", "pyarrow", "protobuf")
COLUMNS = ("Python", "backend", "Java", *SHOWN, "tests", "passed", "failed", "skipped", "date")
KEY = COLUMNS.index("passed")
"""The columns before this one name a combination."""

LOOK = f"""
import importlib.metadata as metadata, json, platform, sys, msgid
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "-"
free = "" if getattr(sys, "_is_gil_enabled", lambda: True)() else " free-threaded"
print(json.dumps([platform.python_version() + free, msgid.backend, *map(version, {SHOWN!r})]))
"""


class Combination(NamedTuple):
    """Versions that are installed together, and the tests that run on them."""

    python: str
    requirements: tuple[str, ...]
    extras: tuple[str, ...]
    lowest: bool
    pure: bool
    java: Path | None
    tests: tuple[str, ...]
    timeout: int


def copy_tree(target: Path) -> None:
    """Copy the files that git knows, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def run(combination: Combination, folder: Path) -> list[str]:
    """Return the row of one combination: the installed versions, and how many tests passed."""
    source, environment = folder / "source", folder / "environment"
    copy_tree(source)
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--python", combination.python, environment], check=True, stdout=sys.stderr)
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install = [*uv, "pip", "install", "-q", "--python", python]
    extras = ("test-unit", *combination.extras)
    wanted = [f"{source}[{','.join(extras)}]", *combination.requirements]
    if combination.lowest:
        # Only what a requirements file names is direct, and so taken at its lowest version.
        named = ["-r", source / "pyproject.toml", *(f"--extra={extra}" for extra in extras)]
        lowest = [*install, "--resolution", "lowest-direct", *named, *combination.requirements]
        subprocess.run(lowest, check=True, stdout=sys.stderr)
        wanted = ["--no-deps", source]
    subprocess.run([*install, *wanted], check=True, stdout=sys.stderr)
    # The tests import the installed packages, not the sources beside them.
    for package in ("msgid", "spark_ext"):
        shutil.rmtree(source / package)
    variables = {**os.environ, "MSGID_PURE": "1" if combination.pure else ""}
    if combination.java:
        variables["JAVA_HOME"] = str(combination.java)
    look = subprocess.run(
        [python, "-c", LOOK], cwd=source, env=variables, check=True, stdout=subprocess.PIPE, text=True
    )
    report = folder / "report.xml"
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "1"]
    finished = subprocess.run(
        [*command, f"--junitxml={report}", *combination.tests],
        cwd=source,
        env=variables,
        timeout=combination.timeout,
        stdout=sys.stderr,
        check=False,
    )
    names, counts = (
        counted(report) if report.exists() else ([f"pytest ended with {finished.returncode}"], ["0", "1", "0"])
    )
    for name in names:
        print(f"failed on {combination.python}: {name}", file=sys.stderr)
    day = datetime.now(timezone.utc).date().isoformat()
    on_python, backend, *packages = json.loads(look.stdout)
    java = "-" if packages[0] == "-" else java_version(variables)
    return [on_python, backend, java, *packages, " ".join(combination.tests), *counts, day]


def java_version(variables: dict[str, str]) -> str:
    """Return the version of the Java that Spark starts under some environment variables."""
    java = Path(variables["JAVA_HOME"], "bin", "java") if variables.get("JAVA_HOME") else "java"
    printed = subprocess.run([java, "-version"], check=True, stderr=subprocess.PIPE, text=True).stderr
    found = re.search(r'version "(.*?)"', printed)
    return found[1] if found else printed.splitlines()[0]


def counted(report: Path) -> tuple[list[str], list[str]]:
    """Return the names of the failed tests, and how many passed, failed and were skipped."""
    failed, skipped, total = [], 0, 0
    for case in ElementTree.parse(report).iter("testcase"):
        total += 1
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            failed.append(f"{case.get('classname')}.{case.get('name')}")
        elif "skipped" in kinds:
            skipped += 1
    return failed, [str(total - len(failed) - skipped), str(len(failed)), str(skipped)]


def table(rows: list[list[str]]) -> str:
    """Return rows as a Markdown table."""
    lines = [COLUMNS, ["---"] * len(COLUMNS), *sorted(rows, key=sort_key)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def sort_key(row: list[str]) -> list[tuple[list[int], str]]:
    """Sort versions by their numbers."""
    parts = [cell.partition(" ")[0].split(".") for cell in row]
    return [([int(part) if part.isdigit() else 0 for part in of], cell) for of, cell in zip(parts, row, strict=True)]


def write(rows: list[list[str]]) -> None:
    """Put rows into the table of `FILE`, in place of those of the same versions."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    first = lines.index(table([]).splitlines()[0])
    places = [*itertools.takewhile(lambda place: lines[place].startswith("|"), range(first, len(lines)))]
    old = [[cell.strip() for cell in lines[place].strip("|").split("|")] for place in places[2:]]
    done = {tuple(row[:KEY]) for row in rows}
    kept = [row for row in old if tuple(row[:KEY]) not in done]
    lines[places[0] : places[-1] + 1] = table(kept + rows).splitlines()
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Run each combination, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", help="an interpreter; repeat it for several")
    parser.add_argument("--pyspark", action="append", help="a version of PySpark; repeat it for several")
    parser.add_argument("--with", dest="requirements", action="append", default=[], help="a requirement, as of pip")
    parser.add_argument("--extra", action="append", default=[], help="an extra of msgid beside test-unit")
    parser.add_argument("--lowest", action="store_true", help="the lowest versions that pyproject.toml allows")
    parser.add_argument("--pure", action="store_true", help="the pure-Python reference")
    parser.add_argument("--java", type=Path, help="the folder of a Java; default: JAVA_HOME or the path")
    parser.add_argument("--tests", action="append", help="a folder or file of tests; default: tests/unit")
    parser.add_argument("--timeout", type=int, default=3600, help="seconds for the tests of one combination")
    parser.add_argument("--write", action="store_true", help="put the rows into .ci/versions.md")
    arguments = parser.parse_args()
    rows = []
    for python, pyspark in itertools.product(arguments.python or [sys.executable], arguments.pyspark or [None]):
        spark = (f"pyspark[connect]=={pyspark}",) if pyspark else ()
        combination = Combination(
            python,
            (*spark, *arguments.requirements),
            tuple(arguments.extra),
            arguments.lowest,
            arguments.pure,
            arguments.java,
            tuple(arguments.tests or ["tests/unit"]),
            arguments.timeout,
        )
        with tempfile.TemporaryDirectory() as folder:
            rows.append(run(combination, Path(folder)))
        if arguments.write:
            write(rows)
    print(table(rows))
    sys.exit(any(row[COLUMNS.index("failed")] != "0" for row in rows))


if __name__ == "__main__":
    main()
