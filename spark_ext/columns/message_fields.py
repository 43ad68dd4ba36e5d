"""Columns of the IDs of Iggy messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from spark_ext.columns._expressions import VERSION_1_DIGITS, column, has_v1_shape, hex_text, is_hex, is_v1

if TYPE_CHECKING:
    from pyspark.sql import Column

    from spark_ext.columns._expressions import ColumnOrName

_UUID_DIGITS: Final = 36


def id_from_iggy_id(col: ColumnOrName, version_1: bool = False) -> Column:
    """Return the ID of an Iggy message as text, as `msgid.iggy.id_text` does.

    Parameters
    ----------
    col : Column or str
        The 16 bytes of the ID, as in the message and in the column ``id`` of ``format("iggy")``; or the 17 bytes of a
        version-1 ID.
    version_1 : bool
        Whether the 16 bytes are the body of a version-1 ID. The bytes do not tell that.

    Returns
    -------
    Column
        A UUID, or a version-1 ID of 34 hex digits; NULL for any other value.

    Examples
    --------
    >>> df = spark.createDataFrame([(bytes.fromhex("74b158caddb3498fb0a99eec1c6197ae"),)], ["id"])
    >>> df.select(id_from_iggy_id("id")).show(truncate=False)
    +------------------------------------+
    |id_from_iggy_id                       |
    +------------------------------------+
    |74b158ca-ddb3-498f-b0a9-9eec1c6197ae|
    +------------------------------------+
    """
    digits = F.hex(column(col).cast("binary"))
    starts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    uuid = F.lower(F.concat_ws("-", *(F.substring(digits, start, length) for start, length in starts)))
    text = F.concat(F.lit(VERSION_1_DIGITS), digits) if version_1 else uuid
    of_16_bytes = F.when(F.length(digits) == 32, text)  # noqa: PLR2004
    return of_16_bytes.when(has_v1_shape(digits), digits).alias("id_from_iggy_id")


def id_to_iggy_id(col: ColumnOrName) -> Column:
    """Return the 16 bytes of an Iggy message's ID from its text; the reverse of `id_from_iggy_id`.

    Parameters
    ----------
    col : Column or str
        Version-1 IDs as text or as 17 bytes, or UUIDs as text.

    Returns
    -------
    Column
        Binary(16); NULL for any other value.

    Examples
    --------
    >>> df = spark.createDataFrame([("0156F7E71C361B21BC024CCDBE00000000",)], ["id"])
    >>> df.select(id_from_iggy_id(id_to_iggy_id("id"), version_1=True)).show(truncate=False)
    +----------------------------------+
    |id_from_iggy_id                     |
    +----------------------------------+
    |0156F7E71C361B21BC024CCDBE00000000|
    +----------------------------------+
    """
    text = hex_text(col)
    bare = F.regexp_replace(text, r"\A(.{8})-(.{4})-(.{4})-(.{4})-(.{12})\z", "$1$2$3$4$5")
    is_uuid = (F.octet_length(text) == _UUID_DIGITS) & (F.octet_length(bare) == 32) & is_hex(bare)  # noqa: PLR2004
    return F.when(is_v1(text), F.unhex(F.substring(text, 3, 32))).when(is_uuid, F.unhex(bare)).alias("id_to_iggy_id")
