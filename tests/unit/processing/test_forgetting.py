"""One rule for forgetting: stores and Spark keep an entry of exactly the given time, and forget an earlier one."""

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
