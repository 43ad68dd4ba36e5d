"""Names of columns: found as Spark finds them."""

import pytest
from pyspark.errors import PySparkException

from spark_ext._arguments import check_dataframe, named_column
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


class OfPipeline:
    """A DataFrame in a query function of a pipeline: each look at it raises Spark's error."""

    condition = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"
    sparkSession = None

    @property
    def schema(self):
        error = PySparkException("analysis")
        error.getCondition = lambda: self.condition
        raise error

    isStreaming = schema


def test_dataframe_of_a_query_function_is_refused_in_one_line():
    """Spark's own error does not name the function; another error of Spark stays as it is."""
    with pytest.raises(ValueError, match=r"^cannot read the columns of df in a query function of a pipeline: call .*$"):
        check_dataframe(OfPipeline())
    other = OfPipeline()
    other.condition = "TABLE_OR_VIEW_NOT_FOUND"
    with pytest.raises(PySparkException):
        check_dataframe(other)
    with pytest.raises(TypeError, match="df must be a DataFrame of Spark, got <class"):
        check_dataframe(OfPipeline)
