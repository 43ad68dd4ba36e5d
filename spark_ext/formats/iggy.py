"""Columns of Iggy messages: one encoded message per row, or one poll response per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgid.errors import InvalidMessage
from msgid.iggy._wire import AUTO, Layout, name_of
from msgid.iggy.json_form import messages_from_json
from msgid.iggy.log import encode
from msgid.iggy.poll import decode_poll
from msgid.iggy.table import decode_table
from spark_ext.columns._udfs import arrow_column, each

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow
    from pyspark.sql import Column

    from spark_ext.columns._expressions import ColumnOrName

_POLL_HEAD: Final = 16
"""The bytes of a poll response before its messages."""


def iggy_message(col: ColumnOrName, layout: Layout = "m45") -> Column:
    """Decode an Iggy message, as `msgid.iggy.decode` does.

    The function is an Arrow UDF and needs a Python worker. The query fails if a value is malformed; `try_iggy_message`
    returns NULL instead.

    Parameters
    ----------
    col : Column or str
        Binary column with one encoded message per row.
    layout : str
        A layout of `msgid.iggy.LAYOUTS`, or ``auto`` to find the layout by checksum.

    Returns
    -------
    Column
        A struct of ``offset``, ``state``, ``timestamp``, ``id`` binary(16), ``checksum``, ``headers`` and ``payload``;
        NULL for NULL.

    Examples
    --------
    >>> from msgid import iggy
    >>> df = spark.createDataFrame([(iggy.encode(iggy.Message.new(b"hello", id=7, offset=3)),)], ["raw"])
    >>> df.select(iggy_message("raw").alias("m")).select("m.offset", "m.state", "m.checksum").show()
    +------+---------+---------+
    |offset|    state| checksum|
    +------+---------+---------+
    |     3|available|907060870|
    +------+---------+---------+
    """
    name_of(layout, auto=True)
    return arrow_column(_decoded(layout), message_type(), col).alias("iggy_message")


def try_iggy_message(col: ColumnOrName, layout: Layout = "m45") -> Column:
    """Decode an Iggy message, as `iggy_message` does; return NULL for a malformed value.

    Parameters
    ----------
    col : Column or str
        Binary column with one encoded message per row.
    layout : str
        A layout of `msgid.iggy.LAYOUTS`, or ``auto`` to find the layout by checksum.

    Returns
    -------
    Column
        A struct as `iggy_message` returns it, or NULL.

    Examples
    --------
    >>> df = spark.createDataFrame([(b"no message",)], ["raw"])
    >>> df.select(try_iggy_message("raw").isNull().alias("none")).show()
    +----+
    |none|
    +----+
    |true|
    +----+
    """
    name_of(layout, auto=True)
    return arrow_column(_decoded(layout, lenient=True), message_type(), col).alias("try_iggy_message")


def iggy_messages(col: ColumnOrName, layout: Layout = "auto") -> Column:
    """Decode the messages of a poll response, as `msgid.iggy.decode_poll` does.

    The function is an Arrow UDF and needs a Python worker. The query fails if a value is malformed;
    `try_iggy_messages` returns NULL instead.

    Parameters
    ----------
    col : Column or str
        Binary column with one poll response per row.
    layout : str
        Layout of the messages, one of `msgid.iggy.LAYOUTS`. Default: found by checksum.

    Returns
    -------
    Column
        An array of structs as `iggy_message` returns them; NULL for NULL.

    Examples
    --------
    >>> from msgid import iggy
    >>> response = iggy.PollResponse(1, 9, [iggy.Message.new(b"a", id=1), iggy.Message.new(b"b", id=2)])
    >>> df = spark.createDataFrame([(iggy.encode_poll(response),)], ["raw"])
    >>> df.select(iggy_messages("raw").payload.alias("payloads")).show()
    +------------+
    |    payloads|
    +------------+
    |[[61], [62]]|
    +------------+
    """
    name_of(layout, auto=True)
    return each(of_poll(layout), message_type(many=True), col, "iggy_messages")


def try_iggy_messages(col: ColumnOrName, layout: Layout = "auto") -> Column:
    """Decode the messages of a poll response, as `iggy_messages` does; return NULL for a malformed value.

    Parameters
    ----------
    col : Column or str
        Binary column with one poll response per row.
    layout : str
        Layout of the messages, one of `msgid.iggy.LAYOUTS`. Default: found by checksum.

    Returns
    -------
    Column
        An array of structs as `iggy_message` returns them, or NULL.

    Examples
    --------
    >>> df = spark.createDataFrame([(b"no response",)], ["raw"])
    >>> df.select(try_iggy_messages("raw").isNull().alias("none")).show()
    +----+
    |none|
    +----+
    |true|
    +----+
    """
    name_of(layout, auto=True)
    return each(of_poll(layout), message_type(many=True), col, "try_iggy_messages", lenient=True)


def message_type(*, many: bool = False) -> pyarrow.DataType:
    """Return the type of a message, a row of `msgid.iggy.table.schema`, or of an array of them."""
    import pyarrow

    from msgid.iggy.table import schema

    message = pyarrow.struct(list(schema()))
    return pyarrow.list_(message) if many else message


def decode_each(values: Any, layout: Layout) -> tuple[Any, list[InvalidMessage | None]]:
    """Decode one message per value; return the structs, NULL for malformed values, and the error of each value."""
    import numpy as np
    import pyarrow as pa

    raws: list[bytes | None] = values.to_pylist()
    present = [raw for raw in raws if raw is not None]
    found = decode_table(b"".join(present), layout)
    starts = np.cumsum([0, *map(len, present)])
    if found.error is None and not found.malformed and np.array_equal([*found.positions, found.length], starts):
        # The usual case: no value is malformed, and all values were decoded at once.
        rows = pa.StructArray.from_arrays(found.table.columns, fields=list(found.table.schema))
        if len(present) < len(raws):
            place = iter(range(len(present)))
            rows = rows.take(pa.array([None if raw is None else next(place) for raw in raws], pa.int64()))
        return rows, [None] * len(raws)
    read: list[dict[str, Any] | None] = []
    errors: list[InvalidMessage | None] = []
    for raw in raws:
        row, wrong = (None, None) if raw is None else _one_or_error(raw, layout)
        read.append(row)
        errors.append(wrong)
    layouts = {row["layout"] for row in read if row is not None}
    if layout == AUTO and len(layouts) == 1:
        # A message with a wrong checksum is decoded in the layout of the others, to get an exact reason.
        (known,) = layouts
        for number, raw in enumerate(raws):
            if raw is not None and errors[number] is not None:
                read[number], errors[number] = _one_or_error(raw, known)
    return pa.array(read, message_type()), errors


def _one_or_error(raw: bytes, layout: Layout) -> tuple[dict[str, Any] | None, InvalidMessage | None]:
    try:
        return _one(raw, layout), None
    except InvalidMessage as error:
        return None, error


def _one(raw: bytes, layout: Layout) -> dict[str, Any]:
    rows = _rows(raw, layout)
    if len(rows) != 1:
        raise InvalidMessage(f"must be one message, got {len(rows)}", 0)
    return rows[0]


def _rows(raw: bytes, layout: Layout) -> list[dict[str, Any]]:
    found = decode_table(raw, layout)
    if found.error is not None:
        raise found.error
    if found.malformed:
        raise found.malformed[0].error
    rows: list[dict[str, Any]] = found.table.to_pylist()
    return rows


def _decoded(layout: Layout, *, lenient: bool = False) -> Callable[[Any], Any]:
    def decoded(values: Any) -> Any:
        rows, errors = decode_each(values, layout)
        wrong = next((error for error in errors if error is not None), None)
        if wrong is not None and not lenient:
            raise wrong
        return rows

    return decoded


def of_poll(layout: Layout) -> Callable[[bytes], list[dict[str, Any]]]:
    """Return the function that decodes a poll response to rows."""

    def read(raw: bytes) -> list[dict[str, Any]]:
        read_as: Any = decode_poll(raw, layout).layout
        return [] if read_as is None else _rows(raw[_POLL_HEAD:], read_as)

    return read


def of_json(text: bytes) -> list[dict[str, Any]]:
    """Decode JSON to rows: a message, an array of messages, or an object with an array ``messages``."""
    rows = []
    for message in messages_from_json(text):
        layout: Any = message.layout
        rows += _rows(encode(message, layout), layout)
    return rows
