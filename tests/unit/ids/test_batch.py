"""Batches as sequences of IDs, and their encoded forms."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

NOON = 1_700_000_000


def batch_of(msgid, count, first=0):
    return msgid.Generator(node=0x56F7E71C361B, pid=8636, clock=lambda: NOON, sequence=first).generate_batch(count)


firsts = st.one_of(st.integers(0, 2**32 - 1), st.integers(2**32 - 60, 2**32 - 1))
indices = st.one_of(st.none(), st.integers(-70, 70))
steps = st.one_of(st.none(), st.integers(-7, 7).filter(bool))


@given(firsts, st.integers(0, 60))
def test_batch_in_every_form_has_the_same_ids(msgid, first, count):
    batch = batch_of(msgid, count, first)
    listed = list(batch)
    assert len(batch) == len(listed) == count
    assert [batch[i] for i in range(count)] == listed
    assert batch.hex() == [str(id) for id in listed]
    rows = batch.to_bytes()
    assert isinstance(rows, bytes)
    assert rows == b"".join(map(bytes, listed))
    assert all(isinstance(id, msgid.MessageId) for id in listed)


@given(firsts, st.integers(0, 60))
def test_batch_as_an_array_has_the_ids_in_order(msgid, first, count):
    pytest.importorskip("numpy")
    pytest.importorskip("pyarrow")
    batch = batch_of(msgid, count, first)
    array = batch.to_numpy()
    assert (array.shape, array.dtype) == ((count, 17), "uint8")
    assert array.tobytes() == b"".join(map(bytes, batch))
    arrow = batch.to_arrow()
    assert str(arrow.type) == "fixed_size_binary[17]"
    assert arrow.to_pylist() == [bytes(id) for id in batch]


@given(firsts, st.integers(0, 60), indices, indices, steps)
def test_slice_of_a_batch_is_the_batch_of_a_list_slice(msgid, first, count, start, stop, step):
    """A slice equals the same slice of a list, also with negative steps, of a slice, and pickled in every protocol."""
    batch, part = batch_of(msgid, count, first), slice(start, stop, step)
    sliced = batch[part]
    assert type(sliced) is type(batch)
    assert list(sliced) == list(batch)[part]
    assert sliced.to_bytes() == b"".join(map(bytes, list(batch)[part]))
    assert list(sliced[::-2]) == list(batch)[part][::-2]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert list(pickle.loads(pickle.dumps(sliced, protocol))) == list(sliced)


@given(firsts, st.integers(1, 60), st.integers(-100, 100))
def test_index_of_a_batch_is_that_of_a_list(msgid, first, count, index):
    batch = batch_of(msgid, count, first)
    if -count <= index < count:
        assert batch[index] == list(batch)[index]
    else:
        with pytest.raises(IndexError):
            batch[index]


@given(firsts, st.integers(0, 60), steps)
def test_in_of_an_id_looks_at_its_fields(msgid, first, count, step):
    """``in`` is True only for the IDs of the batch; texts and IDs of other generators are not in it."""
    batch = batch_of(msgid, count, first)
    part = batch[:: step or 1]
    for id in batch:
        assert (id in part) == (id in list(part))
    assert str(batch_of(msgid, 1, first)[0]) not in batch
    assert batch_of(msgid, 1, (first + 60) % 2**32)[0] not in batch
    assert msgid.Generator(node=1, pid=8636, clock=lambda: NOON, sequence=first).generate() not in batch


def test_batch_of_the_largest_size_costs_nothing_until_written(msgid):
    batch = batch_of(msgid, 2**32, first=7)
    assert batch[0].sequence == 7
    assert batch[-1].sequence == 6
    assert batch[-1].seconds == batch[0].seconds + 1
    assert len(batch[10:20].hex()) == 10
    assert batch[-1] in batch


def test_repr_of_a_batch_shows_its_ends(msgid):
    assert repr(batch_of(msgid, 0)) == "<IdBatch of 0>"
    assert repr(batch_of(msgid, 10**6)) == (
        "<IdBatch of 1000000: 0156F7E71C361B21BC05658B0000000000 to 0156F7E71C361B21BC05658B00000F423F>"
    )
