"""The columns of the fields around an ID equal Python's results, with one error or NULL for a malformed value."""

from dataclasses import asdict

import pytest
from helpers import strategies
from helpers.covering import first_by_default
from helpers.spark_errors import query_fails
from helpers.versions import since
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

import spark_ext as ids
from msgid import iggy
from msgid.danube import MessageID, StreamMessage

pytestmark = pytest.mark.spark

V1 = "0156F7E71C361B21BC024CCDBE00000000"
# All messages go to Spark in one query, and the failure shows the message.
once = settings(max_examples=1, phases=[Phase.generate], suppress_health_check=list(HealthCheck), print_blob=True)


def column(spark, values, type, made):
    """Apply a column function to values; give the results in their order."""
    df = spark.createDataFrame(list(enumerate(values)), f"n int, x {type}")
    return [row.y for row in sorted(df.select("n", made.alias("y")).collect(), key=lambda row: row.n)]


def as_row(message):
    """A message as the struct that the columns give."""
    return (
        message.offset,
        None if message.state is None else str(message.state),
        message.id.to_bytes(16, "little"),
        message.checksum,
        {key: (str(kind), raw) for key, (kind, raw) in message.headers.items()},
        message.payload,
    )


def of_row(row):
    headers = {key: (held.kind, bytes(held.value)) for key, held in row.headers.items()}
    return row.offset, row.state, bytes(row.id), row.checksum, headers, bytes(row.payload)


@since(4, 0)
@once
@given(st.lists(strategies.iggy_messages(), min_size=60, max_size=60))
def test_iggy_message_alone_or_polled_is_the_one_of_msgid(spark, messages):
    """Every field is Python's, of one message and of a poll response."""
    raws = [iggy.encode(message, "m45") for message in messages]
    found = column(spark, raws, "binary", ids.iggy_message("x", "m45"))
    assert [of_row(row) for row in found] == [as_row(message) for message in messages]
    micros = column(spark, raws, "binary", F.unix_micros(ids.try_iggy_message("x", "m45").timestamp))
    assert micros == [message.timestamp for message in messages]
    polled = iggy.encode_poll(iggy.PollResponse(1, 2, messages), "m45")
    # The layout is named: no checksum tells it if every payload is empty.
    for made in (ids.iggy_messages("x", "m45"), ids.try_iggy_messages("x", "m45")):
        (rows,) = column(spark, [polled], "binary", made)
        assert [of_row(row) for row in rows] == [as_row(message) for message in messages]


@since(4, 0)
@once
@given(st.lists(strategies.danube_messages, min_size=60, max_size=60))
def test_danube_message_of_a_column_is_the_one_of_msgid(spark, messages):
    """Every field is Python's; what a bigint or a timestamp does not hold is NULL."""
    found = column(spark, [message.encode() for message in messages], "binary", ids.try_danube_message("x"))
    for row, message in zip(found, messages, strict=True):
        numbers = (message.request_id, message.publish_time, message.schema_id or 0, *message.msg_id[::3])
        if max(numbers) >= 1 << 63 or message.publish_time >= 253_402_300_800_000:
            assert row is None
        else:
            assert row.asDict(recursive=True) == {**asdict(message), "msg_id": message.msg_id._asdict()}


@since(4, 0)
def test_danube_id_of_a_column_is_the_one_of_msgid(spark):
    """The id of a place is Python's, wherever the broker is."""
    messages = [
        StreamMessage(7, MessageID(9, topic, broker, offset), b"", 1_648_047_038_123, "p")
        for topic in ("/default/events", "é")
        for broker in ("a", "b")
        for offset in (1, (1 << 48) - 1)
    ]
    found = column(spark, [m.encode() for m in messages], "binary", ids.danube_id(ids.danube_message("x")))
    assert found == [str(m.msg_id.position_id(1_648_047_038)) for m in messages]


@once
@given(
    st.lists(st.one_of(st.uuids(version=4).map(lambda u: u.bytes), st.binary(min_size=16, max_size=16)), min_size=200)
)
def test_iggy_id_of_a_column_is_the_one_of_msgid(spark, raws):
    """The identity is Python's, both ways."""
    texts = column(spark, raws, "binary", ids.id_from_iggy_id("x"))
    assert texts == [iggy.id_text(raw) for raw in raws]
    assert [bytes(raw) for raw in column(spark, texts, "string", ids.id_to_iggy_id("x"))] == raws
    upper = [text.upper() for text in texts]
    assert [bytes(raw) for raw in column(spark, upper, "string", ids.id_to_iggy_id("x"))] == raws
    whole = [b"\x01" + raw for raw in raws]
    of_version_1 = [iggy.id_text(raw) for raw in whole]
    assert column(spark, whole, "binary", ids.id_from_iggy_id("x")) == of_version_1
    assert column(spark, raws, "binary", ids.id_from_iggy_id("x", version_1=True)) == of_version_1


def test_iggy_id_that_is_invalid_is_null(spark):
    """NULL."""
    assert column(spark, [b"", bytes(15), bytes(17), None], "binary", ids.id_from_iggy_id("x")) == [None] * 4
    uuid = "74b158ca-ddb3-498f-b0a9-9eec1c6197ae"
    bad = [
        "",
        None,
        V1 + "\n",
        uuid + "\n",
        uuid[:-1],
        uuid.replace("-", ""),
        uuid[:-1] + "g",
        "{" + uuid[1:],
        "x" * 36,
    ]
    assert column(spark, bad, "string", ids.id_to_iggy_id("x")) == [None] * len(bad)


MESSAGE = iggy.encode(iggy.Message.new(b"payload", id=1, headers={"k": 1}, layout="m45"), "m45")
BAD = [b"", b"x", MESSAGE[:-1], MESSAGE + b"x", MESSAGE + MESSAGE, MESSAGE[:8] + b"\x07" + MESSAGE[9:], bytes(10_000)]


MALFORMED = {
    "iggy_message": BAD,
    "iggy_messages": [*BAD, bytes(12) + b"\xff\xff\xff\xff"],
    "danube_message": [b"", b"\xff", b"\x08"],
}


@since(4, 0)
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_message_is_null(spark, name):
    """``try_`` gives NULL, and both functions give NULL for NULL."""
    bad = [*MALFORMED[name], None]
    assert column(spark, bad, "binary", getattr(ids, f"try_{name}")("x")) == [None] * len(bad)
    assert column(spark, [None], "binary", getattr(ids, name)("x")) == [None]


@since(4, 0)
@pytest.mark.parametrize(
    ("name", "raw"),
    [pytest.param(name, *raw.values, marks=raw.marks, id=f"{name}-{n}") for name, bad in MALFORMED.items()
     for n, raw in enumerate(first_by_default(bad, 1))],
)  # fmt: skip
def test_malformed_message_raises(spark, name, raw):
    """The query fails with Python's error."""
    with query_fails("invalid message: "):
        column(spark, [raw], "binary", getattr(ids, name)("x"))


@since(4, 0)
@pytest.mark.parametrize("name", ["iggy_message", "try_iggy_message", "iggy_messages", "try_iggy_messages"])
def test_layout_that_is_unknown_raises(spark, name):
    """At once, where the function is called."""
    with pytest.raises(ValueError, match=r"layout must be one of .*, got 'newest'"):
        getattr(ids, name)("x", "newest")
