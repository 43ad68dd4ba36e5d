"""A bucket that is handled in slices of any size has the result and the state of one slice."""

import json
import random
import tempfile
from contextlib import closing

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from helpers.buckets import Checkpoint, run_batch, small_log
from helpers.values import Values, living
from hypothesis import given, settings
from hypothesis import strategies as st

import msgid
from spark_ext._spill import Limit, Spill
from spark_ext.streaming._bucket_state import BucketState
from spark_ext.streaming._labelling import HEAD_BYTES, KEY, labels_of, preparer
from spark_ext.streaming._log import Log, Sizes
from spark_ext.streaming._packing import packer
from spark_ext.streaming._processing import operator
from spark_ext.streaming._processing.history import LOGS
from spark_ext.streaming._seen import label_bucket
from spark_ext.streaming._slices import Arrived

pytestmark = pytest.mark.spark

START = 1_700_000_000
WHOLE = Limit(1 << 30, 1 << 40)
LIMITS = st.builds(Limit, st.integers(1, 12), st.sampled_from([1 << 30, 1, 400, 3000]))
IDS = [str(msgid.position_id("slices", number, START + number)) for number in range(4)] + ["order-1", "order-2"]


SMALL = Sizes(page=80, recent=3, runs=3, merge=200)


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
    state = BucketState(checkpoint, 1, *LOGS)
    heads = state.heads() or [b"", b""]
    return [entries_of(Log(state.logs[n], heads[n], *([horizon] * 2 * n))) for n in range(2)]


lines = st.tuples(
    st.sampled_from(IDS),
    st.sampled_from(["a", "b", "c", "hot", "hot", "hot"]),
    st.integers(0, 7),
    st.sampled_from([None, b"", b"x" * 99]),
    st.sampled_from([None, 0, START * 10**6, START * 10**6]),
)
batches = st.lists(st.tuples(st.lists(lines, max_size=25), st.integers(1, 4000)), min_size=1, max_size=4)


@settings(max_examples=60)
@given(batches=batches, limit=LIMITS, packed=st.integers(1, 9), keep_outputs=st.booleans())
def test_process_in_slices_has_the_outputs_and_states_of_one_slice(batches, limit, packed, keep_outputs):
    """Also if the messages of a key fill several slices, with one time, ID or body; replayed messages too."""
    found = []
    for size in (WHOLE, limit):
        checkpoint, now_ms, rows = Checkpoint(), START * 1000, []
        with pytest.MonkeyPatch.context() as changed:
            changed.setattr(operator, "SLICE", size)
            small_log(changed, SMALL)
            for batch, passed in batches:
                now_ms += passed
                options = {"retention_ms": 5000, "remember_ms": 10**9, "keep_outputs": keep_outputs}
                made = run_batch(checkpoint, gather, batch, now_ms, packed=packed, **options)
                rows.append(sorted(made, key=lambda row: (row.key, repr(row))))
        found.append((rows, state_of(checkpoint, now_ms - 5000)))
    assert found[0] == found[1]


