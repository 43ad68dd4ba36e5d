"""What ids travel in, a column at a time: Iggy's and Danube's messages, their states, checksums, ids and names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgid.iggy.wire import Layout, shape_of
from msgid.state import CODES, MessageState
from spark_ext.dialect import F
from spark_ext.expressions import VERSION_1_DIGITS, column, fill, hex_text, is_hex, is_v1
from spark_ext.making import position_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow
    from pyspark.sql import Column

    from spark_ext.expressions import ColumnOrName

__all__ = [
    "checksum_ok",
    "danube_id",
    "danube_message",
    "id_to_iggy_id",
    "iggy_id_to_id",
    "iggy_message",
    "iggy_messages",
    "message_state",
    "normalize_name",
    "try_danube_message",
    "try_iggy_message",
    "try_iggy_messages",
    "try_normalize_name",
]

_BIGINT_MAX: Final = (1 << 63) - 1
_UUID_DIGITS: Final = 36


def message_state(code: ColumnOrName) -> Column:
    """Name the state of a message by its code, as `msgid.MessageState` does.

    Parameters
    ----------
    code : Column or str
        integers: 1, 10, 20 or 30.

    Returns
    -------
    Column
        ``available``, ``unavailable``, ``poisoned`` or ``marked_for_deletion``; NULL for NULL. Fails the query on any
        other code with the error condition ``USER_RAISED_EXCEPTION``.

    Examples
    --------
    >>> df = spark.createDataFrame([(20,)], ["code"])
    >>> df.select(message_state("code")).show()
    +-------------+
    |message_state|
    +-------------+
    |     poisoned|
    +-------------+
    """
    number = column(code).cast("bigint")
    named = F.when(number.isNull(), F.lit(None).cast("string"))
    for state in MessageState:
        named = named.when(number == int(state), F.lit(str(state)))
    refused = fill("invalid message: state {code}, not " + CODES, code=number.cast("string"))
    return named.otherwise(F.raise_error(refused)).alias("message_state")


def checksum_ok(payload: ColumnOrName, checksum: ColumnOrName) -> Column:
    """Say whether a checksum is the CRC-32 of a payload, as `msgid.iggy.checksum` makes it.

    Parameters
    ----------
    payload : Column or str
        binary.
    checksum : Column or str
        integers of 0 to 2**32 - 1.

    Returns
    -------
    Column
        boolean; NULL where an argument is.

    Examples
    --------
    >>> df = spark.createDataFrame([(b"orders_data_2", 2144931076)], ["payload", "checksum"])
    >>> df.select(checksum_ok("payload", "checksum")).show()
    +-----------+
    |checksum_ok|
    +-----------+
    |       true|
    +-----------+
    """
    return (F.crc32(column(payload)) == column(checksum)).alias("checksum_ok")


def iggy_id_to_id(col: ColumnOrName) -> Column:
    """Write the id of an Iggy message as the identity it is, as `msgid.iggy.id_text` does.

    Parameters
    ----------
    col : Column or str
        binary(16), as on the wire and as ``format("iggy")`` gives it.

    Returns
    -------
    Column
        a version-1 id of 34 hex digits, or the UUIDv4 that a server made; NULL where there are no 16 bytes.

    Examples
    --------
    >>> df = spark.createDataFrame([(bytes.fromhex("74b158caddb3498fb0a99eec1c6197ae"),)], ["id"])
    >>> df.select(iggy_id_to_id("id")).show(truncate=False)
    +------------------------------------+
    |iggy_id_to_id                       |
    +------------------------------------+
    |74b158ca-ddb3-498f-b0a9-9eec1c6197ae|
    +------------------------------------+
    """
    digits = F.hex(column(col).cast("binary"))
    is_uuid = (F.substring(digits, 13, 1) == "4") & F.substring(digits, 17, 1).isin("8", "9", "A", "B")
    starts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    uuid = F.lower(F.concat_ws("-", *(F.substring(digits, start, length) for start, length in starts)))
    text = F.when(is_uuid, uuid).otherwise(F.concat(F.lit(VERSION_1_DIGITS), digits))
    return F.when(F.length(digits) == 32, text).alias("iggy_id_to_id")  # noqa: PLR2004  # 16 bytes


def id_to_iggy_id(col: ColumnOrName) -> Column:
    """Give the 16 bytes that `iggy_id_to_id` wrote as text.

    Parameters
    ----------
    col : Column or str
        version-1 ids, as text or binary(17), or UUIDs as text.

    Returns
    -------
    Column
        binary(16); NULL where there is neither.

    Examples
    --------
    >>> df = spark.createDataFrame([("0156F7E71C361B21BC024CCDBE00000000",)], ["id"])
    >>> df.select(iggy_id_to_id(id_to_iggy_id("id"))).show(truncate=False)
    +----------------------------------+
    |iggy_id_to_id                     |
    +----------------------------------+
    |0156F7E71C361B21BC024CCDBE00000000|
    +----------------------------------+
    """
    text = hex_text(col)
    bare = F.regexp_replace(text, r"\A(.{8})-(.{4})-(.{4})-(.{4})-(.{12})\z", "$1$2$3$4$5")
    is_uuid = (F.octet_length(text) == _UUID_DIGITS) & (F.octet_length(bare) == 32) & is_hex(bare)  # noqa: PLR2004
    return F.when(is_v1(text), F.unhex(F.substring(text, 3, 32))).when(is_uuid, F.unhex(bare)).alias("id_to_iggy_id")


def normalize_name(col: ColumnOrName) -> Column:
    """Give names of streams and topics their normal form, as `msgid.normalize_name` does.

    An Arrow UDF: it needs a Python worker.

    Parameters
    ----------
    col : Column or str
        text.

    Returns
    -------
    Column
        text; NULL for NULL. Fails the query on what is no name; `try_normalize_name` gives NULL.

    Examples
    --------
    >>> df = spark.createDataFrame([("  My Orders ",)], ["name"])
    >>> df.select(normalize_name("name")).show()
    +--------------+
    |normalize_name|
    +--------------+
    |     my.orders|
    +--------------+
    """
    return _each(_normal, _text_type(), col, "normalize_name")


def try_normalize_name(col: ColumnOrName) -> Column:
    """Give names their normal form, as `normalize_name` does, or NULL where there is none.

    Parameters
    ----------
    col : Column or str
        text.

    Returns
    -------
    Column
        text, or NULL.

    Examples
    --------
    >>> df = spark.createDataFrame([("a/b",)], ["name"])
    >>> df.select(try_normalize_name("name")).show()
    +------------------+
    |try_normalize_name|
    +------------------+
    |              NULL|
    +------------------+
    """
    return _each(_normal, _text_type(), col, "try_normalize_name", lenient=True)


def iggy_message(col: ColumnOrName, layout: Layout = "current") -> Column:
    """Read encoded Iggy messages, one a row, as `msgid.iggy.decode` does.

    An Arrow UDF: it needs a Python worker.

    Parameters
    ----------
    col : Column or str
        binary.
    layout : str
        ``current`` or ``previous``.

    Returns
    -------
    Column
        a struct of ``offset``, ``state``, ``timestamp``, ``id`` binary(16), ``checksum``, ``headers`` and ``payload``;
        NULL for NULL. Fails the query on what is no message; `try_iggy_message` gives NULL.

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
    shape_of(layout)
    return _each(_one_iggy(layout), _iggy_type(), col, "iggy_message")


