"""Properties of every layout: logs, responses and requests are read as written; IDs, typed keys and batches."""

import io
import itertools
from dataclasses import replace

import pytest
from helpers import strategies
from helpers.iggy_files import contents
from hypothesis import given, settings
from hypothesis import strategies as st

import msgid
from msgid import iggy
from msgid.iggy import HeaderKey, HeaderKind, Message, Partitioning, SendMessages

LAYOUTS = pytest.mark.parametrize("layout", iggy.LAYOUTS)
FEW = settings(max_examples=15)  # of each layout
targets = st.one_of(st.integers(0, 2**32 - 1), strategies.keys)
partitionings = st.one_of(
    st.just(Partitioning()),
    st.integers(0, 2**32 - 1).map(lambda number: Partitioning(partition=number)),
    st.binary(min_size=1, max_size=255).map(lambda key: Partitioning(key=key)),
)


@LAYOUTS
@FEW
@given(data=st.data())
def test_log_of_each_layout_reads_back(layout, data):
    """Messages of a layout are read as written, with correct checksums; a batch has one server time."""
    made = data.draw(st.lists(strategies.iggy_messages(layout), max_size=4))
    raw = iggy.encode_log(made, layout)
    read = iggy.decode_log(raw, layout)
    assert contents(read) == contents(made) if layout != "previous" else read == made
    assert all(message.checksum_ok is not False for message in read)
    assert iggy.encode_log(read, layout) == raw or layout == "batch24"


@LAYOUTS
def test_log_that_is_cut_has_the_whole_messages_and_the_place_of_the_last(layout):
    """In any place, for each size of a read, with the layout and without."""
    frames = [iggy.encode(Message.new(b"payload", id=n, offset=n, layout=layout), layout) for n in range(3)]
    raw, last = b"".join(frames), len(frames[0]) + len(frames[1])
    ways = ["auto", layout] if iggy.LAYOUTS[layout].checksum else [layout]
    for cut in range(last + 1, len(raw)):
        for asked, chunk in itertools.product(ways, (10, 1000)):
            found = []
            with pytest.raises(msgid.TruncatedMessage) as caught:
                found.extend(iggy.read_log(io.BytesIO(raw[:cut]), asked, chunk=chunk))
            assert (len(found), caught.value.offset) == (2, last)


@LAYOUTS
@FEW
@given(data=st.data())
def test_poll_of_each_layout_reads_back(layout, data):
    made = data.draw(st.lists(strategies.iggy_messages(layout), max_size=3))
    raw = iggy.encode_poll(iggy.PollResponse(1, 2, made), layout)
    read = iggy.decode_poll(raw, layout)
    assert (read.partition, read.current_offset) == (1, 2)
    assert [message.payload for message in read.messages] == [message.payload for message in made]
    for wrong in (raw[:-1], raw + b"\0", raw[:12] + (len(made) + 1).to_bytes(4, "little") + raw[16:]):
        with pytest.raises(msgid.InvalidMessage):
            iggy.decode_poll(wrong, layout)


def test_poll_of_a_server_that_was_upgraded_reads_both_layouts():
    """The records of one file follow each other in one response, each with a correct checksum."""
    made = [Message.new(b"a", id=n + 1, offset=n, timestamp=1, layout="h56-crc") for n in range(2)]
    layouts = ("h56-crc", "h56-xxh3")
    raw = iggy.encode_poll(iggy.PollResponse(1, 1, made), "h56-crc")[:16]
    raw += b"".join(iggy.encode(message, layout) for message, layout in zip(made, layouts, strict=True))
    read = iggy.decode_poll(raw).messages
    assert [(message.layout, message.checksum_ok) for message in read] == [(layout, True) for layout in layouts]


@LAYOUTS
@FEW
@given(data=st.data(), stream=targets, topic=targets, partitioning=partitionings)
def test_request_of_each_layout_reads_back(layout, data, stream, topic, partitioning):
    """Target and messages are read as written; fields that the server sets are 0."""
    near = st.integers(10**15, 10**15 + 10**9)  # the producer times of one batch differ by at most an hour
    made = data.draw(st.lists(strategies.iggy_messages(layout, origin_timestamp=near), max_size=3))
    request = SendMessages(stream, topic, partitioning, made)
    raw = request.encode(layout)
    read = SendMessages.decode(raw, layout)
    assert read[:3] == request[:3]
    for sent, message in zip(read.messages, made, strict=True):
        assert (sent.id, sent.headers, sent.payload) == (message.id, message.headers, message.payload)
        assert sent.origin_timestamp == message.origin_timestamp
        assert sent.timestamp == 0
    assert read.encode(layout) == raw
    for cut in range(0, len(raw), 7):
        try:
            SendMessages.decode(raw[:cut], layout)
        except msgid.InvalidMessage:
            continue
        # Requests of 2023 do not have a count, so a request that ends after any message is complete.
        assert not iggy.LAYOUTS[layout].has_origin


def test_request_with_entries_that_lie_is_refused():
    """Index entries that differ from the ends of the messages raise `InvalidMessage`."""
    raw = bytearray(SendMessages(1, 2, Partitioning(), [Message.new(b"a", id=1, layout="h64")]).encode("h64"))
    raw[4 + 6 + 6 + 2 + 4 + 4] ^= 1
    with pytest.raises(msgid.InvalidMessage, match="entries"):
        SendMessages.decode(bytes(raw), "h64")


