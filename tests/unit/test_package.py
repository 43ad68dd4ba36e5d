"""The packages: their public names, the cost of an import, and the examples in the docstrings."""

import doctest
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from helpers.commands import python
from helpers.examples import is_of_an_absent_extra, run_example
from helpers.imports import folder_of, modules_of

import msgid

HEAVY = {
    "asyncio", "click", "dataclasses", "duckdb", "getmac", "hashlib", "inspect", "ipaddress", "numpy", "pandas",
    "psutil", "pyarrow", "pydantic", "pydantic_core", "pyspark", "rich", "secrets", "spark_ext", "subprocess",
    "uuid", "zoneinfo",
}  # fmt: skip


def loaded_by(program):
    result = subprocess.run(
        [sys.executable, "-I", "-c", f"{program}; import sys; print(*sys.modules)"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return set(result.stdout.split())


def test_import_of_msgid_loads_nothing_heavy():
    nothing = loaded_by("pass")
    assert not (loaded_by("import msgid; msgid.parse, msgid.generate, msgid.parse_batch") - nothing) & HEAVY
    assert loaded_by("import msgid") - nothing == {"msgid"}


def test_parse_of_an_id_loads_nothing_heavy():
    """Parsing and making IDs need no library; only where Linux is not, making IDs loads psutil once."""
    parse = f"import msgid; str(msgid.parse('{'01' * 17}').time); msgid.is_valid('x')"
    assert not (loaded_by(parse) - loaded_by("pass")) & HEAVY
    if sys.platform == "linux":
        assert not (loaded_by("import msgid; msgid.generate()") - loaded_by("pass")) & HEAVY


def test_all_of_the_package_names_what_is_public():
    """Each name is imported when it is first used, also by a star; other names are not there."""
    assert msgid.__all__ == sorted(msgid.__all__)
    assert all(getattr(msgid, name) is not None for name in msgid.__all__)
    modules = {name for _, name, _ in pkgutil.iter_modules(msgid.__path__)}
    offered = {name for name in vars(msgid) if not name.startswith("_")} - modules - {"TYPE_CHECKING"}
    assert offered == set(msgid.__all__) <= set(dir(msgid))
    assert "msgid.ids.generator" in loaded_by("from msgid import *; generate()")
    with pytest.raises(AttributeError, match="module 'msgid' has no attribute 'other'"):
        msgid.other  # noqa: B018


def all_modules(package):
    module = importlib.import_module(package)
    yield module
    for info in pkgutil.walk_packages(module.__path__, package + "."):
        if not info.name.endswith("__main__"):
            try:
                yield importlib.import_module(info.name)
            except ImportError as error:
                if not is_of_an_absent_extra(error):
                    raise


# The compiled core works only where it was chosen; its docstrings are those of the reference.
COMPILED = "msgid.ids._native._speedups"
MODULES = [module for module in all_modules("msgid") if msgid.backend == "c" or module.__name__ != COMPILED]
PUBLIC = {
    "msgid", "msgid.audit", "msgid.danube", "msgid.iggy", "msgid.kafka", "msgid.processing", "msgid.retention",
    "msgid.rocketmq", "msgid.schemas", "msgid.testing",
}  # fmt: skip
"""The packages and modules that users open first: their ``__all__`` is public."""
BELOW = {
    "msgid.audit.definitions", "msgid.audit.facts", "msgid.audit.story", "msgid.ids.bulk", "msgid.iggy.commands",
    "msgid.iggy.message", "msgid.processing.store", "msgid.retention.cleaner",
}  # fmt: skip
"""The modules one level down that have public names too: results, values of a contract, and rare commands."""
NAMES = sorted(modules_of("msgid", folder_of("msgid")))


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("__main__")])
def test_modules_of_the_package_have_a_docstring(name):
    """Each module has a docstring, and only the documented packages and modules list public names."""
    if name in ("msgid.cli", "msgid.shared.command_line"):
        pytest.importorskip("click")
    if name.startswith("msgid.audit"):
        for package in ("duckdb", "numpy", "pyarrow"):
            pytest.importorskip(package)
    module = importlib.import_module(name)
    assert module.__doc__
    assert hasattr(module, "__all__") == (name in PUBLIC | BELOW)
    for public in getattr(module, "__all__", ()):
        assert hasattr(module, public)


