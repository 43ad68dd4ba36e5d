"""The keys by which a stream's `deduplicate` tells IDs apart, and the buckets into which they go."""

import uuid

import numpy as np
import pytest

import msgid
from spark_ext.columns.identity import identity
from spark_ext.streaming._labelled_stream import id_hash
from spark_ext.streaming._labelling import _buckets

pytestmark = pytest.mark.spark

START = 1_700_000_000
V1 = [str(msgid.position_id("key", number, START + number)) for number in range(300)]
V7 = [str(uuid.UUID(int=(START + 100 * n) * 1000 << 80 | 7 << 76 | 2 << 62 | 5)) for n in range(20)]
ULIDS = [f"01J{n:04d}ABC0123456789ABCDEF" for n in range(20)]
OTHERS = [
    "7F0000010000238F000000000001E240", "007F0000010000238F000000000001E240".replace("7F", "7E"), "orders-0-42",
    "01" + "x" * 32, "01" + "0" * 31 + "g", "ü" * 13, "u" * 26, "z" * 36, " ", "a",
    "74b158ca-ddb3-498f-b0a9-9eec1c6197ae", "01" + "0" * 24 + "é" * 4,
]  # fmt: skip


@pytest.fixture(scope="module")
def keys(spark):
    """The 16 bytes of each identity."""
    ids = [*V1, *V7, *ULIDS, *OTHERS]
    df = spark.createDataFrame([(id,) for id in ids], "id string")
    rows = df.select("id", id_hash(identity("id"))).collect()
    return {row[0]: bytes(row[1]) for row in rows}


def test_keys_of_different_ids_differ_and_have_one_length(keys):
    """Whatever the text: version 1, UUIDs, ULIDs, text that only looks like one of them."""
    assert len(set(keys.values())) == len(keys) == len(V1) + len(V7) + len(ULIDS) + len(OTHERS)
    assert {len(key) for key in keys.values()} == {16}


@pytest.mark.parametrize("ids", [V1, V7, ULIDS])
def test_keys_of_ids_with_time_ascend_with_it(keys, ids):
    """So that new IDs are neighbors in the state."""
    starts = [keys[id][:5] for id in ids]
    assert starts == sorted(starts)
    assert len(set(starts)) > 1


def test_key_of_version_1_is_the_id_itself(keys):
    """Two IDs of version 1 never share a key: all their bytes are in it."""
    raw = bytes.fromhex(V1[7])
    assert keys[V1[7]] == raw[9:17] + raw[1:9]


def test_keys_of_one_generator_are_spread_evenly_over_buckets():
    """IDs that differ in sequence and seconds alone: no bucket has twice its share."""
    numbers = np.arange(200_000, dtype=">u8")
    keys = np.zeros((len(numbers), 25), np.uint8)
    keys[:, :8] = (numbers // 1000 << 32 | numbers).view(np.uint8).reshape(-1, 8)
    keys[:, 8:16] = 7
    for buckets in (1, 3, 64, 65_536):
        shares = np.bincount(_buckets(keys, buckets), minlength=buckets)
        assert len(shares) == buckets
        assert shares.max() <= max(2 * len(numbers) / buckets, 20)
