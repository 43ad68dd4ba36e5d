"""The texts of many IDs at once: the same as of each ID alone."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgid import iggy
from msgid.iggy.records.id_texts import id_texts

pa = pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

UUID_4 = bytes.fromhex("74b158caddb3498fb0a99eec1c6197ae")
KNOWN = [
    UUID_4,
    bytes.fromhex("0193e3b27c1a7d3e9a5f0123456789ab"),  # a UUID of version 7
    bytes.fromhex("56F7E71C361B21BC024CCDBE00000000"),  # of an ID of version 1
    UUID_4[:8] + b"\xff" + UUID_4[9:],  # another variant
    bytes(16),
]
ids = st.none() | st.sampled_from(KNOWN) | st.binary(min_size=16, max_size=16)


@given(st.lists(ids, max_size=20), st.integers(0, 20), st.integers(0, 20))
def test_id_texts_of_any_ids_are_those_of_id_text(ids, start, length):
    """UUIDs, other bytes and NULL, alone and mixed; also of a slice, whose buffers begin elsewhere."""
    found = id_texts(pa.array(ids, pa.binary()).slice(min(start, len(ids)), length))
    expected = [None if id is None else iggy.id_text(id) for id in ids[start : start + length]]
    assert found.to_pylist() == expected
    found.validate(full=True)


SENT = uuid.UUID("0198f0c0-a0b1-7c00-8000-00000000000a")


def test_uuid_that_a_producer_passes_as_a_number_is_read_and_written_in_its_order():
    """The number is that of a poll of a message that was sent over HTTP and from Java."""
    number = 2123340158126455836249256035818143754
    for id in (number, SENT.bytes[::-1], bytearray(SENT.bytes[::-1])):
        assert iggy.id_text(id, uuid="number") == str(SENT)
    assert iggy.id_text(SENT, uuid="number") == iggy.id_text(str(SENT), uuid="number") == str(SENT)
    assert iggy.id_value(SENT, uuid="number") == iggy.id_value(str(SENT).upper(), uuid="number") == number
    assert iggy.id_value(SENT) == int.from_bytes(SENT.bytes, "little") != number
    version_1 = "0156F7E71C361B21BC024CCDBE00000000"
    assert iggy.id_value(version_1, uuid="number") == iggy.id_value(version_1)


def test_order_of_a_uuid_that_is_unknown_or_does_not_fit_raises():
    for make in (iggy.id_text, iggy.id_value):
        with pytest.raises(ValueError, match="uuid must be one of bytes, number, got 'halves'"):
            make(SENT, uuid="halves")
    with pytest.raises(ValueError, match="uuid must be 'bytes' with version_1=True, got 'number'"):
        iggy.id_text(7, version_1=True, uuid="number")
