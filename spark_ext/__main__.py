"""Run the command line ``python -m spark_ext``; `spark_ext.cli` defines it and needs Click and PySpark."""

from __future__ import annotations

import sys

try:
    import click  # noqa: F401
    import pyspark  # noqa: F401
except ImportError as missing:
    sys.exit(f"spark_ext: the command line needs {missing.name}: pip install 'msgid[spark,cli]'")

from spark_ext.cli import main

if __name__ == "__main__":
    main()
