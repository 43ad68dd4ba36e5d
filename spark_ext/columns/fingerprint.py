"""128-bit hashes: of the identity of an ID, and of the content of a row.

The content is written as text that is equal if and only if the values are equal, and that text is hashed. The text of a
value tells where it ends: numbers end with a semicolon, text and binary values start with their length, arrays and maps
with the number of their elements. So NULL differs from an empty value, and no two rows share a text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_ext.columns.identity import without_padding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column

FINGERPRINT_LENGTH: Final = 16
_NULL: Final = "~"
"""No text of a value begins with it, as that of a negative number does with a dash."""

_AS_TEXT: Final = (
    T.BooleanType | T.IntegralType | T.NullType | T.TimestampNTZType | T.DayTimeIntervalType | T.YearMonthIntervalType
)
"""Types whose equal values have equal text and whose other values have other text, in every session."""


def sha_digits(value: Column) -> Column:
    """Return the first 128 bits of the SHA-256 of text or of a binary value, as 32 digits."""
    # A part of text costs a step for each of its characters, a part of a binary value does not.
    return F.substring(F.sha2(value, 256).cast("binary"), 1, 2 * FINGERPRINT_LENGTH).cast("string")


def hash_of(value: Column) -> Column:
    """Return the first 128 bits of the SHA-256 of text or of a binary value, as 16 bytes."""
    return F.unhex(sha_digits(value))


def fingerprint_of(columns: Iterable[tuple[Column, T.StructField]]) -> Column:
    """Return the fingerprint of some columns: 16 bytes, never NULL. Each column is given with its field of a schema.

    The order of the columns does not matter.

    Raises
    ------
    TypeError
        if a column has a type whose values cannot be compared.
    """
    parts, blobs = [], []
    for column, field in sorted(columns, key=lambda pair: (pair[1].name.lower(), pair[1].name)):
        if isinstance(field.dataType, T.BinaryType):
            # A binary column is usually the large payload: its bytes are hashed as they are, its length stands before.
            parts.append(F.coalesce(_ended(F.octet_length(column)), F.lit(_NULL)))
            blobs.append(F.coalesce(column, F.lit(b"")))
        else:
            parts.append(_encoded(without_padding(column, field), field.dataType, field.name))
    text = F.concat(F.lit(""), *parts)
    return hash_of(F.concat(text.cast("binary"), *blobs) if blobs else text)


def _encoded(value: Column, type: T.DataType, name: str) -> Column:
    """Return text that is equal if and only if two values of one type are equal; never NULL."""
    return F.coalesce(_of_value(value, type, name), F.lit(_NULL))


def _of_value(value: Column, type: T.DataType, name: str) -> Column:
    """Return the text of a value that is not NULL; NULL or any text if it is NULL."""
    if isinstance(type, T.StringType):
        plain = value.cast("string")
        return F.concat(F.octet_length(plain).cast("string"), F.lit(":"), plain)
    if isinstance(type, T.BinaryType):
        return _ended(F.hex(value))
    if isinstance(type, T.FloatType | T.DoubleType):
        # The text of a number depends on the version of Java. This hash is a one-to-one function of the bits, in which
        # Spark makes -0.0 equal to 0.0 and every NaN equal.
        return F.when(value.isNotNull(), _ended(F.xxhash64(value)))
    if isinstance(type, T.DecimalType):
        return _of_decimal(value, type)
    if isinstance(type, T.DateType):
        return _ended(F.unix_date(value))
    if isinstance(type, T.TimestampType):
        return _ended(F.unix_micros(value))
    if isinstance(type, _AS_TEXT) or type.typeName().startswith(("time", "interval")):
        return _ended(value)
    if isinstance(type, T.ArrayType):
        return _listed(F.transform(value, lambda element: _encoded(element, type.elementType, name)))
    if isinstance(type, T.MapType):
        entries = F.transform(
            F.map_entries(value),
            lambda entry: F.concat(
                _encoded(entry.getField("key"), type.keyType, name),
                _encoded(entry.getField("value"), type.valueType, name),
            ),
        )
        return _listed(F.array_sort(entries))
    if isinstance(type, T.StructType):
        parts = [_encoded(value.getField(field.name), field.dataType, name) for field in type]
        return F.when(value.isNotNull(), F.concat(F.lit("+"), *parts))
    raise TypeError(
        f"cannot compare column {name!r}: values of type {type.simpleString()} do not have a canonical form; "
        "cast it, for example to text by to_json, or leave it out"
    )


def _of_decimal(value: Column, type: T.DecimalType) -> Column:
    """Write a decimal without the zeros at both ends, so that its scale does not matter, as in ``1.5`` and ``1.50``.

    Plain text of a decimal depends on the session: Spark writes a small one with an exponent if ANSI mode is off.
    """
    whole = "0" * (type.precision - type.scale)
    digits = F.to_char(F.abs(value), F.lit(f"{whole}.{'0' * type.scale}" if type.scale else whole))
    with_point = digits if type.scale else F.concat(digits, F.lit("."))
    return F.concat(F.when(value < 0, F.lit("-")).otherwise(F.lit("")), _ended(F.btrim(with_point, F.lit("0"))))


def _ended(value: Column) -> Column:
    return F.concat(value.cast("string"), F.lit(";"))


def _listed(texts: Column) -> Column:
    """Write the number of texts and the texts."""
    return F.concat(_ended(F.size(texts)), F.array_join(texts, ""))
