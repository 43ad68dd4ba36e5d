"""Audits of DataFrames: the statements of `msgid.audit`, run by Spark.

`_roles` reads the columns of a table, `_engine` runs the statements of `msgid.audit`, and `_lists` returns the rows of
a check.
"""

from msgid._validate import check_installed

check_installed("an audit on Spark", "spark", "numpy", "pyarrow")
