"""Audits of DataFrames: the statements of `msgid.audit`, run by Spark, and by DuckDB where they read few rows alone.

`_roles` reads the columns of a table, `_engine` runs the statements of `msgid.audit`, and `_lists` returns the rows of
a check.
"""

import sys

from msgid.shared.validate import check_installed

if sys.version_info < (3, 11):
    raise ImportError("an audit on Spark needs Python 3.11 or later, because DuckDB 2 does")
check_installed("an audit on Spark", "spark", "duckdb", "numpy", "pyarrow")