@pytest.mark.parametrize(
    ("partitioning", "error"),
    [(Partitioning(1, b"k"), "not both"), (Partitioning(key=b""), "1 to 255"), (Partitioning(2**32), "partition must")],
)
def test_request_with_an_impossible_partitioning_is_refused(partitioning, error):
    with pytest.raises(ValueError, match=error):
        SendMessages(1, 2, partitioning, []).encode("h64")


def test_header_key_that_is_not_text_needs_a_layout_with_kinds_of_keys():
    """A typed key is text in tables and JSON, and older layouts reject it."""
    key = HeaderKey.of(-5, HeaderKind.INT32)
    message = Message.new(b"x", id=1, headers={key: 1, "b": 2, HeaderKey.of(b"\x00\xff"): 3}, layout="h64")
    assert [str(name) for name in message.headers] == ["raw:00ff", "b", "int32:-5"]
    assert key.value == -5
    (read,) = iggy.decode_log(iggy.encode(message, "h64"))
    assert read.headers == message.headers
    for layout in ("m45", "h56-crc"):
        with pytest.raises(ValueError, match=r"cannot write the header's key raw:00ff"):
            iggy.encode(replace(message, state=msgid.MessageState.AVAILABLE, layout="m45", checksum=0), layout)
    with pytest.raises(ValueError, match="must be a str"):
        HeaderKey.of("text")


@LAYOUTS
def test_message_of_one_layout_is_written_in_another_with_a_right_checksum(layout):
    """The checksum is computed again, and the server's time replaces a missing producer time."""
    message = Message.new(b"hello", id=7, timestamp=10**15, layout="m45")
    (read,) = iggy.decode_log(iggy.encode(message, layout), layout)
    assert read.checksum_ok is not False
    assert read.origin_timestamp == (10**15 if iggy.LAYOUTS[layout].has_origin else None)
    if not iggy.LAYOUTS[layout].has_state:
        with pytest.raises(ValueError, match="cannot write a message without a state"):
            iggy.encode(read, "m45")


@LAYOUTS
def test_message_with_a_wrong_checksum_is_written_with_it(layout):
    if layout == "previous":
        pytest.skip("a layout without checksums")
    message = replace(Message.new(b"hello", id=7, layout=layout), checksum=5)
    (read,) = iggy.decode_log(iggy.encode(message, layout), layout)
    assert (read.checksum, read.checksum_ok) == (5, False)
    assert iggy.encode(read, layout) == iggy.encode(message, layout)


def test_batch_with_a_wrong_header_has_no_message_with_a_right_checksum():
    """The frames' checksums do not cover the batch's offset and time; the batch's checksum does."""
    made = [Message.new(b"x", id=n, offset=n, layout="batch256") for n in range(3)]
    raw = bytearray(iggy.encode_log(made, "batch256"))
    raw[8] ^= 1
    read = iggy.decode_log(bytes(raw), "batch256")
    assert [message.checksum_ok for message in read] == [False] * 3
    assert [message.batch.checksum_ok for message in read] == [False] * 3
    with pytest.raises(msgid.InvalidMessage, match="batch256: wrong checksum of the batch"):
        iggy.decode_log(bytes(raw))
    table = pytest.importorskip("pyarrow") and iggy.decode_table(bytes(raw), "batch256").table
    assert table["checksum_ok"].to_pylist() == [False] * 3


def test_batches_hold_messages_of_one_server_time():
    times = [5, 5, 6, 6, 6]
    made = [Message.new(b"x", id=n, offset=n, timestamp=time, layout="batch256") for n, time in enumerate(times)]
    far = Message.new(b"x", id=9, offset=2**40, timestamp=6, layout="batch256")
    read = iggy.decode_log(iggy.encode_log([*made, far], "batch256", partition=4))
    assert [message.batch.base_offset for message in read] == [0, 0, 2, 2, 2, 2**40]
    assert {message.batch.partition_id for message in read} == {4}


def test_last_slice_of_a_batch_keeps_its_offsets():
    """A server can send the end of a batch: then the first offset is above the batch's."""
    made = [Message.new(b"x", id=n, offset=100 + n, layout="batch256") for n in range(5)]
    read = iggy.decode_log(iggy.encode_log(made, "batch256"))[3:]
    (one, two) = iggy.decode_poll(iggy.encode_poll(iggy.PollResponse(0, 104, read), "batch256")).messages
    assert (one.offset, two.offset, one.batch.base_offset) == (103, 104, 100)


@LAYOUTS
def test_message_fields_of_each_layout_are_checked(layout):
    """A state in a layout without states and a missing checksum in other layouts raise ValueError."""
    message, facts = Message.new(b"", id=1, layout=layout), iggy.LAYOUTS[layout]
    state = None if facts.has_state else msgid.MessageState.AVAILABLE
    with pytest.raises(ValueError, match="state"):
        replace(message, state=state)
    with pytest.raises(ValueError, match="checksum"):
        replace(message, checksum=None if facts.checksum else 0)
    with pytest.raises(ValueError, match="origin_timestamp"):
        replace(message, origin_timestamp=-1)
    assert replace(message, layout=layout) == message
