"""Text of partition columns as names of folders.

Spark names the folders of NULL, of empty text and of `NO_VALUE` alike, replaces bytes that are not UTF-8, and cannot
create a folder with a NUL character. Such text is written as its bytes in hex digits, after a prefix.
"""

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
_BYTES: Final = "__BYTES__"
"""Before hex digits. Text that starts with it is written as hex digits, too."""


def is_text(type: T.DataType) -> bool:
    """Return whether values of a type are bytes, which a folder's name may lose."""
    return isinstance(type, (T.StringType, T.BinaryType, T.CharType, T.VarcharType))


def with_folder_texts(df: DataFrame, partition_by: Iterable[str]) -> DataFrame:
    """Replace the values of text and binary partition columns by those that a folder's name keeps."""
    chosen = {name.lower() for name in partition_by}
    names = [field.name for field in df.schema if field.name.lower() in chosen and is_text(field.dataType)]
    return df.withColumns({name: _folder_text(F.col(quoted_name(name))) for name in names}) if names else df


def _folder_text(value: Column) -> Column:
    text = value.cast("string")
    is_lost = (F.octet_length(text) == 0) | (text == NO_VALUE) | text.startswith(_BYTES) | text.contains("\0")
    digits = F.concat(F.lit(_BYTES), F.hex(text.cast("binary")))
    return F.when(is_lost | ~F.is_valid_utf8(text), digits).otherwise(text)


def value_of_folder(text: Column, type: T.DataType) -> Column:
    """Return the values of a partition column of text or bytes, whose folders `with_folder_texts` has named."""
    raw = F.unhex(F.substring(text, len(_BYTES) + 1, 1 << 30))
    return F.when(text.startswith(_BYTES) & raw.isNotNull(), raw.cast(type)).otherwise(text.cast(type))


def bytes_of_folder(text: str) -> bytes:
    """Return the value in a folder's name, as `with_folder_texts` has written it.

    >>> bytes_of_folder("orders"), bytes_of_folder("__BYTES__"), bytes_of_folder("__BYTES__61")
    (b'orders', b'', b'a')
    """
    try:
        return bytes.fromhex(text.removeprefix(_BYTES)) if text.startswith(_BYTES) else text.encode()
    except ValueError:
        return text.encode()
