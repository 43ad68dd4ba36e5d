"""Names of columns: found as Spark finds them."""

import pytest

from spark_ext._arguments import named_column
from spark_ext._settings import settings

pytestmark = pytest.mark.spark

NAMES = {
    "Key": ("Key", "Key"), "KEY": ("Key", None), "`key`": ("Key", None), "`Key`": ("Key", "Key"), "a.B": ("a.B", "a.B"),
    "`a.b`": ("a.B", None), "`x``y`": ("x`y", "x`y"), "x`Y": ("x`y", None), "DUP": (None, None), "dup": ("dup", "dup"),
    "struct.field": (None, None), "`": (None, None), "": (None, None),
}  # fmt: skip


@pytest.mark.parametrize("is_exact", ["false", "true"])
def test_names_are_found_as_spark_finds_them(spark, is_exact):
    """Exactly, in backticks, and in another case only if the session does not tell cases apart."""
    df = spark.createDataFrame([(1, 2, 3, 4, 5)], "Key int, `a.B` int, `x``y` int, Dup int, dup int")
    with settings(spark, {"spark.sql.caseSensitive": is_exact}):
        found = {name: named_column(df, name) for name in NAMES}
    assert found == {name: both[is_exact == "true"] for name, both in NAMES.items()}
