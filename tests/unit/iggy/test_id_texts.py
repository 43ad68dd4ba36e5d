"""The texts of many IDs at once: the same as of each ID alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgid import iggy
from msgid.iggy._records.id_texts import id_texts

pa = pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

UUID_4 = bytes.fromhex("74b158caddb3498fb0a99eec1c6197ae")
UUID_7 = bytes.fromhex("0193e3b27c1a7d3e9a5f0123456789ab")
VERSION_1 = bytes.fromhex("56F7E71C361B21BC024CCDBE00000000")
OTHER_VARIANT = UUID_4[:8] + b"\xff" + UUID_4[9:]


def expected(ids):
    """Return the text of each ID alone."""
    return [None if id is None else iggy.id_text(id) for id in ids]


@pytest.mark.parametrize(
    "ids",
    [
        [],
        [None, None],
        [UUID_4, UUID_7],
        [VERSION_1, OTHER_VARIANT, bytes(16)],
        [UUID_4, None, VERSION_1, UUID_7, OTHER_VARIANT],
    ],
)
def test_id_texts_of_each_kind_are_those_of_id_text(ids):
    """UUIDs, other bytes and NULL, alone and mixed."""
    assert id_texts(pa.array(ids, pa.binary())).to_pylist() == expected(ids)


@given(st.lists(st.none() | st.binary(min_size=16, max_size=16), max_size=20), st.integers(0, 20), st.integers(0, 20))
def test_id_texts_of_any_ids_are_those_of_id_text(ids, start, length):
    """Also of a slice, whose buffers begin elsewhere."""
    found = id_texts(pa.array(ids, pa.binary()).slice(min(start, len(ids)), length))
    assert found.to_pylist() == expected(ids[start : start + length])
    found.validate(full=True)