def try_iggy_message(col: ColumnOrName, layout: Layout = "current") -> Column:
    """Read encoded Iggy messages, as `iggy_message` does, or give NULL where there is none.

    Parameters
    ----------
    col : Column or str
        binary.
    layout : str
        ``current`` or ``previous``.

    Returns
    -------
    Column
        a struct, or NULL.

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
    shape_of(layout)
    return _each(_one_iggy(layout), _iggy_type(), col, "try_iggy_message", lenient=True)


def iggy_messages(col: ColumnOrName, layout: Layout = "current") -> Column:
    """Read poll responses, one a row, as `msgid.iggy.decode_poll` does.

    An Arrow UDF: it needs a Python worker.

    Parameters
    ----------
    col : Column or str
        binary.
    layout : str
        of the messages: ``current`` or ``previous``.

    Returns
    -------
    Column
        an array of structs as `iggy_message` gives them; NULL for NULL. Fails the query on what is no response;
        `try_iggy_messages` gives NULL.

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
    shape_of(layout)
    return _each(_polled(layout), _iggy_type(many=True), col, "iggy_messages")


def try_iggy_messages(col: ColumnOrName, layout: Layout = "current") -> Column:
    """Read poll responses, as `iggy_messages` does, or give NULL where there is none.

    Parameters
    ----------
    col : Column or str
        binary.
    layout : str
        of the messages: ``current`` or ``previous``.

    Returns
    -------
    Column
        an array of structs, or NULL.

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
    shape_of(layout)
    return _each(_polled(layout), _iggy_type(many=True), col, "try_iggy_messages", lenient=True)


def danube_message(col: ColumnOrName) -> Column:
    """Read Danube's messages from protobuf, as `msgid.danube.StreamMessage.decode` does.

    An Arrow UDF: it needs a Python worker.

    Parameters
    ----------
    col : Column or str
        binary.

    Returns
    -------
    Column
        a struct of the fields of `msgid.danube.StreamMessage`; NULL for NULL. Fails the query on what is no message,
        and on a number of 2**63 or more, which a bigint does not hold; `try_danube_message` gives NULL.

    Examples
    --------
    >>> from msgid.danube import MessageID, StreamMessage
    >>> raw = StreamMessage(7, MessageID(9, "/default/events", "", 42), b"hi", 1648047038000, "p1").encode()
    >>> df = spark.createDataFrame([(raw,)], ["raw"])
    >>> df.select(danube_message("raw").msg_id.topic_offset.alias("offset")).show()
    +------+
    |offset|
    +------+
    |    42|
    +------+
    """
    return _each(_danube, _danube_type(), col, "danube_message")


def try_danube_message(col: ColumnOrName) -> Column:
    """Read Danube's messages, as `danube_message` does, or give NULL where there is none.

    Parameters
    ----------
    col : Column or str
        binary.

    Returns
    -------
    Column
        a struct, or NULL.

    Examples
    --------
    >>> df = spark.createDataFrame([(b"no message",)], ["raw"])
    >>> df.select(try_danube_message("raw").isNull().alias("none")).show()
    +----+
    |none|
    +----+
    |true|
    +----+
    """
    return _each(_danube, _danube_type(), col, "try_danube_message", lenient=True)


def danube_id(message: ColumnOrName) -> Column:
    """Give Danube's messages their ids: `position_id` of topic and producer, offset and time of publication.

    As `msgid.danube.MessageID.position_id`; built-in functions alone. The messages of a producer that never left
    offset 0 have no identity (`msgid.danube.unlogged`), and all of one millisecond would have the same id.

    Parameters
    ----------
    message : Column or str
        structs as `danube_message` gives them.

    Returns
    -------
    Column
        text of 34 hex digits; NULL for NULL.

    Examples
    --------
    >>> from msgid.danube import MessageID, StreamMessage
    >>> raw = StreamMessage(7, MessageID(9, "/default/events", "", 42), b"hi", 1648047038000, "p1").encode()
    >>> df = spark.createDataFrame([(raw,)], ["raw"]).select(danube_message("raw").alias("m"))
    >>> df.select(danube_id("m")).show(truncate=False)
    +----------------------------------+
    |danube_id                         |
    +----------------------------------+
    |013B223F1FE58B0000024CCDBE0000002A|
    +----------------------------------+
    """
    held = column(message)
    place = held.getField("msg_id")
    source = F.concat(
        F.lit("danube:"), place.getField("topic_name"), F.lit("#"), place.getField("producer_id").cast("string")
    )
    at = F.timestamp_millis(held.getField("publish_time"))
    return position_id(source, place.getField("topic_offset"), at).alias("danube_id")


def _text_type() -> pyarrow.DataType:
    import pyarrow

    return pyarrow.string()


def _iggy_type(*, many: bool = False) -> pyarrow.DataType:
    """Give the type of a message, which is a row of Iggy's table, or of an array of them."""
    import pyarrow

    from msgid.iggy.table import schema

    message = pyarrow.struct(list(schema()))
    return pyarrow.list_(message) if many else message


