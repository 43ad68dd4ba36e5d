"""The reason why a row lacks an ID, in the words of `msgid`: as a column, or as an error of the query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from msgid import layout
from msgid.errors import InvalidMessageId
from msgid.ids.checked_bytes import IS_UUID, NOT_HEX, UNKNOWN_VERSION, WRONG_LENGTH
from msgid.shared.validate import QUOTED_LENGTH
from spark_ext.columns.building import fill, null_text
from spark_ext.columns.id_text import CANONICAL_DIGITS, V0_DIGITS, has_v1_shape, is_uuid

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CORRUPT = "_corrupt_record"
"""The column of lines that do not fit their format."""
CORRUPT_REASON = "_corrupt_reason"
"""The column of the reason, if the reader of the file knows it."""


def quoted(text: Column) -> Column:
    """Quote a text, shortened, as `msgid.shared.validate.quote` does."""
    length = F.length(text)
    more = F.when(length > QUOTED_LENGTH, fill("... ({n} in all)", n=length.cast("string"))).otherwise(F.lit(""))
    return F.concat(F.lit("'"), F.left(text, F.lit(QUOTED_LENGTH)), F.lit("'"), more)


def reason(text: Column, of_an_id: str | None = None) -> Column:
    """Return why text is not an ID, in the words of `msgid.ids.checked_bytes`; ``of_an_id`` for an ID and for NULL."""
    length = F.length(text)
    known = length.isin(*V0_DIGITS, *CANONICAL_DIGITS)
    version = F.conv(F.left(text, F.lit(2)), 16, 10)
    is_canonical = text.startswith(layout.CANONICAL_V0_PREFIX)
    is_unknown = F.octet_length(text).isin(*CANONICAL_DIGITS) & ~is_canonical & ~has_v1_shape(text)
    reason_of_text = (
        F.when(is_uuid(text), F.lit(IS_UUID))
        .when(~known, fill(WRONG_LENGTH, length=length.cast("string")))
        .when(text.isNotNull() & F.unhex(text).isNull(), F.lit(NOT_HEX))
        .when(is_unknown, fill(UNKNOWN_VERSION, version=version))
    )
    return reason_of_text if of_an_id is None else reason_of_text.otherwise(F.lit(of_an_id))


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
