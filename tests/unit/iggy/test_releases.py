"""The vectors of every release of Iggy: segments, responses, requests and indexes, decoded and encoded."""

import io
import json

import pytest
from helpers import vector_files as vectors

import msgid
from msgid import iggy
from msgid.iggy import index
from msgid.iggy.headers import Header, HeaderKey, HeaderKind

RELEASES = json.loads((vectors.FOLDER / "iggy_releases.json").read_text())
VECTORS = {vector["name"]: vector for vector in RELEASES["vectors"]}
KINDS = {str(kind): kind for kind in HeaderKind}


def named(*starts):
    """Return a decorator that runs a test for each vector whose name starts so."""
    found = [vector for name, vector in VECTORS.items() if name.startswith(starts)]
    return pytest.mark.parametrize("vector", found, ids=lambda vector: vector["name"])


def raw_of(vector):
    """Return the bytes of a vector."""
    return bytes.fromhex(vector["hex"])


def value_of(kind, value):
    """Return a header's value as Python has it: JSON has bytes as hex digits."""
    return Header.of(bytes.fromhex(value) if kind == "raw" else value, KINDS[kind])


def headers_of(rows):
    """Return the headers that a vector describes."""
    headers = {}
    for row in rows:
        kind = row.get("key_kind", "string")
        key = row["key"] if kind == "string" else HeaderKey(*value_of(kind, row["key"]))
        headers[key] = value_of(row["kind"], row["value"])
    return headers


def messages_in(vector):
    """Return the messages that a vector describes, those of its batches included."""
    return vector.get("messages") or [message for batch in vector["batches"] for message in batch["messages"]]


def check(message, row):
    """Check that a decoded message has every field of a vector."""
    assert message.payload.hex() == row["payload"]
    assert message.headers == headers_of(row["headers"])
    assert message.id == row["id"]
    assert message.id.to_bytes(16, "little").hex() == row["id_bytes"]
    for name in ("offset", "timestamp", "checksum", "origin_timestamp"):
        assert getattr(message, name) == row.get(name, None if name == "origin_timestamp" else getattr(message, name))
    assert (None if message.state is None else int(message.state)) == row.get("state", message.state)


@named("log-", "detect-")
@pytest.mark.parametrize("layout", ["auto", "named"])
def test_log_of_each_release_is_decoded_and_encoded_again(vector, layout):
    """A segment has the vector's messages, all with the right checksum, and they encode to the same bytes."""
    raw, name = raw_of(vector), vector["layout"]
    asked = name if layout == "named" else layout
    messages = iggy.decode_log(raw, asked)
    rows = messages_in(vector)
    assert len(messages) == len(rows)
    for message, row in zip(messages, rows, strict=True):
        check(message, row)
        assert (message.layout, message.checksum_ok) == (name, True)
    if name == "batch24":
        written, left = b"", list(messages)
        for batch in vector["batches"]:
            count = len(batch["messages"])
            written, left = written + iggy.encode_log(left[:count], name), left[count:]
        assert written == raw
    else:
        assert iggy.encode_log(messages, name) == raw
    assert list(iggy.read_log(io.BytesIO(raw), asked, chunk=7)) == messages


@named("log-batch256")
def test_log_of_batches_has_the_fields_of_their_headers(vector):
    messages = iggy.decode_log(raw_of(vector))
    for batch in vector["batches"]:
        for row in batch["messages"]:
            held = next(message.batch for message in messages if message.offset == row["offset"])
            for name in ("partition_id", "base_offset", "base_timestamp", "origin_timestamp"):
                assert getattr(held, name) == batch[name]
            assert (held.checksum, held.checksum_ok) == (batch["batch_checksum"], True)


@named("poll-")
def test_poll_of_each_release_is_decoded_and_encoded_again(vector):
    """A response has the vector's messages, its layout is found, and it encodes to the same bytes."""
    raw = raw_of(vector)
    for layout in ("auto", vector["layout"]):
        response = iggy.decode_poll(raw, layout)
        assert (response.partition, response.current_offset) == (vector["partition"], vector["current_offset"])
        assert (response.layout, len(response.messages)) == (vector["layout"], vector["count"])
        for message, row in zip(response.messages, vector["messages"], strict=True):
            check(message, row)
            assert message.checksum_ok
        assert iggy.encode_poll(response, vector["layout"]) == raw


@named("send-")
def test_request_of_each_release_is_decoded_and_encoded_again(vector):
    raw, layout = raw_of(vector), vector["layout"]
    request = iggy.SendMessages.decode(raw, layout)
    assert (request.stream, request.topic) == (vector["stream"], vector["topic"])
    kind, value = vector["partitioning"]["kind"], vector["partitioning"].get("value")
    assert (kind, value) == (2, request.partitioning.partition)
    assert len(request.messages) == len(vector["messages"])
    for message, row in zip(request.messages, vector["messages"], strict=True):
        check(message, row)
        if layout == "batch256":
            assert message.checksum_ok
    assert request.encode(layout) == raw


@named("bad-sum")
def test_log_with_a_wrong_checksum_has_one_message_that_fails(vector):
    for asked in ("auto", vector["layout"]):
        messages = iggy.decode_log(raw_of(vector), asked)
        assert [message.offset for message in messages if not message.checksum_ok] == [102]
        assert len(messages) >= 3
        assert iggy.encode_log(messages, vector["layout"]) == raw_of(vector)


@named("bad-reserved")
def test_log_with_a_reserved_byte_is_refused(vector):
    """One error, with the named layout and without."""
    with pytest.raises(msgid.InvalidMessage, match="a reserved byte is not 0"):
        iggy.decode_log(raw_of(vector), vector["layout"])
    with pytest.raises(msgid.InvalidMessage, match=f"cannot tell the layout.*{vector['layout']}: a reserved byte"):
        iggy.decode_log(raw_of(vector))


@named("producer-flag")
def test_log_whose_batch_checksum_leaves_the_producer_out_is_wrong(vector):
    """The vector was made before release 0.10 was known, with the checksum of 0.9; it is written as it was read."""
    messages = iggy.decode_log(raw_of(vector), vector["layout"])
    batches = {message.batch for message in messages}
    assert {batch.producer for batch in batches if not batch.checksum_ok} == {iggy.Producer(0, 0, 0)}
    assert {batch.producer for batch in batches if batch.checksum_ok} <= {None}
    assert iggy.encode_log(messages, "batch256") == raw_of(vector)


@named("index-")
def test_index_of_each_release_divides_its_log_at_records(vector):
    """Each entry is a point, also the start positions that 0.5.0 wrote when it made an index anew."""
    layout, held = vector["layout"], raw_of(vector)
    log = raw_of(VECTORS["poll-h56-xxh3"])[16:] if layout == "h56-xxh3" else raw_of(VECTORS[f"log-{layout}"])
    points = index.split_points(reader(log), len(log), reader(held), len(held), 100)
    places = [point.position for point in points]
    entries = vector.get("positions") or [one[2 if layout == "batch256" else 1] for one in vector.get("entries", [])]
    expected = [place for place in entries if 0 < place < len(log)]
    assert places[0] == 0
    assert places[1:] == expected or "expect" in vector
    for place in places:
        assert iggy.decode_log(log[place:])


def reader(data):
    """Return a function that reads bytes at a position."""
    return lambda place, length: data[place : place + length]
