"""The parts of the column functions: check text, read digits, raise errors, and build structs that Spark can prune."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, ByteType, IntegerType, LongType, ShortType, StringType

from msgid import layout
from msgid._validate import QUOTED_LENGTH, quote
from msgid.errors import InvalidMessageId
from msgid.ids._bytes import IS_UUID, NOT_HEX, UNKNOWN_VERSION, WRONG_LENGTH
from spark_ext._compat import try_cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

ColumnOrName = Column | str

V0_DIGITS = tuple(2 * length for length in layout.V0_LENGTHS)
"""The digits of version-0 IDs in their bare forms: without the version byte."""
_CANONICAL_DIGITS = tuple(2 + digits for digits in V0_DIGITS)
_VALUE = re.compile(
    r"[^`]*://[^`]*|(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)/[A-Za-z_/]+"
)
"""Text that is a value and not the name of a column, except in backquotes: the name of a log, or of a time zone."""
_UUID_LENGTH = 36
_UUID = r"\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\z"
CORRUPT = "_corrupt_record"
"""The column of lines that do not fit their format."""
CORRUPT_REASON = "_corrupt_reason"
"""The column of the reason, if the reader of the file knows it."""

INTEGERS = ("tinyint", "smallint", "int", "bigint")
INTEGER_TYPES = (ByteType, ShortType, IntegerType, LongType)
_INTEGER_DIGITS = r"\A-?\d{1,19}\z"
"""The integer types, as `typeof` names them."""
MOMENTS = ("timestamp", "float", "double", "decimal", *INTEGERS)
"""The types of a moment that does not depend on the session's time zone."""

VERSION_1_DIGITS = f"{layout.VERSION_1:02X}"


def has_slash(df: DataFrame, names: Sequence[str]) -> list[bool | None]:
    """Return whether columns of text have values with a '/'; a query answers if there are several such columns."""
    cells = [F.col(quoted_name(name)) for name in names if isinstance(type_of(df, name), StringType | BinaryType)]
    found = df.select(*(F.max(cell.cast("string").contains("/")) for cell in cells)).collect() if cells[1:] else ((),)
    return [*found[0]]


def column(col: ColumnOrName, argument: str = "a column") -> Column:
    """Return the column itself, or the column of that name; any other value raises an error with the argument.

    Spark would report the name of a log or of a time zone as a missing column, above kilobytes of its plan.
    """
    if isinstance(col, str):
        if _VALUE.fullmatch(col):
            raise ValueError(
                f"{argument} must be a Column or the name of a column, got {quote(col)}: pass lit() of a value"
            )
        return F.col(col)
    if not hasattr(col, "cast"):
        raise TypeError(f"{argument} must be a Column or the name of a column, got {quote(col)}: pass lit() of a value")
    return col


def quoted_name(name: str) -> str:
    """Quote a column's name, because Spark reads a dot as a field of a struct."""
    return "`" + name.replace("`", "``") + "`"


def of_types(
    function: str, argument: str, col: Column, allowed: str, types: Sequence[str], returns: str = "string"
) -> Callable[[Column], Column]:
    """Return a function that adds a type check to a column: a wrong type is an error before the query runs.

    The field name of `date_part` is evaluated when Spark resolves the query, and Spark quotes an unknown one in its
    error. The optimizer removes the branch.

    Parameters
    ----------
    function, argument : str
        The names that the error shows.
    col : Column
        The column whose type is checked.
    allowed : str
        The types for the error, in words.
    types : sequence of str
        The allowed types, as `typeof` names them, without parameters.
    returns : str
        Type of the column to which the check is added. Without ANSI mode, Spark does not convert text to it.
    """
    type = F.typeof(col)
    # The type's name without its parameters: decimal(20,0), varchar(10), string collate UTF8_LCASE.
    fits = F.substring_index(F.substring_index(type, "(", 1), " ", 1).isin("void", *types)
    message = F.concat(F.lit(f"{function}: {argument} must be {allowed}, got "), type)
    # Not from the column itself: Spark would first refuse the cast of a type such as binary, with its whole plan.
    check = F.date_part(F.when(fits, F.lit("SECOND")).otherwise(message), F.lit(None).cast("timestamp_ltz"))
    return lambda result: F.coalesce(result, F.when(F.lit(False), check.cast(returns)))


