"""Run examples of docstrings as tests; skip an example if the extra that it needs is not installed."""

import doctest

import pytest

__all__ = ["is_of_an_absent_extra", "run_example"]

# The packages of the extras. A test that needs a missing package is skipped.
EXTRAS = {
    "click", "deltalake", "duckdb", "fastavro", "filelock", "google", "jsonschema_rs", "numpy", "pandas", "psycopg",
    "pyarrow", "pyspark", "rich", "xxhash",
}  # fmt: skip


def is_of_an_absent_extra(error):
    """Return whether an ImportError is caused by a missing package of an extra."""
    return error.name is not None and error.name.partition(".")[0] in EXTRAS


class Runner(doctest.DocTestRunner):
    """Runs examples, and detects a missing package of an extra."""

    absent = None

    def report_unexpected_exception(self, out, test, example, exc_info):
        error = exc_info[1]
        if isinstance(error, ImportError) and is_of_an_absent_extra(error):
            self.absent = error.name
        else:
            super().report_unexpected_exception(out, test, example, exc_info)


def run_example(example, options=0):
    """Run an example and check it; skip the test if a package of an extra is missing."""
    runner = Runner(optionflags=options)
    failed = runner.run(example).failed
    if runner.absent:
        pytest.skip(f"needs {runner.absent}")
    assert failed == 0
