"""`deduplicate` on a stream: labels over micro-batches and restarts, against a plain model."""

import json
import os
from collections import Counter
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest
from helpers.streams import run_to_end
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import Row
from pyspark.sql import functions as F

import spark_ext as ids
from spark_ext._settings import settings as session_settings
from spark_ext.streaming.deduplicate import LATE_METRIC

pytestmark = pytest.mark.spark

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
WITHIN = 10
V0 = "7F0000010000238F000000000001E240"
SCHEMA = (
    "id string, at timestamp, n int, `a.b` int, `b``c` string, __id array<string>, __at_ms map<string, int>, "
    "`Key` struct<x: int, y: string>"
)
CONTENTS = [
    {},
    {"a.b": 1},
    {"b`c": ""},
    {"__id": []},
    {"__id": ["a, b"]},
    {"__id": ["a", "b"]},
    {"__id": ["a", None]},
    {"__at_ms": {"x": 1, "y": 2}},
    {"__at_ms": {"y": 2, "x": 1}},
    {"Key": {"x": None, "y": None}},
]


CHANGELOGS = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
WITHOUT_TIME = 10**9
"""The time of a row without one, in the model: later than all others, as the clock is in these tests."""


def millis(n, seconds):
    """The time of row ``n`` of a file: of two rows of one second, the later one in the file is the earlier one."""
    return WITHOUT_TIME if seconds is None else 1000 * seconds + 500 - n


def add_batch(folder, batch):
    """Write one file, which the stream reads as one micro-batch; files are read in the order of their times."""
    (folder / "in").mkdir(exist_ok=True)
    number = len(list((folder / "in").iterdir()))
    lines = []
    for n, (id, seconds, content) in enumerate(batch):
        at = None if seconds is None else (START + timedelta(milliseconds=millis(n, seconds))).isoformat()
        lines.append(json.dumps({"id": id, "at": at, "n": 1000 * number + n, **CONTENTS[content]}))
    path = folder / "in" / f"{number}.json"
    path.write_text("\n".join(lines))
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def stream(spark, folder, **options):
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    return ids.deduplicate(df, **{"order_by": "n", "timestamp": "at", "within": f"{WITHIN} seconds"} | options)


def labels(spark, folder):
    """The labels by the column ``n``."""
    return {row.n: row.delivery for row in spark.read.parquet(str(folder / "out")).collect()}


class Model:
    """Labels micro-batches as `deduplicate` documents it, one row after another."""

    def __init__(self):
        self.seen, self.labels, self.late = {}, {}, 0
        self.watermark = self.latest = float("-inf")

    def add(self, number, batch):
        rows = [(millis(n, seconds), n, id, content) for n, (id, seconds, content) in enumerate(batch)]
        for at, n, id, content in sorted(rows):
            if at < self.watermark:
                self.late += 1
                continue
            key = "00" + V0 if id and id.upper() in (V0, "00" + V0) else id
            text = repr(sorted(CONTENTS[content].items()))
            first, until = self.seen.get(key, (None, float("-inf")))
            known = until >= self.watermark and first is not None
            label = "new" if not known else "duplicate" if first == text else "conflict"
            self.labels[1000 * number + n] = label if key else "no id"
            self.seen[key] = (first if known else text, max(until if known else at, at + 1000 * WITHIN))
        self.latest = max([self.latest, *(row[0] for row in rows if row[0] != WITHOUT_TIME)])
        self.watermark = self.latest - 1000 * WITHIN


def check(spark, folder, phases, changelogs=False, **options):
    """Run phases, each some micro-batches after a restart; compare with the model.

    Spark writes the state as snapshots in one run and as changelogs in the next; ``changelogs`` is the first run's way.
    """
    model, late, number, expected = Model(), 0, 0, []
    for phase in phases:
        for batch in phase:
            add_batch(folder, batch)
            model.add(number, batch)
            expected += [(number, row, model.labels.get(1000 * number + n)) for n, row in enumerate(batch)]
            number += 1
        with session_settings(spark, {CHANGELOGS: str(changelogs).lower()}):
            late += ids.rows_too_late(run_to_end(stream(spark, folder, **options), folder))
        changelogs = not changelogs
    found = labels(spark, folder)
    # Equal rows without time may change places.
    batches = [batch for phase in phases for batch in phase]
    places = [1000 * number + n for number, batch in enumerate(batches) for n in range(len(batch))]
    got = [(number, row, found.get(place)) for (number, row, _), place in zip(expected, places, strict=True)]
    assert Counter(map(repr, got)) == Counter(map(repr, expected))
    assert late == model.late


