"""Check arguments that are DataFrames, names of columns or columns of IDs. The errors name argument and value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.types import BinaryType, NullType, StringType

from msgid._validate import quote

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def check_dataframe(df: Any, argument: str = "df", other: str = "") -> None:
    """Raise TypeError if a value is not a DataFrame of Spark, classic or Connect; ``other`` is what else to call."""
    # PySpark 3.5 has two classes without a common one.
    if not (hasattr(df, "isStreaming") and hasattr(df, "sparkSession")):
        raise TypeError(f"{argument} must be a DataFrame of Spark, got {quote(df)}{other and f'; {other}'}")


def check_name(argument: str, name: Any) -> None:
    """Raise TypeError if the name of a column is not text."""
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be the name of a column, got {quote(name)}")


def check_ids(argument: str, name: str, type: DataType) -> None:
    """Raise ValueError if a column of IDs is not text or binary: the text of other types may depend on the session."""
    if not isinstance(type, StringType | BinaryType | NullType):  # char and varchar are text in a DataFrame
        raise ValueError(
            f"{argument} must be a column of text or binary, got {name!r} of {type.simpleString()}; cast it to string"
        )
