"""`spark_ext.compare`: the report of Python, made by aggregations."""

import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import msgid
import msgid.audit
import spark_ext
from msgid import layout
from spark_ext.cli import spark_ext as command

pytestmark = pytest.mark.spark

PLACES = {"source": "source", "offset": "offset"}


def sides(seed, rows=600):
    """A queue and its landed table with losses, changes, repeats, extra messages and rows without a position."""
    chance = random.Random(seed)
    sent = [
        (f"log {n % 3}", n // 3, layout.pack(7, 1, 100 + n, n).hex().upper() if n % 7 else f"order-{n}", f"body {n}")
        for n in range(rows)
    ]
    landed = [list(row) for row in sent if chance.random() > 0.05]
    for row in chance.sample(landed, 20):
        row[chance.choice((2, 3))] = f"other {chance.random()}"
    landed += chance.sample(landed, 10)
    sent += [("log 1", None, None, None), (None, 2, layout.pack(7, 1, 9, 900).hex(), "")]
    landed += [["log 9", 5, "extra", "x"], [None, 1, None, None], ["log 1", None, "", ""]]
    landed = [[log, offset, id.lower() if id and id.startswith("01") else id, body] for log, offset, id, body in landed]
    columns = ("source", "offset", "id", "body")
    types = (pa.string(), pa.int64(), pa.string(), pa.string())
    return [
        pa.table([pa.array(values, kind) for values, kind in zip(zip(*side, strict=True), types, strict=True)], columns)
        for side in (sent, landed)
    ]


def test_lists_of_a_comparison_are_dataframes(spark, tmp_path):
    """The differences by ID, at most as many as asked for, and the checks that were left out."""
    tables = [table.select(["id", "body"]) for table in sides(1)]
    frames = [read(spark, table, tmp_path / f"{n}.parquet") for n, table in enumerate(tables)]
    report = spark_ext.compare(*frames, max_messages=7)
    local = msgid.audit.compare(*tables, max_messages=7)
    assert len(local.differences) == 7
    assert [tuple(row) for row in report.differences.collect()] == local.differences
    assert report.not_checked.collect() == [("changed_messages", "without content on both sides")]


def drawn(chance, names, rows=1_500):
    """Rows of few messages: several contents per message, and IDs as text, as its ASCII bytes and as raw bytes."""
    ids = [layout.pack(7, 1, 100, chance.randrange(300)) for _ in range(rows)]
    forms = [chance.choice((id, id.hex().encode(), id.hex().upper().encode(), b"order-%d" % id[-1])) for id in ids]
    scale = chance.choice((1, 2))
    columns = [
        [chance.choice("abcx") for _ in range(rows)],
        [Decimal(chance.randrange(2)).scaleb(-scale) for _ in range(rows)],
        pa.array([chance.randrange(2) for _ in range(rows)], chance.choice((pa.int32(), pa.int64()))),
    ]
    places = {"source": [chance.choice("pq") for _ in range(rows)], "offset": [id[-1] for id in ids]}
    return pa.table({"id": pa.array(forms, pa.binary()), **places, **dict(zip(names, columns, strict=True))})


@pytest.mark.details
def test_sides_with_few_common_messages_are_told(spark):
    """The rows of a message that one side has alone are summed in the JVM; the threshold is that of Python."""
    frames = [spark.createDataFrame([(id,) for id in side], "id string") for side in ("aa", "bb")]
    report = spark_ext.compare(*frames)
    assert "At least 9 of 10 compared messages" in str(report)
    assert report.to_json() == msgid.audit.compare(["a"] * 2, ["b"] * 2).to_json()


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.volume) for seed in range(100, 110))])
def test_random_sides_have_the_report_of_python(spark, tmp_path, seed):
    """By ID and by position: contents pair by their places, and many contents of one message are compared as a set."""
    chance = random.Random(seed)
    tables = [drawn(chance, names) for names in ("abc", "zyx")]
    frames = [read(spark, table, tmp_path / f"{n}.parquet") for n, table in enumerate(tables)]
    for places in ({}, PLACES):
        columns = {**places, "content": [*"zyx"], "sent_columns": {**places, "content": [*"abc"]}}
        columns |= {} if places else {"offset": "", "source": []}
        local, report = msgid.audit.compare(*tables, **columns), spark_ext.compare(*frames, **columns)
        assert {"changed_messages", "lost_messages"} <= {finding.check for finding in local.findings}
        assert report.to_json() == local.to_json()