def _danube_type() -> pyarrow.DataType:
    import pyarrow as pa

    place = {"producer_id": pa.int64(), "topic_name": pa.string(), "broker_addr": pa.string()}
    fields = {
        "request_id": pa.int64(),
        "msg_id": pa.struct({**place, "topic_offset": pa.int64()}),
        "payload": pa.binary(),
        "publish_time": pa.int64(),
        "producer_name": pa.string(),
        "subscription_name": pa.string(),
        "attributes": pa.map_(pa.string(), pa.string()),
        "schema_id": pa.int64(),
        "schema_version": pa.int64(),
        "routing_key": pa.string(),
    }
    return pa.struct(fields)


def _each(
    function: Callable[[Any], Any], type: pyarrow.DataType, col: ColumnOrName, name: str, *, lenient: bool = False
) -> Column:
    """Make an Arrow UDF that calls a function on each value that is not NULL; ``lenient``: NULL for what it refuses."""
    import pyarrow
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.pandas.types import from_arrow_type

    def applied(values: Any) -> Any:
        from msgid.errors import InvalidMessage

        def call(value: Any) -> Any:
            if value is None:
                return None
            try:
                return function(value)
            except InvalidMessage:
                if lenient:
                    return None
                raise

        return pyarrow.array([call(value) for value in values.to_pylist()], type)

    applied.__annotations__ = {"values": pyarrow.Array, "return": pyarrow.Array}
    udf: Any = arrow_udf(applied, from_arrow_type(type))  # type: ignore[call-overload]
    result: Column = udf(column(col)).alias(name)
    return result