def labelled(batch, values, limit, packed, watermark):
    """Label a micro-batch of (hash, content, microseconds or None, has an ID); return the labels."""
    rows = {
        KEY: [bytes([hash]) * 16 + bytes([content]) * 16 + bytes([has_id]) for hash, content, _, has_id in batch],
        "at": [time for _, _, time, _ in batch],
        "place": list(range(len(batch))),
    }
    types = {KEY: pa.binary(), "at": pa.timestamp("us", "UTC"), "place": pa.int64()}
    whole = pa.RecordBatch.from_arrays([pa.array(rows[name], type) for name, type in types.items()], names=list(types))
    pack = packer(preparer(1, "at"), np.array([5], np.int32))
    frames = [part.to_pandas() for first in range(0, len(batch), packed) for part in pack([whole.slice(first, packed)])]
    log, texts = Log(values, values.head, watermark // 1000, sizes=SMALL), []
    with closing(Arrived(frames, HEAD_BYTES, limit)) as arrived:
        for labels, payloads in labels_of(
            arrived, watermark + 10_000, lambda rows: label_bucket(rows, log, watermark, 10_000)
        ):
            assert len(labels) == len(payloads)
            texts += labels
    values.commit(log.commit())
    return b"".join(texts)


rows = st.tuples(
    st.sampled_from([0, 1, 2, 255, 7, 7, 7]),
    st.integers(0, 1),
    st.sampled_from([None, 0, 20_000, 25_000, 60_000]),
    st.booleans(),
)


@settings(max_examples=60)
@given(
    steps=st.lists(st.tuples(st.integers(0, 12), st.lists(rows, min_size=1, max_size=40)), min_size=1, max_size=4),
    limit=LIMITS,
    packed=st.integers(1, 9),
)
def test_deduplicate_in_slices_has_the_labels_and_ids_of_one_slice(steps, limit, packed):
    """Also if the rows of an ID fill several slices: each row keeps its label, late rows and rows without time too."""
    found = []
    for size in (WHOLE, limit):
        values, watermark, told = Values(), 0, []
        for advance, batch in steps:
            watermark += 1000 * advance
            told.append(labelled(batch, values, size, packed, watermark))
        found.append((told, entries_of(Log(values, values.head, watermark // 1000))))
    assert found[0] == found[1]


@pytest.mark.parametrize("case", ["many keys", "one key", "one message again and again"])
def test_slices_of_process_are_near_their_size(case, monkeypatch):
    """At most two slices of messages are handled at once, however the keys, times and IDs repeat."""
    sizes = []
    handle_rows = operator.Operator._handle_rows

    def noted(self, bucket, rows):
        sizes.append(len(rows.keys))
        return handle_rows(self, bucket, rows)

    monkeypatch.setattr(operator.Operator, "_handle_rows", noted)
    monkeypatch.setattr(operator, "SLICE", Limit(200, 1 << 30))
    draw, batch = random.Random(1), []
    for number in range(5000):
        key = "one" if case != "many keys" else f"key {draw.randrange(900)}"
        id = "same" if "again" in case else f"id {draw.randrange(4000)}"
        batch.append((id, key, number % 5, b"", None if "again" in case else number))
    kinds = {row.kind for row in run_batch(Checkpoint(), gather, batch, START * 1000, packed=300)}
    assert sum(sizes) == 5000
    assert max(sizes) <= 400
    assert "new" in kinds


def test_slices_of_deduplicate_are_near_their_size():
    """One ID with most of the rows, and equal rows: their places of arrival divide them."""
    draw, sizes = random.Random(1), []
    batch = [(7 if draw.random() < 0.9 else draw.randrange(200), 0, 20_000, True) for _ in range(5000)]
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(
            f"{__name__}.label_bucket", lambda rows, *more: sizes.append(len(rows.high)) or label_bucket_(rows, *more)
        )
        labels = labelled(batch, Values(), Limit(200, 1 << 30), 300, 0)
    assert sum(sizes) == len(labels) == 5000
    assert max(sizes) <= 400


label_bucket_ = label_bucket


def test_spilled_values_are_in_sparks_local_folder_and_leave_nothing(monkeypatch, tmp_path):
    """The file does not have a name, so a killed worker leaves nothing behind."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    spill = Spill()
    places = [spill.write(text) for text in (b"one", b"", b"three")]
    assert [spill.read(place) for place in reversed(places)] == [b"three", b"", b"one"]
    spill.close()
    assert list(tmp_path.iterdir()) == []


def test_output_rows_of_a_slice_are_returned_some_at_a_time(monkeypatch):
    """A handler may publish much more than it gets."""
    monkeypatch.setattr(operator, "SLICE", Limit(1000, 10_000))
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


def test_values_within_the_limit_stay_in_memory():
    """No file is written for a bucket of the usual size."""
    frames = [pd.DataFrame({"head": [b"h" * 8, b""], "rows": [b"r", b""]})] * 3
    with closing(Arrived(frames, 8, Limit(3, 100))) as arrived:
        assert (arrived.spill, arrived.rows, list(arrived.values())) == (None, 3, [(b"h" * 8, b"r")] * 3)
    with closing(Arrived(frames, 8, Limit(2, 100))) as arrived:
        assert (arrived.spill is None, arrived.rows, list(arrived.values())) == (False, 3, [(b"h" * 8, b"r")] * 3)
