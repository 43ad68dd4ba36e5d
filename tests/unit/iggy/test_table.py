"""Iggy messages as Arrow tables: the same messages and errors as in single decoding."""

import io

import pytest
from helpers import strategies
from helpers.iggy_frames import BROKEN, LATE, is_too_large, row, rows
from hypothesis import given, settings
from hypothesis import strategies as st

import msgid
from msgid import iggy
from msgid.iggy.wire import LAYOUTS

pytest.importorskip("pyarrow")

LAYOUT = st.sampled_from(list(LAYOUTS))


@settings(max_examples=70)
@given(st.data(), LAYOUT)
def test_table_of_mutated_messages_has_the_messages_of_the_log(data, layout):
    """Changed, cut, doubled or inserted bytes give messages or `InvalidMessage`, and no other error."""
    raw = bytearray(iggy.encode_log(data.draw(st.lists(strategies.iggy_messages(layout), max_size=3)), layout))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(raw)))
        stop = min(len(raw), place + data.draw(st.integers(0, 4)))
        raw[place:stop] = data.draw(st.binary(max_size=4))
    decoded, error = [], None
    try:
        for message in iggy.read_log(io.BytesIO(raw), layout, chunk=64):
            decoded.append(message)
    except msgid.InvalidMessage as caught:
        error = caught
    found = iggy.decode_table(bytes(raw), layout)
    shown = rows(found.table)
    assert shown[: len(decoded)] == [row(message) for message in decoded]
    # Numbers that a column cannot hold are malformed in the table alone.
    malformed = {message.row for message in found.malformed}
    large = {at for at, message in enumerate(decoded) if is_too_large(message)}
    assert large <= malformed
    # A message with malformed headers ends the log, but in the table only its row is affected.
    assert len(decoded) <= min(malformed - large, default=len(shown))
    assert (found.error is None and not malformed - large) or error is not None


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "previous"])
@pytest.mark.parametrize(
    ("field", "number", "reason"),
    [
        ("offset", 1 << 63, "offset 9223372036854775808, more than 9223372036854775807"),
        ("timestamp", LATE, "timestamp 253402300800000000, after the year 9999"),
        ("timestamp", (1 << 64) - 1, "timestamp 18446744073709551615, after the year 9999"),
    ],
)
def test_number_that_a_column_cannot_hold_affects_its_row_alone(layout, field, number, reason):
    """The messages after it are in the table, and its bytes are kept."""
    values = [{"offset": n, "timestamp": 1 + n} for n in range(5)]
    values[2][field] = number
    frames = [
        iggy.encode(iggy.Message.new(b"payload", id=n + 1, layout=layout, **value), layout)
        for n, value in enumerate(values)
    ]
    found = iggy.decode_table(b"".join(frames), layout)
    assert (found.error, found.length) == (None, sum(map(len, frames)))
    expected = [value[field] for value in values]
    expected[2] = None
    column = found.table[field]
    assert (column.cast("int64") if field == "timestamp" else column).to_pylist() == expected
    (malformed,) = found.malformed
    assert (malformed.row, malformed.error.reason) == (2, reason)
    assert malformed.original in frames[2]


@pytest.mark.parametrize(("kind", "raw", "reason", "offset"), BROKEN, ids=lambda value: str(value)[:40])
def test_table_of_a_malformed_message_has_the_error_and_the_rows_before(kind, raw, reason, offset):
    """The error is returned with the rows; bytes after the end do not remove the message before them."""
    found = iggy.decode_table(raw, "m45")
    in_headers = offset >= 41 and not kind
    assert found.table.num_rows == (offset >= 41)
    assert (found.error is None) == in_headers
    assert [message.error.offset for message in found.malformed] == [offset] * in_headers


@given(data=st.data(), layout=st.sampled_from(["m45", "previous", "h64"]), chunk=st.integers(1, 200))
def test_tables_read_in_chunks_have_every_byte_once(data, layout, chunk):
    """Chunks of every size give the rows and positions of the bytes, and the bytes that are not messages."""
    made = data.draw(st.lists(strategies.iggy_messages(layout), max_size=5))
    raw = iggy.encode_log(made, layout) + data.draw(st.binary(max_size=60))
    whole = iggy.decode_table(raw, layout, base=7)
    for length in (None, len(raw)):
        parts = list(iggy.read_tables(io.BytesIO(raw), layout, chunk=chunk, base=7, length=length))
        good = [part for part in parts if part.error is None]
        assert [row for part in good for row in rows(part.table)] == rows(whole.table)
        assert [place for part in good for place in part.positions] == list(whole.positions)
        assert b"".join(part.torn for part in parts) == raw[whole.length :]
        assert {part.position for part in parts if part.error is not None} <= {7 + whole.length}
        # The texts can differ: with a known length, an impossible record is detected before it is read completely.
        errors = [(type(part.error), part.error.offset) for part in parts if part.error is not None]
        assert errors == [(type(error), error.offset) for error in [whole.error] if error is not None]
