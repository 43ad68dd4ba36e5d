"""The settings of the tests: what fails, what runs again, and what a plain ``pytest`` leaves out."""

import shutil
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
pytest_plugins = ["pytester"]


@pytest.fixture
def suite(pytester):
    """Return a folder of tests with the settings of this one."""
    for name in ("conftest.py", "skips.txt"):
        shutil.copy(TESTS / name, pytester.path)
    return pytester


@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.parametrize(
    ("reason", "code"), [("no release rebuilt such an index", 0), ("the reason is new", 1), ("needs Chromium", 1)]
)
def test_a_skip_that_is_not_listed_fails_the_run(suite, reason, code, workers):
    """A test and a whole module count, in this process and in a worker; without the option a skip is no fault."""
    suite.makepyfile(
        test_one=f"import pytest\ndef test_one():\n    pytest.skip({reason!r})\ndef test_two():\n    pass",
        test_other=f"import pytest\npytest.skip({reason!r}, allow_module_level=True)",
    )
    strict = suite.runpytest_subprocess("--strict-skips", "-n", workers)
    assert strict.ret == code
    shown = strict.stdout.str().rpartition("skipped, and the reason")[2]
    if code:
        assert [f"{name}: {reason}" in shown for name in ("test_one.py::test_one", "test_other.py")] == [True, True]
    assert suite.runpytest_subprocess("-n", workers).ret == 0


@pytest.mark.parametrize(
    ("times", "words", "code"),
    [(1, "Python worker failed to connect back.", 0), (2, "Python worker failed to connect back.", 1), (1, "other", 1)],
)
def test_a_worker_that_a_busy_machine_starts_too_late_is_started_again(suite, times, words, code):
    """A Spark test that fails for this reason alone runs once more, with fixtures of its own."""
    suite.makeini("[pytest]\nmarkers = spark")
    suite.makepyfile(
        f"""
        import pytest

        runs = []

        @pytest.mark.spark
        def test_one(tmp_path):
            runs.append(tmp_path)
            assert len(set(runs)) == len(runs)
            if len(runs) <= {times}:
                raise RuntimeError({words!r})
        """
    )
    assert suite.runpytest_subprocess().ret == code


def test_each_mark_of_the_night_is_left_out_by_default(request):
    """The marks that `pyproject.toml` describes are those that it leaves out, but for ``spark``."""
    if not (TESTS.parent / "pyproject.toml").exists():
        pytest.skip("the tests run outside the repository")
    left_out = request.config.getini("addopts")[-1]
    names = {line.partition(":")[0] for line in request.config.getini("markers")} - {"spark"}
    described = {name for name in names if name in {"kills", "programs", "soak", "systems", "variants", "volume"}}
    assert set(left_out.removeprefix("not (").removesuffix(")").split(" or ")) == described
