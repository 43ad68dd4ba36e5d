"""Message ids on Spark, a column at a time: the functions of `msgid` as PySpark columns.

Every function takes a column or its name and gives a column. All are built from Spark's own functions, so they run in
the JVM with no Python worker, the same on one machine, on a cluster and over Spark Connect.

- Make ids: `assign_id`.
- Read them: `parse_id`, `try_parse_id`, `is_valid_id`.
- Older forms: `parse_v0`, `try_parse_v0`, `translate_v0`, `try_translate_v0`.

``parse_x`` raises on what is no id, ``try_parse_x`` gives NULL; NULL in, NULL out.
"""

try:
    import pyspark as _pyspark  # noqa: F401
except ImportError as _missing:
    raise ImportError(f"spark_ext needs {_missing.name}: pip install 'msgid[spark]'", name=_missing.name) from None

from spark_ext.making import assign_id
from spark_ext.reading import is_valid_id, parse_id, try_parse_id
from spark_ext.v0 import parse_v0, translate_v0, try_parse_v0, try_translate_v0

__all__ = [
    "assign_id",
    "is_valid_id",
    "parse_id",
    "parse_v0",
    "translate_v0",
    "try_parse_id",
    "try_parse_v0",
    "try_translate_v0",
]
