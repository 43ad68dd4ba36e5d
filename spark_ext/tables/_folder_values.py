"""Text of partition columns as names of folders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_ext.columns._expressions import quoted_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame

NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""The name of Spark's folder for NULL."""


def with_folder_texts(df: DataFrame, partition_by: Iterable[str]) -> DataFrame:
    """Return rows whose write fails for text that cannot be a folder's name.

    Spark names the folders of NULL, of empty text and of `NO_VALUE` alike, replaces bytes that are not UTF-8, and
    cannot create a folder with a NUL character.
    """
    chosen = {name.lower() for name in partition_by}
    names = [
        field.name
        for field in df.schema
        if field.name.lower() in chosen and isinstance(field.dataType, (T.StringType, T.CharType, T.VarcharType))
    ]
    return df.withColumns({name: _folder_text(name) for name in names}) if names else df


def _folder_text(name: str) -> Column:
    text = F.col(quoted_name(name)).cast("string")
    is_lost = (F.octet_length(text) == 0) | (text == NO_VALUE) | text.contains("\0") | ~F.is_valid_utf8(text)
    message = f"cannot write a partition of {name!r}: its text must not be empty, {NO_VALUE}, or other text than UTF-8"
    return F.when(is_lost, F.raise_error(F.lit(message)).cast("string")).otherwise(text)