def null_text() -> Column:
    """Return a text that is NULL."""
    return F.lit(None).cast("string")


def is_hex(text: Column) -> Column:
    """Return whether text of an even length consists of hex digits: `unhex` gives NULL for any other text."""
    return F.unhex(text).isNotNull()


def has_v1_shape(text: Column) -> Column:
    """Return whether text has the length and the version byte of a version-1 ID.

    Spark knows the length in bytes, but has to count characters. Text that is not ASCII is not hex either.
    """
    return (F.octet_length(text) == layout.ID_DIGITS) & text.startswith(VERSION_1_DIGITS)


def is_v1(text: Column) -> Column:
    """Return whether text is a version-1 ID."""
    raw = F.unhex(text)
    # Spark evaluates a repeated part of a condition once, and uses it again below the condition.
    return has_v1_shape(text) & (F.octet_length(raw) == layout.ID_LENGTH) & raw.isNotNull()


def v1_bytes(text: Column) -> Column:
    """Return the 17 bytes of a version-1 ID; NULL for any other text.

    Expressions of these bytes need no condition of their own. Spark evaluates a repeated part once only if it does not
    stand below a condition.
    """
    return F.when(has_v1_shape(text), F.unhex(text))


def is_canonical_v0(text: Column) -> Column:
    """Return whether text has the length and the version byte of a version-0 ID in its canonical form."""
    return F.octet_length(text).isin(*_CANONICAL_DIGITS) & text.startswith(layout.CANONICAL_V0_PREFIX)


def is_v0(text: Column) -> Column:
    """Return whether text is a version-0 ID, canonical or not."""
    return (F.octet_length(text).isin(*V0_DIGITS) | is_canonical_v0(text)) & is_hex(text)


def is_id(text: Column) -> Column:
    """Return whether text is an ID of any version; NULL for NULL."""
    shape = F.when(has_v1_shape(text) | is_canonical_v0(text), F.lit(True)).otherwise(
        F.octet_length(text).isin(*V0_DIGITS)
    )
    return shape & (is_hex(text) | text.isNull())


def digits_to_bigint(digits: Column) -> Column:
    """Read up to 15 hex digits, known to be such, as a bigint."""
    return F.conv(digits, 16, 10).cast("bigint")


def computed_below(value: Column, never: int | str = -1) -> Column:
    """Return the same value, computed once, also where it is used several times below a condition.

    Spark evaluates an expression that repeats below a condition each time. But it evaluates the argument of `nullif`
    in a projection below the query's, and drops that projection where nothing uses the value. ``never`` is a literal
    that the value never equals.

    This holds only where the whole expression is always evaluated. In a branch of a `CASE`, Spark puts the argument
    back into each place that uses it. So write a condition beside the value: `coalesce(value, ...)` always evaluates
    its first argument, and `value | CASE WHEN condition THEN 0 END` is NULL without the condition.
    """
    return F.nullif(value, F.lit(never))


def text_table(entries: Iterable[object], type: str = "string") -> Column:
    """Return an array of constants, written as one literal: Spark parses that much faster than a call of `array`.

    The optimizer folds the array into a constant. No entry may contain a comma.
    """
    texts = F.split(F.lit(",".join(map(str, entries))), ",")
    return texts if type == "string" else texts.cast(f"array<{type}>")


def byte_digits(byte: Column, before: str = "", after: str = "") -> Column:
    """Write an int of 0 to 255 as two hex digits, with other text around them; NULL for anything above."""
    return F.get(text_table(f"{before}{value:02X}{after}" for value in range(256)), byte.cast("int"))


def padded_digits(number: Column, digits: int) -> Column:
    """Write a bigint as ``digits`` hex digits, at most 15. A bit above them is set, so that leading zeros are kept."""
    return cut(F.hex(number.bitwiseOR(1 << 4 * digits)), 2, digits)


def cut(ascii: Column, start: int, digits: int) -> Column:
    """Return a part of an ASCII text, from 1, as binary for `joined`: Spark counts the characters of a text first."""
    return F.substring(ascii.cast("binary"), start, digits)


def joined(*parts: Column) -> Column:
    """Return texts and binaries, one after the other, as a text."""
    return F.concat(*(part.cast("binary") for part in parts)).cast("string")


