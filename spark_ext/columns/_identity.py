"""The text by which IDs are compared, as a column; `msgid.ids._bytes.identity` is the same in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from msgid import layout
from spark_ext.columns._expressions import V0_DIGITS, column, has_v1_shape, is_canonical_v0, is_hex, is_uuid, null_text

if TYPE_CHECKING:
    from pyspark.sql import Column

    from spark_ext.columns._expressions import ColumnOrName


def identity(id: ColumnOrName) -> Column:
    """Return the text by which two IDs are compared: equal if and only if they are the same ID.

    An ID of any version becomes its canonical text. A UUID with dashes becomes lower case. Any other text stays as it
    is. The ASCII bytes of an ID's or a UUID's text are that text; any other bytes become ``0x`` and their hex digits.
    An empty value is not an ID, so it becomes NULL.

    Parameters
    ----------
    id : Column or str
        IDs of any version or other identifiers, as text or binary. A value of another type is compared as its text.

    Returns
    -------
    Column
        Text; NULL if ``id`` is NULL or empty.

    Examples
    --------
    >>> from pyspark.sql import functions as F
    >>> df = spark.createDataFrame([("7f0000010000238f000000000001e240",), ("orders-0-42",)], ["id"])
    >>> df.select(identity("id").alias("id")).show(truncate=False)
    +----------------------------------+
    |id                                |
    +----------------------------------+
    |007F0000010000238F000000000001E240|
    |orders-0-42                       |
    +----------------------------------+
    """
    value = column(id)
    # The type is known when the query is planned, so only one of the two branches is left in the plan.
    is_binary = F.typeof(value) == "binary"
    # The cast to a text gives it Spark's default collation, and leaves the bytes of a binary value as they are.
    text = value.cast("string")
    digits = F.hex(text.cast("binary"))
    read = _canonical(text, F.upper(text)).when(is_uuid(text), F.lower(text))
    of_bytes = _canonical(digits, digits).otherwise(F.coalesce(read, F.concat(F.lit("0x"), digits)))
    of_text = read.otherwise(text)
    return F.when(is_binary, of_bytes).otherwise(of_text)


def _canonical(text: Column, upper: Column) -> Column:
    """Return the canonical text of an ID, given its digits as they are and in upper case; further cases follow."""
    return (
        F.when(F.octet_length(text) == 0, null_text())
        .when((has_v1_shape(text) | is_canonical_v0(text)) & is_hex(text), upper)
        .when(F.octet_length(text).isin(*V0_DIGITS) & is_hex(text), F.concat(F.lit(layout.CANONICAL_V0_PREFIX), upper))
    )
