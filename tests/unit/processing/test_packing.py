"""States as they are stored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgid.processing.store import pack, unpack


@given(st.none() | st.binary(max_size=2000))
def test_pack_is_undone_by_unpack(state):
    assert unpack(pack(state)) == state


def test_unpack_refuses_bytes_of_another_form():
    """A damaged column is an error, and never a state."""
    with pytest.raises(ValueError, match="packed must be a packed state"):
        unpack(b"X123")
