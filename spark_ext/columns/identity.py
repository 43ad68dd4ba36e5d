"""The door for columns of IDs on Spark: a column, its type and its field's metadata become texts and identities.

No other module of `spark_ext` looks at the type of IDs. In Python, `msgid.ids.checked_bytes` is the same for values,
and `msgid.ids.carriers` for columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DecimalType, DoubleType, FloatType, NullType, NumericType, StringType

from msgid import layout
from msgid.ids.carriers import CAST, WAS_TEXT
from spark_ext.columns.building import null_text
from spark_ext.columns.column_types import column, is_char, quoted_name, text_column
from spark_ext.columns.id_text import V0_DIGITS, has_v1_shape, is_canonical_v0, is_hex, is_uuid

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

    from msgid.iggy.message import UuidOrder
    from spark_ext.columns.column_types import ColumnOrName

_INT64_DIGITS: Final = 19


def check_ids(df: DataFrame, argument: str, name: str) -> None:
    """Raise ValueError if a column of IDs is not text or binary: the text of other types may depend on the session."""
    type = df.schema[name].dataType
    if not isinstance(type, StringType | BinaryType | NullType):
        cure = WAS_TEXT if isinstance(type, NumericType) else CAST
        raise ValueError(
            f"`{argument}` must be a column of text or binary, got {name!r} of {type.simpleString()}: {cure}"
        )


def without_padding(value: Column, field: StructField) -> Column:
    """Return the values of a column without the spaces with which Spark pads a CHAR; any other one as it is."""
    return F.rtrim(value) if is_char(field) else value


def unpadded(df: DataFrame) -> list[Column]:
    """Return all columns, those of CHAR as text without padding: readers of the rows do not see the type CHAR."""
    chars = {field.name for field in df.schema if is_char(field)}
    if not chars:
        return [F.col("*")]
    return [text_column(df, name).alias(name) if name in chars else F.col(quoted_name(name)) for name in df.columns]


def has_bytes(df: DataFrame, name: str) -> bool:
    """Return whether the IDs of a column are binary."""
    return isinstance(df.schema[name].dataType, BinaryType)


def id_column(df: DataFrame, argument: str, name: str) -> Column:
    """Return a column of IDs: binary as it is, any other one as `text_column`.

    Raises
    ------
    ValueError
        If the column is not of text or binary.
    """
    check_ids(df, argument, name)
    return F.col(quoted_name(name)) if has_bytes(df, name) else text_column(df, name)


def id_text(df: DataFrame, name: str) -> Column:
    """Return the text of IDs: bytes are an ID of their length, or printable ASCII, as in a header of Kafka."""
    value, text = F.col(quoted_name(name)), text_column(df, name)
    if has_bytes(df, name):
        canonical_id = identity(value)
        return F.when(canonical_id.startswith("0x") & text.rlike(r"\A[ -~]*\z"), text).otherwise(
            F.coalesce(canonical_id, text)
        )
    return text


def id_identity(df: DataFrame, name: str) -> Column:
    """Return the `identity` of the `id_text` of a column.

    The text of bytes is an identity already. Spark Connect sends an expression of an expression whole, which took
    minutes.
    """
    if has_bytes(df, name):
        return F.when(F.octet_length(quoted_name(name)) > 0, id_text(df, name))
    return identity(id_text(df, name))


def canonical(df: DataFrame, name: str) -> Column:
    """Return a key in its canonical form if it is text or binary, in its own type: one spelling per ID.

    Raises
    ------
    ValueError
        If the key is of numbers beyond 64 bits or of floats, in which an engine may have read IDs.
    """
    value, type = F.col(quoted_name(name)), df.schema[name].dataType
    if isinstance(type, StringType):
        text = text_column(df, name)
        return F.coalesce(identity(text), text)
    if isinstance(type, BinaryType):
        text = identity(value)  # the hex digits of an ID, or 0x and the hex digits of other bytes
        return F.when(text.startswith("0x"), value).otherwise(F.coalesce(F.unhex(text), value))
    is_wide = isinstance(type, DecimalType) and type.precision - type.scale > _INT64_DIGITS
    if is_wide or isinstance(type, FloatType | DoubleType):
        check_ids(df, "key", name)
    return value


def hex_text(col: ColumnOrName) -> Column:
    """Return an ID column of text or binary as text. A value of another type becomes text that is not an ID.

    The type is known when the query is planned, so only the branch that is needed is left in the plan.
    """
    id = column(col)
    text = id.cast("string")
    # A decimal number may have 32 digits, and a variant holds a number or a text.
    not_an_id = F.concat(text, F.lit("."))
    is_other = F.substring_index(F.typeof(id), "(", 1).isin("decimal", "variant")
    # The cast to a text gives it Spark's default collation, and leaves the bytes of a binary value as they are.
    digits = F.hex(text.cast("binary"))
    return F.when(F.typeof(id) == "binary", digits).when(is_other, not_an_id).otherwise(text)


def header_identity(value: Column) -> Column:
    """Return the ID or UUID that bytes hold, as `msgid.ids.checked_bytes.header_identity` does; else NULL."""
    text, digits = value.cast("string"), F.hex(value)
    is_version_1 = (F.octet_length(value) == layout.ID_LENGTH) & digits.startswith(f"{layout.VERSION_1:02X}")
    return F.when(is_version_1, digits).otherwise(_read(text))


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
    read = _read(text)
    of_bytes = _canonical(digits, digits).otherwise(F.coalesce(read, F.concat(F.lit("0x"), digits)))
    of_text = read.otherwise(text)
    return F.when(is_binary, of_bytes).otherwise(of_text)


def _read(text: Column) -> Column:
    """Return the canonical text of an ID or a UUID in text; NULL for other text, unless further cases follow."""
    return _canonical(text, F.upper(text)).when(is_uuid(text), F.lower(text))


def _canonical(text: Column, upper: Column) -> Column:
    """Return the canonical text of an ID, given its digits as they are and in upper case; further cases follow."""
    return (
        F.when(F.octet_length(text) == 0, null_text())
        .when((has_v1_shape(text) | is_canonical_v0(text)) & is_hex(text), upper)
        .when(F.octet_length(text).isin(*V0_DIGITS) & is_hex(text), F.concat(F.lit(layout.CANONICAL_V0_PREFIX), upper))
    )


def uuid_of_digits(digits: Column, order: UuidOrder = "bytes") -> Column:
    """Return the text of a UUID of 32 hex digits, whose bytes are in an order."""
    if order == "number":
        digits = F.concat(*(F.substring(digits, start, 2) for start in range(31, 0, -2)))
    starts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    return F.lower(F.concat_ws("-", *(F.substring(digits, start, length) for start, length in starts)))