row_ids = st.sampled_from(["a", "b", "A", V0, V0.lower(), "00" + V0, None, ""])
stream_rows = st.one_of(
    st.tuples(row_ids, st.integers(0, 60), st.integers(0, len(CONTENTS) - 1)),
    st.tuples(row_ids, st.none(), st.just(0)),
)
phases = st.lists(
    st.lists(st.lists(stream_rows, min_size=1, max_size=15), min_size=1, max_size=4), min_size=1, max_size=2
)


def test_late_rows_are_counted_in_each_form_of_a_progress():
    """A query has several; a listener gets one. Spark Connect has the values of a metric beside their schema."""
    name = f"{LATE_METRIC} 1"
    classic = SimpleNamespace(observedMetrics={name: Row(rows=2), "other": Row(rows=7)})
    connect = SimpleNamespace(observedMetrics={name: Row(values=[3], schema={})})
    query = SimpleNamespace(recentProgress=[classic, connect, SimpleNamespace(observedMetrics=None)])
    assert [ids.rows_too_late(each) for each in (classic, connect, query)] == [2, 3, 5]


# A stream takes seconds, so there are few examples, and a failing one is not made smaller.
@pytest.mark.volume
@settings(max_examples=4, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(phases=phases, changelogs=st.booleans())
def test_labels_of_any_stream_equal_those_of_the_model(spark, rocksdb, tmp_path_factory, phases, changelogs):
    """Spellings, duplicates, conflicts, late rows, missing IDs and times, and restarts: the labels of the model."""
    check(spark, tmp_path_factory.mktemp("stream"), phases, changelogs, buckets=3)


@pytest.mark.details
def test_rows_of_one_id_keep_it_remembered_and_late_rows_are_counted(spark, rocksdb, tmp_path):
    """Rows 8 s apart within 10 s: the third is a duplicate, too. A row without time is remembered. Late rows count."""
    first = [("a", 0, 0), ("null", None, 0), ("empty", 0, 1), (None, 0, 0), ("split", 0, 4)]
    second = [("a", 8, 0), ("empty", 8, 2), ("split", 8, 5)]
    third = [("a", 16, 0), ("null", None, 0), ("a", 8, 0)]
    late = [("a", 1, 0), ("a", 60, 0)]
    forgotten = [("a", 120, 3), ("b", 121, 0), ("null", 300, 0)]
    check(spark, tmp_path, [[first, second, third], [late, forgotten]])
    found = labels(spark, tmp_path)
    assert (found[0], found[1000], found[2000]) == ("new", "duplicate", "duplicate")
    assert (found[1], found[2001], found[4002]) == ("new", "duplicate", "duplicate")
    assert (found[1001], found[1002]) == ("conflict", "conflict")  # NULL and "", ["a, b"] and ["a", "b"]
    assert 3000 not in found


@pytest.mark.details
def test_another_number_of_buckets_is_refused(spark, rocksdb, tmp_path):
    """The checkpoint keeps the number of buckets; a query with another one ends and says so."""
    add_batch(tmp_path, [("a", 0, 0)])
    run_to_end(stream(spark, tmp_path, buckets=2), tmp_path)
    add_batch(tmp_path, [("b", 0, 0)])
    with pytest.raises(PySparkException, match="`buckets` must be 2, the number in the checkpoint of the query, got 5"):
        run_to_end(stream(spark, tmp_path, buckets=5), tmp_path)


@pytest.mark.details
def test_types_nullability_and_names_of_a_stream_are_kept(spark, rocksdb, tmp_path):
    """Columns of every type come out as they went in, whatever their names; NULL within nested values, too."""
    types = {
        "Delivery": "CAST(1.5 AS DECIMAL(38, 18))",
        "__at_ms": "X'FF00'",
        "a.b": "array(named_struct('x', CAST(NULL AS INT), 'y', map('k', array(1, NULL))))",
        "v": """parse_json('{"b": 1, "a": [null]}')""",
        "d": "INTERVAL '1 02:03:04.5' DAY TO SECOND",
        "ntz": "TIMESTAMP_NTZ'2026-03-08 02:30:00.123456'",
        "t": "TIMESTAMP'2026-11-01 05:30:00.123456Z'",
        "f": "CAST('NaN' AS FLOAT)",
        "date": "DATE'1500-01-01'",
        "void": "NULL",
        "lower": "'Abc' COLLATE UTF8_LCASE",
    }
    add_batch(tmp_path, [("a", 0, 0), ("a", 0, 0)])
    df = spark.readStream.schema("id string, at timestamp").json(str(tmp_path / "in"))
    df = df.select(
        "id",
        F.col("at").alias("sent.`at"),
        F.lit(7).alias("never null"),
        *(F.expr(text).alias(name) for name, text in types.items()),
    )
    compared = [name for name in types if name != "v"]
    out = ids.deduplicate(df, timestamp="SENT.`AT", within="10 seconds", name="what.is", content=compared)
    assert out.columns == [*df.columns, "what.is"]
    assert out.drop("what.is").schema == df.withWatermark("`sent.``at`", "10 seconds").schema
    assert not out.schema["never null"].nullable
    plain = [name for name in types if name not in ("v", "a.b")]
    shown = [F.col("`what.is`"), *(F.col(f"`{name}`").eqNullSafe(F.expr(types[name])) for name in plain)]
    shown += [F.to_json("v"), F.col("`a.b`").cast("string")]
    query = out.select(*(column.alias(f"c{n}") for n, column in enumerate(shown)))
    run_to_end(query, tmp_path)
    rows = [tuple(row) for row in spark.read.parquet(str(tmp_path / "out")).collect()]
    assert sorted(row[0] for row in rows) == ["duplicate", "new"]
    assert {row[1:] for row in rows} == {
        (
            *[True] * len(plain),
            '{"a":[null],"b":1}',
            "[{null, {k -> [1, null]}}]",
        )
    }


def test_what_a_stream_needs_is_said_at_once(spark, default_state_store, tmp_path):
    """A time, a bound, a number of buckets, and the state store."""
    df = spark.readStream.schema("id string, at timestamp").json(str(tmp_path))
    with pytest.raises(ValueError, match="a stream needs `timestamp` and `within`"):
        ids.deduplicate(df)
    with pytest.raises(ValueError, match=r"needs the RocksDB state store: spark\.conf\.set"):
        ids.deduplicate(df, timestamp="at", within="1 minute")
    with pytest.raises(
        ValueError, match=r"the watermark of `df` must be .* got {'at': 120000} in milliseconds; do not"
    ):
        ids.deduplicate(df.withWatermark("at", "2 minutes"), timestamp="at", within="1 minute")
    for buckets in (0, 65_537):
        with pytest.raises(ValueError, match="buckets must be 1 to 65536, got"):
            ids.deduplicate(df, timestamp="at", within="1 minute", buckets=buckets)


@pytest.mark.details
def test_windows_and_another_deduplicate_can_follow(spark, rocksdb, tmp_path):
    """The stream keeps the mark of its event time: a window of rows before the watermark is complete."""
    add_batch(tmp_path, [("a", 0, 0), ("a", 1, 0), ("b", 2, 1)])
    add_batch(tmp_path, [("c", 100, 0)])
    once = stream(spark, tmp_path, content=[])
    twice = ids.deduplicate(once, "b`c", timestamp="at", within=f"{WITHIN} seconds", content=[], name="again")
    run_to_end(twice.groupBy(F.window("at", "10 seconds"), "delivery").count(), tmp_path)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row.delivery, row["count"]) for row in rows) == [("duplicate", 1), ("new", 2)]


@pytest.mark.parametrize("within", ["soon", "-1 day", "", "1 month"])
def test_a_bound_that_is_not_an_interval_is_refused(spark, rocksdb, tmp_path, within):
    """`within` is checked before the query starts."""
    df = spark.readStream.schema("id string, at timestamp").json(str(tmp_path))
    with pytest.raises(ValueError, match="within must be a timedelta or text such as '1 day', of 0 or more, got"):
        ids.deduplicate(df, timestamp="at", within=within)
