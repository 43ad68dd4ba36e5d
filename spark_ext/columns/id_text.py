"""Check columns of text: IDs of each version, and UUIDs."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from msgid import layout

V0_DIGITS = tuple(2 * length for length in layout.V0_LENGTHS)
"""The digits of version-0 IDs in their bare forms: without the version byte."""
CANONICAL_DIGITS = tuple(2 + digits for digits in V0_DIGITS)
_UUID_LENGTH = 36
_UUID = r"\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\z"

VERSION_1_DIGITS = f"{layout.VERSION_1:02X}"


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
    return F.octet_length(text).isin(*CANONICAL_DIGITS) & text.startswith(layout.CANONICAL_V0_PREFIX)


def is_v0(text: Column) -> Column:
    """Return whether text is a version-0 ID, canonical or not."""
    return (F.octet_length(text).isin(*V0_DIGITS) | is_canonical_v0(text)) & is_hex(text)


def is_id(text: Column) -> Column:
    """Return whether text is an ID of any version; NULL for NULL."""
    shape = F.when(has_v1_shape(text) | is_canonical_v0(text), F.lit(True)).otherwise(
        F.octet_length(text).isin(*V0_DIGITS)
    )
    return shape & (is_hex(text) | text.isNull())


def is_uuid(text: Column) -> Column:
    """Return whether text is a UUID with dashes, in either case."""
    return (F.octet_length(text) == _UUID_LENGTH) & F.regexp_like(text, F.lit(_UUID))