@pytest.mark.details
@pytest.mark.parametrize(("by_id", "repeated"), [(False, "duplicate_messages"), (True, "duplicate_ids")])
def test_rows_of_a_check_are_dataframes(spark, tmp_path, by_id, repeated):
    """They have the columns of their tables; rows of a changed message stand side by side."""
    tables = sides(2)
    frames = [read(spark, table, tmp_path / f"{n}.parquet") for n, table in enumerate(tables)]
    columns = {**({"offset": "", "source": []} if by_id else PLACES), "content": "body"}
    local, report = msgid.audit.compare(*tables, **columns), spark_ext.compare(*frames, **columns)
    for check in ("lost_messages", "changed_messages", repeated, "extra_messages"):
        expected, rows = local.rows_of(check).to_pylist(), report.rows_of(check).collect()
        assert [row.asDict() for row in rows] == expected
        assert check == repeated or expected
    with pytest.raises(ValueError, match="late_messages"):
        report.rows_of("late_messages")


@pytest.mark.details
def test_equal_sides_have_lists_without_rows(spark):
    """Spark Connect refuses to make a DataFrame of a table without rows."""
    sides = [spark.createDataFrame([("a",), ("b",)], "id string") for _ in range(2)]
    report = spark_ext.compare(*sides)
    assert [report.findings.collect(), report.rows_of("lost_messages").collect()] == [[], []]


def test_contents_of_other_kinds_are_refused_as_in_python(spark):
    """Their values are never equal on Spark."""
    sides = [spark.createDataFrame([(1, value)], ["offset", "content"]) for value in (1, 1.0)]
    with pytest.raises(
        ValueError, match="content must have one type on both sides, got 'content' of integer and of double"
    ):
        spark_ext.compare(*sides)


@pytest.mark.details
def test_sides_have_columns_of_their_own(spark):
    """The rows of Spark's Kafka source are compared with a table of other names."""
    sent = spark.createDataFrame([("orders", 0, n) for n in range(4)], "topic string, partition int, offset bigint")
    rows = [("kafka:kafka/orders/0", n) for n in (0, 1, 3, 3)]
    landed = spark.createDataFrame(rows, "log string, place bigint")
    report = spark_ext.compare(sent, landed, source="log", offset="place")
    assert [(one.fault, one.offset) for one in report.local.differences] == [("lost", 2), ("duplicate", 3)]
    with pytest.raises(ValueError, match="cannot compare sent"):
        spark_ext.compare(sent, landed, source="log", offset="place", sent_columns={"offset": "x"})
    renamed = sent.toDF("t", "p", "n")
    assert spark_ext.compare(renamed, sent, sent_columns={"source": ["t", "p"], "offset": "n"}).local.findings == []
    with pytest.raises(ValueError, match="both must name their logs, or neither"):
        spark_ext.compare(sent.select("offset"), sent)
    with pytest.raises(ValueError, match="sent must be a table"):
        spark_ext.compare(spark.readStream.format("rate").load(), landed, source="log", offset="place")


def test_command_compares_tables(spark, tmp_path):
    """`--sent` names a table in any format, and `--fail-on` ends with status 3."""
    ids = msgid.generate_batch(20).hex()
    (tmp_path / "acked.txt").write_text("\n".join(ids), encoding="utf-8")
    pq.write_table(pa.table({"id": [id.lower() for id in ids[1:]]}), tmp_path / "landed.parquet")
    call = ["audit", f"{tmp_path}/landed.parquet", "--sent", f"{tmp_path}/acked.txt", "--fail-on", "error"]
    result = CliRunner().invoke(command, call)
    assert result.exit_code == 3, result.output
    complete, not_checked, _, found = result.stdout.splitlines()[-4:]
    assert found.split() == ["error", "lost_messages", "table", "1", ids[0]]
    assert complete == f"complete: each message before {msgid.parse(ids[0]).time.isoformat()} has landed"
    assert not_checked.startswith("not checked: ")


def read(spark, table, path):
    pq.write_table(table, path, coerce_timestamps="us", row_group_size=20_000)
    return spark.read.parquet(str(path))


