"""Check arguments, and find the columns that they name. The errors name argument and value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgid.shared.validate import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NO_ANALYSIS: Final = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"
_QUOTED: Final = re.compile(r"`((?:[^`]|``)+)`")


def check_dataframe(df: Any, argument: str = "df", other: str = "") -> None:
    """Check that a value is a DataFrame of Spark, classic or Connect, whose columns can be read.

    Raises
    ------
    TypeError
        If it is another value; the error names ``other``, which is what else to call.
    ValueError
        If a query function of a pipeline runs, in which Spark does not analyze a DataFrame.
    """
    from pyspark.errors import PySparkException

    # PySpark 3.5 has two classes without a common one, and a class may have the attribute where the value raises.
    if not (hasattr(type(df), "isStreaming") and hasattr(type(df), "sparkSession")):
        raise TypeError(f"{argument} must be a DataFrame of Spark, got {quote(df)}{other and f'; {other}'}")
    try:
        df.schema  # noqa: B018 - Spark keeps it, and the caller needs it
    except PySparkException as error:
        condition = getattr(error, "getCondition", None) or error.getErrorClass  # PySpark 3.5 has the second alone
        if condition() != _NO_ANALYSIS:
            raise
        raise ValueError(
            f"cannot read the columns of {argument} in a query function of a pipeline: call the function of spark_ext "
            "at the level of the module, and return its result from the query function"
        ) from None


def check_name(argument: str, name: Any) -> None:
    """Raise TypeError if the name of a column is not text."""
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be the name of a column, got {quote(name)}")


def named_column(df: DataFrame, name: str) -> str | None:
    """Return the column that a text names, as Spark finds it; None if the column is missing.

    The text is the exact name, or the name in backticks. Upper and lower case matter only if the session says so.
    """
    quoted = _QUOTED.fullmatch(name)
    is_exact = df.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
    for wanted in (name, quoted[1].replace("``", "`")) if quoted else (name,):
        if wanted in df.columns:
            return wanted
        alike = [column for column in df.columns if column.lower() == wanted.lower()]
        if len(alike) == 1 and not is_exact:
            return alike[0]
    return None


def required_column(df: DataFrame, argument: str, name: Any) -> str:
    """Return the column that an argument names.

    Raises
    ------
    TypeError
        If the name is not text.
    ValueError
        If the column is missing.
    """
    check_name(argument, name)
    column = named_column(df, name)
    if column is None:
        raise ValueError(f"{argument} must be a column of the DataFrame, got {name!r}; it has {df.columns}")
    return column


def free_name(df: DataFrame, wanted: str) -> str:
    """Return an unused name that is similar to the wanted name; upper and lower case do not matter."""
    taken = {column.lower() for column in df.columns}
    while wanted.lower() in taken:
        wanted += "_"
    return wanted
