"""Rows of `process` on their way to the operator: IDs, times and malformed rows of whole Arrow batches."""

import json

import pyarrow as pa
import pytest
from helpers.buckets import COLUMNS

import msgid
from msgid import derive_id
from msgid.ids._bytes import identity
from spark_ext.streaming._buckets import bucket_keys
from spark_ext.streaming._packing import packer
from spark_ext.streaming._processing import history, packing
from spark_ext.streaming._processing.history import Entry

pytestmark = pytest.mark.spark

START = 1_700_000_000
V1 = [str(msgid.position_id("packing", number, START + number)) for number in range(3)]
OTHERS = ["7f0000010000238f000000000001e240", "74B158CA-DDB3-498F-B0A9-9EEC1C6197AE", "orders-0-42", "0156 bad"]
NAMES = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]


def packed(ids, *, times=None, reasons=None, raw=None, type=None):
    """Pack rows with these IDs, each with a key of its own, and unpack them; return the messages and malformed rows."""
    count = len(ids)
    same = pa.array(ids, type or pa.string())
    raw = pa.array([b"raw"] * count, pa.binary()) if raw is None else raw
    columns = [
        pa.array([0] * count, pa.int32()), pa.array([f"key {n}" for n in range(count)]), same,
        pa.array(times or [None] * count, pa.int64()), pa.array(reasons or [None] * count, pa.string()),
        pa.array([7] * count, pa.int64()), same, pa.array(["k"] * count), pa.array(range(count), pa.int64()), raw,
    ]  # fmt: skip
    batch = pa.RecordBatch.from_arrays(columns, NAMES)
    pack = packer(packing.preparer(COLUMNS, (2, 3)), bucket_keys(1))
    malformed, table = packing.unpacked(
        row["rows"] for part in pack([batch]) for row in part.to_pylist() if row["rows"]
    )
    return [message for part in packing.slices(table, COLUMNS[2:], 2) for message in part], malformed


def test_packed_ids_of_any_form_are_canonical():
    """Version-1 IDs alone, in either case, and IDs of every form have the identities that Python gives."""
    for ids in (V1, [id.lower() for id in V1], [*V1[:2], V1[2].lower(), *OTHERS]):
        assert [message.id for message in packed(ids)[0]] == [identity(id) for id in ids]
    raw = [bytes.fromhex(V1[0]), bytes.fromhex(OTHERS[0]), b"x"]
    assert [message.id for message in packed(raw, type=pa.binary())[0]] == [identity(id) for id in raw]


def test_packed_time_is_given_or_in_the_id_or_missing():
    """The time of the ID counts if the time of the row is NULL; other IDs lack a time."""
    of_uuid = str(derive_id("74b158ca-ddb3-498f-b0a9-9eec1c6197ae", 1))
    rows, _ = packed([V1[0], V1[1], "orders-0-42", of_uuid], times=[5, None, None, None])
    assert [message.time for message in rows] == [5, (START + 1) * 1_000_000, packing.NO_TIME, packing.NO_TIME]


def test_packed_row_with_a_reason_is_malformed_and_has_its_json():
    """The other rows keep their values; the malformed row is not among them."""
    rows, malformed = packed([V1[0], None, "a-1"], reasons=[None, "no id", None])
    assert [message[2:] for message in rows] == [(V1[0], (0, b"raw")), ("a-1", (2, b"raw"))]
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


@pytest.mark.parametrize(
    "entry",
    [
        Entry(None, b"x" * 16),
        Entry(b"1", b"y" * 16),
        Entry(None, [("i", None, "{}")]),
        Entry(None, []),
    ],
)
def test_entry_of_a_message_is_read_as_it_was_written(entry):
    """With a fingerprint and the state before, or with the outputs; the payload is never empty."""
    payload = history.packed(entry)
    assert payload
    assert history.unpacked(payload) == entry
