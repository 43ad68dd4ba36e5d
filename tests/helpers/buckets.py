"""The operator of `process` without Spark: its state in dicts, and its rows packed as Spark passes them."""

import functools
from types import SimpleNamespace

import pyarrow as pa

from spark_ext.streaming._processing import history
from spark_ext.streaming._processing.handling import Settings
from spark_ext.streaming._processing.operator import Operator
from spark_ext.streaming._processing.packing import preparer
from spark_ext.streaming._state.bucket_log import BucketLog
from spark_ext.streaming._state.bucket_state import CHECK_BUCKET
from spark_ext.streaming._state.buckets import bucket_keys
from spark_ext.streaming._state.packed_rows import packer

COLUMNS = ("id", "key", "amount", "raw")
SCHEMA = [pa.int32(), pa.string(), pa.string(), pa.int64(), pa.string()]
SCHEMA += [pa.string(), pa.string(), pa.int64(), pa.binary()]
ROW = ("id", "number", "input_id", "key", "topic", "body", "kind", "reason")


class _Map:
    def __init__(self):
        self.held = {}

    def getValue(self, key):
        return self.held.get(key)

    def updateValue(self, key, value):
        self.held[key] = value

    def removeKey(self, key):
        self.held.pop(key, None)

    def iterator(self):
        return iter(list(self.held.items()))


class _List:
    def __init__(self):
        self.held = []

    def get(self):
        return iter(list(self.held))

    def appendValue(self, value):
        self.held.append(value)

    def clear(self):
        self.held.clear()


class Checkpoint:
    """The state of one bucket, which outlives a query."""

    def __init__(self):
        self.maps = {}
        self.lists = {}

    def getMapState(self, name, key, value):
        return self.maps.setdefault(name, _Map())

    def getListState(self, name, value):
        return self.lists.setdefault(name, _List())


def small_log(monkeypatch, sizes):
    """Let the logs of `process` have small pages."""
    monkeypatch.setattr(history, "BucketLog", functools.partial(BucketLog, sizes=sizes))


def settings(**changes):
    """Return the settings by which a query handles messages; without limits by default."""
    usual = {"retention_ms": 1 << 50, "remember_ms": 1 << 50, "attempts": 1, "keep_outputs": False}
    return Settings(names=COLUMNS[2:], **{**usual, **changes})


def run_batch(checkpoint, handler, lines, now_ms, *, buckets=1, packed=1 << 30, **changes):
    """Handle a micro-batch of (id, key, amount, raw, timestamp) as a query that starts and ends with it.

    A packed value has at most ``packed`` rows. Return the rows of the result.
    """
    operator = Operator(handler, settings(**changes), buckets)
    operator.init(checkpoint)
    keys = bucket_keys(1).tolist()
    assert list(operator.handleInputRows((CHECK_BUCKET,), iter(()), None)) == []
    rows = [(0, key, id, at, None, id, key, amount, raw) for id, key, amount, raw, at in lines]
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in SCHEMA]
    arrays = [pa.array(values, kind) for values, kind in zip(columns, SCHEMA, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, [str(place) for place in range(len(arrays))])
    pack, parts = packer(preparer(COLUMNS, (2, 3)), bucket_keys(1)), range(0, len(rows), packed)
    frames = [part.to_pandas() for first in parts for part in pack([batch.slice(first, packed)])]
    frames = [frame[frame["bucket"] == keys[0]].assign(now_ms=now_ms) for frame in frames]
    made = list(operator.handleInputRows((keys[0],), iter(frames), None)) if frames else []
    operator.close()
    rows = [row for frame in made for row in frame.astype(object).where(frame.notna(), None).itertuples(index=False)]
    return [SimpleNamespace(**{name: getattr(row, name) for name in ROW}) for row in rows]