def test_public_names_are_few():
    """A public name is a promise: the packages of `msgid` make at most 104, and none is offered at two levels."""
    assert sum(len(importlib.import_module(name).__all__) for name in PUBLIC) <= 104
    for name in BELOW:
        module = importlib.import_module(name)
        above = importlib.import_module(max((one for one in PUBLIC if name.startswith(f"{one}.")), key=len))
        assert module.__all__ == sorted(module.__all__)
        assert not set(module.__all__) & set(above.__all__)


def examples(modules, globs):
    """Return the doctests of modules, and of classes separately, because a class names the package as its module."""
    finder = doctest.DocTestFinder()
    for module in modules:
        yield from finder.find(module, globs={**vars(module), **globs})
    for name in msgid.__all__:
        thing = getattr(msgid, name)
        if isinstance(thing, type) and thing.__module__ == "msgid":
            yield from finder.find(thing, name, module=False, globs={**vars(msgid), **globs})


EXAMPLES = [example for example in examples(MODULES, {}) if example.examples]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_in_docstrings_give_what_they_show(example):
    run_example(example, doctest.IGNORE_EXCEPTION_DETAIL)


@pytest.mark.parametrize("name", [*(name for name in msgid.__all__ if name != "backend"), "ids.bulk.IdColumns"])
def test_public_names_of_the_package_have_an_example(name):
    module, _, own = f"msgid.{name}".rpartition(".")
    assert ">>>" in getattr(importlib.import_module(module), own).__doc__


def test_commands_of_the_distribution_can_be_called():
    commands = {entry.name: entry for entry in metadata.distribution("msgid").entry_points}
    assert set(commands) == {"msgid", "msgid-spark"}
    assert all(callable(entry.load()) for entry in commands.values())


def test_command_for_spark_without_pyspark_names_what_to_install():
    program = "import sys; sys.modules['pyspark'] = None; sys.argv = ['/bin/msgid-spark'];"
    program += "from spark_ext.__main__ import main; main()"
    result = python(program)
    assert result.returncode == 1
    assert re.fullmatch(
        r"msgid-spark: the command line needs \w+: pip install 'msgid\[spark,cli\]' .*\n", result.stderr
    )


def test_packages_for_type_checkers_are_marked_typed():
    for package in ("msgid", "spark_ext"):
        spec = importlib.util.find_spec(package)
        assert (Path(spec.origin).parent / "py.typed").exists()


README = Path(__file__).parents[2] / "README.md"


@pytest.mark.skipif(not README.exists(), reason="the tests run outside the repository")
def test_examples_in_the_readme_give_what_they_show():
    """The README's examples give the shown results; the Spark examples, between markers, have separate tests."""
    left_out = "spark" if importlib.util.find_spec("pyarrow") else "audit|spark"
    text = re.sub(rf"<!-- ({left_out}) -->.*?<!-- end -->", "", README.read_text(), flags=re.DOTALL)
    example = doctest.DocTestParser().get_doctest(text, {}, "README.md", str(README), 0)
    assert len(example.examples) >= 4
    run_example(example)


def test_text_of_a_release_is_the_entry_of_the_changelog():
    """The entry ends at the next version or at the links; a version without an entry or a date is refused."""
    from changelog_entry import entry

    changelog = "## [Unreleased]\n\n- A\n\n## [0.10.0] - 2026-01-02\n\n- B\n\n"
    changelog += "## [0.1.0] - 2026-01-01\n\n- [C]\n\n[0.1.0]: x\n"
    assert [entry(version, changelog) for version in ("0.10.0", "0.1.0")] == ["- B", "- [C]"]
    for version in ("0.2.0", "0.10", "0.1..", "Unreleased", "0.1.0] - 2026"):
        with pytest.raises(ValueError, match="must have an entry with a date"):
            entry(version, changelog)
