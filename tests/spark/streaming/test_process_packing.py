"""Malformed rows of `process` on their way to the operator."""

import json

import pyarrow as pa
import pytest
from helpers.buckets import COLUMNS

import msgid
from spark_ext.streaming._processing import packing
from spark_ext.streaming._state.buckets import bucket_keys
from spark_ext.streaming._state.packed_rows import packer

pytestmark = pytest.mark.spark

START = 1_700_000_000
V1 = [str(msgid.position_id("packing", number, START + number)) for number in range(3)]
NAMES = ["0", "1", "2", "3", "4", "5", "6", "7", "8"]


def packed(ids, *, reasons=None, raw=None):
    """Pack rows with these IDs, each with a key of its own, and unpack them; return the messages and malformed rows."""
    count = len(ids)
    same = pa.array(ids, pa.string())
    raw = pa.array([b"raw"] * count, pa.binary()) if raw is None else raw
    columns = [
        pa.array([0] * count, pa.int32()), pa.array([f"key {n}" for n in range(count)]), same,
        pa.array([None] * count, pa.int64()), pa.array(reasons or [None] * count, pa.string()),
        same, pa.array(["k"] * count), pa.array(range(count), pa.int64()), raw,
    ]  # fmt: skip
    batch = pa.RecordBatch.from_arrays(columns, NAMES)
    pack = packer(packing.preparer(COLUMNS, (2, 3)), bucket_keys(1))
    malformed, table = packing.unpacked(r["rows"] for part in pack([batch]) for r in part.to_pylist() if r["rows"])
    return [message for part in packing.slices(table, COLUMNS[2:], 2) for message in part], malformed


def test_packed_row_with_a_reason_is_malformed_and_has_its_json():
    """The other rows keep their values; the malformed row is not among them."""
    rows, malformed = packed([V1[0], None, "a-1"], reasons=[None, "no id", None])
    assert [(message.id, message.values) for message in rows] == [(V1[0], (0, b"raw")), ("a-1", (2, b"raw"))]
    ((id, text, reason),) = malformed
    assert (id, reason) == (None, "no id")
    assert json.loads(text) == {"id": None, "key": "k", "amount": 1, "raw": {"$bytes": "cmF3"}}


@pytest.mark.parametrize("nested", [False, True])
def test_packed_row_with_text_that_is_not_utf8_is_malformed(nested):
    """Also inside an array: the text is bytes in the JSON, and the other rows stay."""
    text = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.array([0, 1, 2, 3], pa.int32()).buffers()[1], pa.py_buffer(b"a\xffb")]
    )
    raw = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), text) if nested else text
    rows, malformed = packed(V1, raw=raw)
    assert [message.id for message in rows] == [V1[0], V1[2]]
    assert [message.values[1] for message in rows] == ([["a"], ["b"]] if nested else ["a", "b"])
    assert [(id, json.loads(body)["raw"], reason) for id, body, reason in malformed] == [
        (V1[1], [{"$bytes": "/w=="}] if nested else {"$bytes": "/w=="}, packing.UNREADABLE)
    ]
