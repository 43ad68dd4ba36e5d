"""The package `spark_ext`: its examples, its public names, and the effects of an import."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import spark_ext
from msgid.shared.validate import to_install
from spark_ext import testing

pytestmark = pytest.mark.spark

MODULES = [spark_ext] + [
    importlib.import_module(info.name)
    for info in pkgutil.walk_packages(spark_ext.__path__, "spark_ext.")
    if not info.name.endswith("__main__")
]
EXAMPLES = [example for module in MODULES for example in doctest.DocTestFinder().find(module) if example.examples]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_in_docstrings_give_what_they_show(spark, example):
    """The examples in docstrings return the results that they show."""
    example.globs.update(spark=spark)
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example).failed == 0


RESULTS = {"auditing.spark_report": ["AuditReport"], "tables.upsert": ["Upserted"]}
"""The types of results, which are public one level down."""


@pytest.mark.parametrize(
    "name", [*spark_ext.__all__, *(f"{module}.{name}" for module, names in RESULTS.items() for name in names)]
)
def test_public_functions_are_documented_as_those_of_pyspark(name):
    """Each public name has a summary line, a Returns section (functions), and an example."""
    module, _, own = f"spark_ext.{name}".rpartition(".")
    thing = getattr(importlib.import_module(module), own)
    parts = ["Examples\n--------", ">>> ", *([] if isinstance(thing, type) else ["Returns\n-------"])]
    for part in parts:
        assert part in inspect.getdoc(thing)


def test_all_of_the_package_names_what_is_public():
    """``__all__`` lists, in order, the names of the stub, and each can be imported."""
    assert spark_ext.__all__ == sorted(spark_ext.__all__, key=lambda name: (not name[0].isupper(), name))
    assert set(spark_ext.__all__) <= set(dir(spark_ext))
    assert [name for name in spark_ext.__all__ if not hasattr(spark_ext, name)] == []
    with pytest.raises(AttributeError, match="has no attribute 'parse'"):
        spark_ext.parse  # noqa: B018


def test_public_names_are_few():
    """A public name is a promise: `spark_ext` and its tests for formats make at most 46; two modules have results."""
    assert len(spark_ext.__all__) + len(testing.__all__) <= 46
    below = {module.__name__: module.__all__ for module in MODULES if hasattr(module, "__all__")}
    results = {f"spark_ext.{module}": names for module, names in RESULTS.items()}
    assert below == {"spark_ext": spark_ext.__all__, "spark_ext.testing": testing.__all__, **results}


def test_a_name_without_pyspark_says_what_to_install():
    """The package imports without PySpark; the first use of a function raises one clear line."""
    program = "import sys; sys.modules['pyspark'] = None; import spark_ext; spark_ext.parse_id"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    says = f"ImportError: spark_ext.parse_id needs pyspark: {to_install('spark')}"
    assert result.stderr.splitlines()[-1] == says


def test_one_function_imports_no_module_of_another():
    """A name loads the module that defines it, and not the streaming functions or the data source."""
    program = "import sys, spark_ext; spark_ext.parse_id; print(*(n for n in sys.modules if n.startswith('spark_ext')))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(result.stdout.split())
    assert "spark_ext.columns.reading" in loaded
    assert not [name for name in loaded if name.startswith(("spark_ext.formats", "spark_ext.streaming"))]


def test_import_of_the_package_starts_no_session():
    """An import does not use a session and does not start Java."""
    program = (
        "import spark_ext; from pyspark import SparkContext; from pyspark.sql import SparkSession;"
        "print(SparkContext._gateway, SparkSession.getActiveSession())"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "None None\n"
