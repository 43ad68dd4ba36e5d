"""The settings of the tests: what fails, what runs again, and what a plain ``pytest`` leaves out."""

import runpy
import shutil
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
pytest_plugins = ["pytester"]


@pytest.mark.details
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_skip_that_is_not_listed_fails_the_run(pytester, workers):
    """A test and a whole module count, in this process and in a worker."""
    for name in ("conftest.py", "skips.txt"):
        shutil.copy(TESTS / name, pytester.path)
    pytester.makepyfile(
        test_one="import pytest\ndef test_one():\n    pytest.skip('needs Chromium')\ndef test_two():\n    pass",
        test_other="import pytest\npytest.skip('needs Chromium', allow_module_level=True)",
    )
    strict = pytester.runpytest_subprocess("--strict-skips", "-n", workers)
    assert strict.ret == pytest.ExitCode.TESTS_FAILED
    shown = strict.stdout.str().rpartition("skipped, and the reason")[2]
    assert "test_one.py::test_one: needs Chromium" in shown
    assert "test_other.py: needs Chromium" in shown


def test_each_mark_of_the_night_is_left_out_by_default(request):
    """The marks that `pyproject.toml` describes are those that it leaves out, but for ``spark``."""
    if not (TESTS.parent / "pyproject.toml").exists():
        pytest.skip("the tests run outside the repository")
    left_out = request.config.getini("addopts")[-1]
    names = {line.partition(":")[0] for line in request.config.getini("markers")} - {"spark"}
    described = {
        name for name in names if name in {"details", "faults", "kills", "programs", "systems", "variants", "volume"}
    }
    assert set(left_out.removeprefix("not (").removesuffix(")").split(" or ")) == described


def test_each_mutation_has_its_text_in_the_code():
    """A mutation whose text is missing breaks nothing: it must follow the code."""
    if not all((TESTS.parent / name).exists() for name in (".ci", "msgid", "spark_ext")):
        pytest.skip("the tests run outside the repository")
    mutations = runpy.run_path(str(TESTS.parent / ".ci" / "mutations.py"))["MUTATIONS"]
    lost = [one.breaks for one in mutations if one.old not in (TESTS.parent / one.file).read_text(encoding="utf-8")]
    faults = runpy.run_path(str(TESTS / "simulation" / "mutations.py"), run_name="mutations")["FAULTS"]
    for name, (module, right, _) in faults.items():
        path = TESTS.parent.joinpath(*module.split(".")).with_suffix(".py")
        lost += [name] if path.read_text(encoding="utf-8").count(right) != 1 else []
    assert lost == []
