"""The order in which `process` handles the messages of a key in one micro-batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")
pytest.importorskip("pandas")
from helpers.buckets import Checkpoint, run_batch

NOW_MS = 1_700_000_000_000
rows = st.tuples(
    st.sampled_from("abc"), st.just("key"), st.integers(0, 3), st.sampled_from([b"", b"x"]), st.integers(0, 2)
)


def remember(state, message, context):
    """Publish all messages so far: each output shows the order."""
    state = [*(state or []), [message.id, message.timestamp, message.body["amount"], message.body["raw"]]]
    context.publish(state)
    return state


def outputs(batch):
    return sorted(map(repr, run_batch(Checkpoint(), remember, batch, NOW_MS)))


@given(st.lists(rows, max_size=6), st.randoms(use_true_random=False))
def test_order_of_messages_does_not_depend_on_the_order_of_rows(batch, chance):
    """Two rows of one ID and time with other bodies: in each run one of them is handled first, by its body."""
    assert outputs(chance.sample(batch, len(batch))) == outputs(batch)


@given(st.lists(rows, min_size=1, max_size=6, unique_by=lambda row: row[0]))
def test_messages_are_ordered_by_time_and_id_first(batch):
    made = run_batch(Checkpoint(), remember, batch, NOW_MS)
    (longest,) = [row for row in made if row.body.count("[") == len(batch) + 1]
    places = [longest.body.index(f'"{name}"') for _, name in sorted((row[4], row[0]) for row in batch)]
    assert places == sorted(places)