def _normal(name: str) -> str:
    from msgid.names import normalize_name as normal

    return normal(name)


def _one_iggy(layout: Layout) -> Callable[[bytes], dict[str, Any]]:
    def read(raw: bytes) -> dict[str, Any]:
        from msgid.errors import InvalidMessage
        from msgid.iggy.table import decode_table

        found = decode_table(raw, layout)
        if found.error is not None:
            raise found.error
        if found.table.num_rows != 1:
            raise InvalidMessage(f"{found.table.num_rows} messages, not one", 0)
        row: dict[str, Any] = found.table.to_pylist()[0]
        return row

    return read


def _polled(layout: Layout) -> Callable[[bytes], list[dict[str, Any]]]:
    def read(raw: bytes) -> list[dict[str, Any]]:
        from msgid.iggy.log import decode_poll, encode_log
        from msgid.iggy.table import decode_table

        found = decode_table(encode_log(decode_poll(raw, layout).messages, layout), layout)
        if found.error is not None:
            raise found.error
        rows: list[dict[str, Any]] = found.table.to_pylist()
        return rows

    return read


def _danube(raw: bytes) -> dict[str, Any]:
    from msgid.danube import StreamMessage
    from msgid.errors import InvalidMessage

    message = StreamMessage.decode(raw)
    row = {**message._asdict(), "msg_id": message.msg_id._asdict(), "attributes": list(message.attributes.items())}
    numbers: Iterable[tuple[str, Any]] = (*row.items(), *message.msg_id._asdict().items())
    for name, value in numbers:
        if isinstance(value, int) and value > _BIGINT_MAX:
            raise InvalidMessage(f"{name} {value}, more than {_BIGINT_MAX}")
    return row
