"""`spark_ext` as a package: its examples, what is public, what an import does."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import spark_ext

pytestmark = pytest.mark.spark

MODULES = [spark_ext] + [
    importlib.import_module(info.name)
    for info in pkgutil.walk_packages(spark_ext.__path__, "spark_ext.")
    if not info.name.endswith("__main__")
]
EXAMPLES = [example for module in MODULES for example in doctest.DocTestFinder().find(module) if example.examples]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_docstring_examples(spark, example):
    """What the docstrings show is what Spark shows."""
    example.globs.update(spark=spark)
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example).failed == 0


@pytest.mark.parametrize("name", spark_ext.__all__)
def test_everything_public_is_documented_as_pysparks_functions_are(name):
    """One line, returns, and an example that runs."""
    doc = inspect.getdoc(getattr(spark_ext, name))
    for part in ("Returns\n-------", "Examples\n--------", ">>> "):
        assert part in doc


def test_all_is_what_is_public():
    """``__all__`` names what the package offers."""
    modules = {name for _, name, _ in pkgutil.iter_modules(spark_ext.__path__)}
    assert {name for name in vars(spark_ext) if not name.startswith("_")} - modules == set(spark_ext.__all__)


def test_importing_starts_no_session():
    """An import touches no session and starts no Java."""
    program = (
        "import spark_ext; from pyspark import SparkContext; from pyspark.sql import SparkSession;"
        "print(SparkContext._gateway, SparkSession.getActiveSession())"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "None None\n"