def fill(template: str, **blanks: Column) -> Column:
    """Fill in a text with ``{blanks}``, as `str.format` does, with columns."""
    parts = re.split(r"\{(\w+)\}", template)
    return F.concat(*(blanks[part] if place % 2 else F.lit(part) for place, part in enumerate(parts) if part))


def quoted(text: Column) -> Column:
    """Quote a text, shortened, as `msgid._validate.quote` does."""
    length = F.length(text)
    more = F.when(length > QUOTED_LENGTH, fill("... ({n} in all)", n=length.cast("string"))).otherwise(F.lit(""))
    return F.concat(F.lit("'"), F.left(text, F.lit(QUOTED_LENGTH)), F.lit("'"), more)


def is_uuid(text: Column) -> Column:
    """Return whether text is a UUID with dashes, in either case."""
    return (F.octet_length(text) == _UUID_LENGTH) & F.regexp_like(text, F.lit(_UUID))


def reason(text: Column, of_an_id: str | None = None) -> Column:
    """Return why text is not an ID, in the words of `msgid.ids._bytes`; ``of_an_id`` for an ID and for NULL."""
    length = F.length(text)
    known = length.isin(*V0_DIGITS, *_CANONICAL_DIGITS)
    version = F.conv(F.left(text, F.lit(2)), 16, 10)
    is_canonical = text.startswith(layout.CANONICAL_V0_PREFIX)
    is_unknown = F.octet_length(text).isin(*_CANONICAL_DIGITS) & ~is_canonical & ~has_v1_shape(text)
    found = (
        F.when(is_uuid(text), F.lit(IS_UUID))
        .when(~known, fill(WRONG_LENGTH, length=length.cast("string")))
        .when(text.isNotNull() & F.unhex(text).isNull(), F.lit(NOT_HEX))
        .when(is_unknown, fill(UNKNOWN_VERSION, version=version))
    )
    return found if of_an_id is None else found.otherwise(F.lit(of_an_id))


def misfit_reason(df: DataFrame) -> Column:
    """Return the reason for a line of a file that Spark could not read; NULL for any other row."""
    if CORRUPT not in df.columns:
        return null_text()
    why = F.col(CORRUPT_REASON) if CORRUPT_REASON in df.columns else null_text()
    return F.when(F.col(CORRUPT).isNotNull(), F.coalesce(why, F.lit("the line does not fit the format")))


def no_id_reason(text: Column) -> Column:
    """Return why a row lacks a valid ID; NULL if it has one."""
    return F.when(text.isNull(), F.lit("no id")).otherwise(reason(text))


def raise_invalid(text: Column, otherwise: str) -> Column:
    """Raise an error for text that is not the required ID; ``otherwise`` is the reason for an ID of another kind."""
    why = reason(text, of_an_id=otherwise)
    return F.raise_error(fill(str(InvalidMessageId("{shown}", "{reason}")), shown=quoted(text), reason=why))


def struct_if(text: Column, exists: Column, otherwise: Column | None, fields: Mapping[str, Column]) -> Column:
    """Return a struct of ``fields`` where ``exists``, NULL where ``text`` is, and ``otherwise`` elsewhere.

    A CASE around a struct would compute all fields whenever one is asked for. Adding the fields to a struct that may
    be NULL means the same, and the optimizer then drops the fields that the query does not use.
    """
    result = F.when(exists, F.struct(F.lit(True).alias("_")))
    if otherwise is not None:
        result = result.when(text.isNotNull(), otherwise)
    for name, field in fields.items():
        result = result.withField(quoted_name(name), field)  # Spark parses a name, by the rules of the session
    return result.dropFields("_")


def type_of(df: DataFrame, name: str) -> DataType | None:
    """Return the type of a column, or None if the DataFrame does not have it."""
    return next((field.dataType for field in df.schema if field.name == name), None)


def integer_column(df: DataFrame, name: str) -> Column:
    """Return a column of integers, or of their digits as text, as bigint; NULL if it holds anything else."""
    column, type = F.col(quoted_name(name)), type_of(df, name)
    if isinstance(type, INTEGER_TYPES):
        return column.cast("bigint")
    if isinstance(type, StringType):
        return F.when(column.rlike(_INTEGER_DIGITS), try_cast(column, "bigint"))
    raise ValueError(f"{name} must be a column of integers, got {'no column' if type is None else type.simpleString()}")