def many(rows=700):
    """Messages with all kinds of IDs, and contents of text, bytes and integers with NULL."""
    broker, uuid = "7F0000010000238F000000000001E240", "74B158CA-DDB3-498F-B0A9-9EEC1C6197AE"
    ids = [layout.pack(7, 1, 100 + n, n).hex() for n in range(rows)]
    times = [None if n == 11 else (n - 300) * 10**9 + n for n in range(rows)]
    ids[:8] = [None, "", "x", "größe", broker.lower(), uuid, "0156F7", "00" + broker]
    return pa.table({
        "topic": [f"a/{n % 2}" for n in range(rows)], "partition": pa.array([n % 3 for n in range(rows)], pa.int32()),
        "offset": pa.array([None if n == 9 else n * 500 for n in range(rows)], pa.int64()), "id": ids,
        "at": pa.array(times, pa.timestamp("us", "UTC")),
        "text": [None if n % 5 == 0 else "é" * (n % 70) for n in range(rows)],
        "body": [None if n % 7 == 0 else bytes([n % 256]) * (n % 90) for n in range(rows)],
        "number": pa.array([None if n % 11 == 0 else n - 5 for n in range(rows)], pa.int64()),
    })  # fmt: skip


DIGESTED = [
    {"source": ["topic", "partition"], "offset": "offset", "timestamp": "at", "content": ["text", "body", "number"]},
    {"source": "topic", "offset": "offset", "id": None, "incarnation": "partition"},
    {"offset": "offset", "content": "body"},
]


@pytest.mark.parametrize("ansi", ["false", pytest.param("true", marks=pytest.mark.variants)])
def test_digest_has_the_bytes_of_python(spark, other_settings, tmp_path, ansi):
    """IDs as text and as bytes, NULL everywhere, sums that wrap."""
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    table = many()
    df = read(spark, table, tmp_path / "t.parquet")
    for columns in DIGESTED:
        made = spark_ext.digest(df, **columns).toArrow()
        assert msgid.audit.merge_digests([made]) == msgid.audit.digest(table, **columns), columns
    ids = [layout.pack(7, 1, n, n) for n in range(50)] + [b"abc", None, b""]
    raw = pa.table({"id": ids, "offset": range(len(ids))})
    made = spark_ext.digest(read(spark, raw, tmp_path / "raw.parquet")).toArrow()
    assert msgid.audit.merge_digests([made]) == msgid.audit.digest(raw)


@pytest.mark.details
def test_comparison_of_digests_reads_the_blocks_that_differ(spark, tmp_path):
    """One lost, one changed and one extra message in a log of 300,000 offsets; digests of two days are a union."""
    rows, step = 3_000, 100
    sent = pa.table({
        "topic": ["a/b"] * rows, "partition": pa.array([1] * rows, pa.int32()), "offset": range(0, rows * step, step),
        "value": pa.array(range(rows)).cast(pa.string()).cast(pa.binary()),
    })  # fmt: skip
    other = sent[5:6].set_column(3, "value", pa.array([b"other"])).set_column(2, "offset", pa.array([70_000]))
    extra = sent[:1].set_column(2, "offset", pa.array([400_000]))
    landed = pa.concat_tables([sent[:1], sent[2:700], other, sent[701:], extra])
    frames = [read(spark, side, tmp_path / f"{n}.parquet") for n, side in enumerate((sent, landed))]
    days = [frames[0].where("offset < 100000"), frames[0].where("offset >= 100000")]
    digests = [spark_ext.digest(days[0]).union(spark_ext.digest(days[1])), spark_ext.digest(frames[1])]
    report = spark_ext.compare(*frames, digests=digests).local
    assert [(one.fault, one.scope, one.offset) for one in report.differences] == [
        ("lost", "kafka:kafka/a/b/1", 100), ("changed", "kafka:kafka/a/b/1", 70_000),
        ("extra", "kafka:kafka/a/b/1", 400_000),
    ]  # fmt: skip
    blocks = [range(rows)[:656], range(rows)[656:1_311]]
    read_rows = sum(map(len, blocks))
    assert (report.sent, report.rows, report.rows_read) == (rows, rows, (read_rows, read_rows))
    assert spark_ext.compare(*frames, digests=[digests[0], digests[0]]).local.rows_read == (0, 0)


@pytest.mark.details
def test_messages_of_the_blocks_that_differ_are_those_of_whole_sides(spark, tmp_path):
    """Rows of other blocks are not compared, and IDs, contents and rows without a place are as in Python."""
    tables = sides(3, 900)
    frames = [read(spark, table, tmp_path / f"{n}.parquet") for n, table in enumerate(tables)]
    digests = [spark_ext.digest(frame, **PLACES, content="body") for frame in frames]
    report = spark_ext.compare(*frames, **PLACES, content="body", digests=digests).local
    assert report.differences == msgid.audit.compare(*tables, **PLACES, content="body").differences
