"""The operator of Spark's `process`: it forgets what a store forgets, and handles messages in one order."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msgid.processing import MemoryStore, Message, Processor

pytest.importorskip("pyspark")
pytest.importorskip("pandas")
from helpers.buckets import Checkpoint, run_batch

RETENTION_MS, REMEMBER_MS = 5, 7
ids = st.sampled_from(["a", "b", "c"])


def count(state, message, context):
    context.publish(state)
    return (state or 0) + 1


@given(st.lists(st.tuples(st.integers(0, 8), st.lists(ids, min_size=1, max_size=3, unique=True)), max_size=12))
@example([(0, ["a"]), (5, ["a"]), (1, ["a"])])
@example([(0, ["a"]), (1, ["b"]), (5, ["b"])])
@example([(0, ["a"]), (6, ["b"]), (6, ["a"])])
@example([(0, ["a"]), (6, ["b"]), (7, ["a"])])
def test_spark_forgets_what_a_store_forgets(batches):
    """Any deliveries at any times: the same messages are duplicates, too late, and new again."""
    checkpoint, now_ms = Checkpoint(), 1_700_000_000_000
    processor = Processor(
        MemoryStore(remember=f"{REMEMBER_MS} milliseconds"),
        lambda state, message, context: (state or 0) + 1,  # no outputs: a store keeps the last batch of those
        list,
        dead_letter=lambda letter: None,
        clock=lambda: now_ms * 1_000_000,
        name="count",
    )
    for wait, names in batches:
        now_ms += wait
        processor.forget((now_ms - RETENTION_MS) * 1000)
        expected = {name: processor.handle(Message(name, "key", None)).kind for name in sorted(names)}
        lines = [(name, "key", 1, b"", now_ms) for name in sorted(names)]
        options = {"retention_ms": RETENTION_MS, "remember_ms": REMEMBER_MS}
        rows = run_batch(checkpoint, count, lines, now_ms, **options)
        assert {row.input_id: row.kind for row in rows} == expected


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
