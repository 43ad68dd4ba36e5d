"""A bucket whose messages are handled in slices of any size has the result and the state of one slice."""

import json
import random

import pytest
from helpers.buckets import Checkpoint, run_batch, small_log
from helpers.values import living
from hypothesis import given, settings
from hypothesis import strategies as st

import msgid
from spark_ext.streaming._processing import operator, packing
from spark_ext.streaming._processing.history import LOGS
from spark_ext.streaming._state.bucket_log import BucketLog, Sizes
from spark_ext.streaming._state.bucket_state import BucketState

pytestmark = pytest.mark.spark

START = 1_700_000_000
LIMITS = st.tuples(st.integers(1, 12), st.sampled_from([1 << 30, 1, 400, 3000]))
IDS = [str(msgid.position_id("slices", number, START + number)) for number in range(4)] + ["order-1", "order-2"]


SMALL = Sizes(page=80, recent=3, runs=3)


def gather(state, message, context):
    """Append an amount, and publish twice: the order of the messages of a key shows in the state."""
    if message.body["amount"] == 7:
        raise ValueError("seven")
    state = [*(state or []), message.body["amount"]][-9:]
    context.publish({"amounts": state})
    context.publish({"last": state[-1], "chance": context.random.random()}, "second")
    return state


def entries_of(log):
    """Return the newest entries of a log."""
    found = living(log)
    columns = (found.high.tolist(), found.low.tolist(), found.time.tolist(), found.data.to_pylist())
    return list(zip(*columns, strict=True))


def state_of(checkpoint, horizon):
    """Return the states of keys, and the entries of messages."""
    state = BucketState(checkpoint, *LOGS)
    return [entries_of(BucketLog(state.logs[n], *([horizon] * 2 * n))) for n in range(2)]


lines = st.tuples(
    st.sampled_from(IDS),
    st.sampled_from(["a", "b", "c", "hot", "hot", "hot"]),
    st.integers(0, 7),
    st.sampled_from([None, b"", b"x" * 99]),
    st.sampled_from([None, 0, START * 10**6, START * 10**6]),
)
batches = st.lists(st.tuples(st.lists(lines, max_size=25), st.integers(1, 4000)), min_size=1, max_size=4)


@settings(max_examples=30)
@given(batches=batches, limit=LIMITS, packed=st.integers(1, 9), keep_outputs=st.booleans())
@pytest.mark.details
def test_process_in_slices_has_the_outputs_and_states_of_one_slice(batches, limit, packed, keep_outputs):
    """Also if the messages of a key fill several slices, with one time, ID or body; replayed messages too."""
    found = []
    for rows_limit, bytes_limit in ((1 << 30, 1 << 40), limit):
        checkpoint, now_ms, rows = Checkpoint(), START * 1000, []
        with pytest.MonkeyPatch.context() as changed:
            changed.setattr(operator, "SLICE_ROWS", rows_limit)
            changed.setattr(operator, "SLICE_BYTES", bytes_limit)
            small_log(changed, SMALL)
            for batch, passed in batches:
                now_ms += passed
                options = {"retention_ms": 5000, "remember_ms": 10**9, "keep_outputs": keep_outputs}
                made = run_batch(checkpoint, gather, batch, now_ms, packed=packed, **options)
                rows.append(sorted(made, key=lambda row: (row.key, repr(row))))
        found.append((rows, state_of(checkpoint, now_ms - 5000)))
    assert found[0] == found[1]


@pytest.mark.parametrize("case", ["many keys", "one key", "one message again and again"])
def test_slices_have_their_size_and_divide_no_equal_messages(case, monkeypatch):
    """However keys, times and IDs repeat. Messages of one key, time and ID are in one slice: the body orders them."""
    sizes, in_order = [], packing._in_order
    monkeypatch.setattr(packing, "_in_order", lambda table, names: sizes.append(len(table)) or in_order(table, names))
    monkeypatch.setattr(operator, "SLICE_ROWS", 200)
    draw, batch = random.Random(1), []
    for number in range(2000):
        key = "one" if case != "many keys" else f"key {draw.randrange(400)}"
        id = "same" if "again" in case else f"id {draw.randrange(1600)}"
        batch.append((id, key, number % 5, b"", None if "again" in case else number % 40))
    kinds = {row.kind for row in run_batch(Checkpoint(), gather, batch, START * 1000, packed=300)}
    assert sum(sizes) == 2000
    assert len(sizes) == 1 if "again" in case else max(sizes) < 220
    assert "new" in kinds


def test_output_rows_of_a_slice_are_returned_some_at_a_time(monkeypatch):
    """A handler may publish much more than it gets."""
    monkeypatch.setattr(operator, "SLICE_BYTES", 10_000)
    frames, frame_of = [], operator._frame
    monkeypatch.setattr(operator, "_frame", lambda rows: frames.append(len(rows)) or frame_of(rows))

    def publish(state, message, context):
        for number in range(5):
            context.publish({"text": "x" * 1000, "number": number})
        return "y" * 1000

    lines = [(f"id {number}", "key", number, b"", None) for number in range(50)]
    made = run_batch(Checkpoint(), publish, lines, START * 1000)
    assert [json.loads(row.body)["number"] for row in made] == [0, 1, 2, 3, 4] * 50
    assert max(frames) <= 15
