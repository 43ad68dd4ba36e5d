"""The texts of many IDs at once: the same as of each ID alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgid import iggy
from msgid.iggy._records.id_texts import id_texts

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
