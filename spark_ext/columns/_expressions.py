"""The building blocks of the column functions: text checked, digits read, errors raised, structs that stay prunable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql import Column

from msgid import layout
from msgid._validate import QUOTED_LENGTH
from msgid.errors import InvalidMessageId
from msgid.ids._bytes import NOT_HEX, UNKNOWN_VERSION, WRONG_LENGTH
from spark_ext.columns._dialect import F, is_writing_sql

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

__all__ = [
    "CORRUPT",
    "OTHER_HEADER",
    "ColumnOrName",
    "byte_digits",
    "computed_below",
    "digits_to_bigint",
    "fill",
    "has_v1_shape",
    "hex_text",
    "is_canonical_v0",
    "is_hex",
    "is_id",
    "is_v0",
    "is_v1",
    "misfit_reason",
    "no_id_reason",
    "null_text",
    "padded_digits",
    "quoted_name",
    "raise_invalid",
    "reason",
    "seconds_digits",
    "struct_if",
    "v1_bytes",
]

ColumnOrName = Column | str

_V0_DIGITS = tuple(2 * length for length in layout.V0_LENGTHS)
_CANONICAL_DIGITS = tuple(2 + digits for digits in _V0_DIGITS)
CORRUPT = "_corrupt_record"
"""Where Spark keeps a line that does not fit its format."""
OTHER_HEADER = "header "
"""Before the header and the line, in that column, of a file that has another header than the first file."""

VERSION_1_DIGITS = f"{layout.VERSION_1:02X}"


def column(col: ColumnOrName) -> Column:
    """Give the column itself, or the one of that name."""
    return F.col(col) if isinstance(col, str) else col


def quoted_name(name: str) -> str:
    """Quote a column's name, in which Spark would take a dot for a struct's field."""
    return "`" + name.replace("`", "``") + "`"


def hex_text(col: ColumnOrName) -> Column:
    """Give an id column as text, whether it is text or binary; a number becomes text that is no id.

    The type is known when the query is planned: only the branch that is needed is left in the plan.
    """
    id = column(col)
    return F.when(F.typeof(id) == "binary", F.hex(id)).otherwise(id.cast("string"))


def null_text() -> Column:
    """Give a text that is NULL."""
    return F.lit(None).cast("string")


def is_hex(text: Column) -> Column:
    """Say whether text of an even length is hex digits alone; `unhex` knows nothing but those."""
    return F.unhex(text).isNotNull()


def has_v1_shape(text: Column) -> Column:
    """Say whether text has the length and the version byte of a version-1 id.

    Lengths are counted in bytes, which is at hand, where characters would have to be counted; what has others than
    ASCII is no hex.
    """
    return (F.octet_length(text) == layout.ID_DIGITS) & text.startswith(VERSION_1_DIGITS)


def is_v1(text: Column) -> Column:
    """Say whether text is a version-1 id."""
    raw = F.unhex(text)
    # What a condition names twice is computed once, and what comes under the condition uses it too.
    return has_v1_shape(text) & (F.octet_length(raw) == layout.ID_LENGTH) & raw.isNotNull()


def v1_bytes(text: Column) -> Column:
    """Give the 17 bytes of a version-1 id, and NULL for all else.

    What is computed from them needs no condition of its own: Spark computes what repeats in it once, which under a
    condition it does not.
    """
    return F.when(has_v1_shape(text), F.unhex(text))


def is_canonical_v0(text: Column) -> Column:
    """Say whether text has the length and the version byte of a version-0 id in its canonical form."""
    return F.octet_length(text).isin(*_CANONICAL_DIGITS) & text.startswith(layout.CANONICAL_V0_PREFIX)


def is_v0(text: Column) -> Column:
    """Say whether text is a version-0 id, canonical or not."""
    return (F.octet_length(text).isin(*_V0_DIGITS) | is_canonical_v0(text)) & is_hex(text)


def is_id(text: Column) -> Column:
    """Say whether text is an id of any version; NULL for NULL."""
    shape = F.when(has_v1_shape(text) | is_canonical_v0(text), F.lit(True)).otherwise(
        F.octet_length(text).isin(*_V0_DIGITS)
    )
    return shape & (is_hex(text) | text.isNull())


def digits_to_bigint(digits: Column) -> Column:
    """Read up to 15 hex digits, known to be such, as a bigint."""
    return F.conv(digits, 16, 10).cast("bigint")


def computed_below(number: Column) -> Column:
    """Have a number, which is not negative, computed once and before a condition that it stands under.

    Spark computes what repeats under a condition each time. But what `nullif` compares it computes in a projection
    below the query's, and drops that again where nothing asks for the number.
    """
    return number if is_writing_sql() else F.nullif(number, F.lit(-1))


def byte_digits(byte: Column, before: str = "", after: str = "") -> Column:
    """Write an int of 0 to 255 as two hex digits, with other text around them; NULL for anything above."""
    pairs = ", ".join(f"'{before}{value:02X}{after}'" for value in range(256))
    return F.get(F.expr(f"array({pairs})"), byte.cast("int"))


def padded_digits(number: Column, digits: int) -> Column:
    """Write a bigint as so many hex digits, 15 at most: with a bit above them set, none is left out."""
    return F.substring(F.hex(number.bitwiseOR(1 << 4 * digits)), 2, digits)


def seconds_digits(at: Column) -> Column:
    """Write the seconds field of a moment: since 2021, rounded down, modulo 2**32.

    A text, a date or a timestamp without time zone fails the query: its moment would depend on the session's zone.
    """
    moment = at.cast("timestamp")
    if not is_writing_sql():  # whose parameters have types
        kind = F.typeof(at)
        wrong = F.concat(F.lit("at must be a timestamp with time zone or Unix seconds, got a column of type "), kind)
        moment = F.when(kind.isin("string", "date", "timestamp_ntz"), F.raise_error(wrong)).otherwise(moment)
    seconds = F.unix_seconds(moment) - layout.EPOCH_UNIX
    return padded_digits(seconds.bitwiseAND(layout.UINT32_MASK), 8)


def fill(template: str, **blanks: Column) -> Column:
    """Fill in a text with ``{blanks}``, as `str.format` does, with columns."""
    parts = re.split(r"\{(\w+)\}", template)
    return F.concat(*(blanks[part] if place % 2 else F.lit(part) for place, part in enumerate(parts)))


def quoted(text: Column) -> Column:
    """Quote what was given, shortened, as `msgid._validate.quote` does."""
    length = F.length(text)
    start = F.concat(F.lit("'"), F.left(text, F.lit(QUOTED_LENGTH)), F.lit("'"))
    return F.when(length <= QUOTED_LENGTH, start).otherwise(
        fill("{start}... ({n} in all)", start=start, n=length.cast("string"))
    )


def reason(text: Column) -> Column:
    """Say why text is no id of any version, in the words of `msgid.ids._bytes`; NULL where it is one, or is NULL."""
    length = F.length(text)
    known = F.lit(False)
    for digits in (*_V0_DIGITS, *_CANONICAL_DIGITS):
        known = known | (length == digits)
    version = digits_to_bigint(F.left(text, F.lit(2)))
    return (
        F.when(text.isNull() | is_id(text), null_text())
        .when(~known, fill(WRONG_LENGTH, length=length.cast("string")))
        .when(F.unhex(text).isNull(), F.lit(NOT_HEX))
        .otherwise(fill(UNKNOWN_VERSION, version=version.cast("string")))
    )


def misfit_reason(df: DataFrame) -> Column:
    """Say why a row of a file is none, where Spark could not read its line; else NULL."""
    if CORRUPT not in df.columns:
        return null_text()
    line = F.col(CORRUPT)
    header = F.concat(F.lit("the file has another header than the first file: "), F.substring_index(line, "\n", 1))
    misfit = F.when(line.startswith(OTHER_HEADER) & line.contains("\n"), header)
    return F.when(line.isNotNull(), F.coalesce(misfit, F.lit("the line does not fit the format")))


def no_id_reason(text: Column) -> Column:
    """Say why a row has no good id, also where it has none; NULL where it has."""
    return F.when(text.isNull(), F.lit("no id")).otherwise(reason(text))


def raise_invalid(text: Column, otherwise: str) -> Column:
    """Raise for a text that is not the id that was asked for; ``otherwise`` is the reason for one of another kind."""
    why = F.coalesce(reason(text), F.lit(otherwise))
    return F.raise_error(fill(str(InvalidMessageId("{shown}", "{reason}")), shown=quoted(text), reason=why))


def struct_if(text: Column, exists: Column, otherwise: Column | None, fields: Mapping[str, Column]) -> Column:
    """Make a struct of ``fields`` where ``exists``, NULL where ``text`` is, and ``otherwise`` elsewhere.

    A CASE around a struct would compute all fields whenever one is asked for. Adding the fields to a struct that may
    be NULL says the same, and the optimizer then drops what is not asked for.
    """
    if is_writing_sql():  # which has no way to add a field
        pairs = [part for name, field in fields.items() for part in (F.lit(name), field)]
        whole = F.when(exists, F.named_struct(*pairs))
        return whole if otherwise is None else whole.when(text.isNotNull(), otherwise)
    result = F.when(exists, F.struct(F.lit(True).alias("_")))
    if otherwise is not None:
        result = result.when(text.isNotNull(), otherwise)
    for name, field in fields.items():
        result = result.withField(name, field)
    return result.dropFields("_")
