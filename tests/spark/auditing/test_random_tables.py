"""Random tables have one report in Python and on Spark: audits and comparisons.

A query has many tables: their logs and nodes differ, so each has its own findings. One seed draws the types of the
columns and all values.
"""

import json
import random
import secrets
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import msgid
import msgid.audit
import spark_ext
from msgid import layout

pytestmark = pytest.mark.spark

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
UTC = pa.timestamp("us", "UTC")
EDGES = (0, 28, 60, 65_530, 65_566, 131_068, 2**32 - 3, 2**47, 2**48 - 8)
"""Starts of offsets: words of 32, blocks of 65,536 and the last offset."""
SEQUENCES = (0, 0, 200, 65_530, 2**22 - 4, 2**31, 2**32 - 9)
UUID = "74B158CA-DDB3-498F-B0A9-9EEC1C6197AE"
OTHERS = [None, "", "x", "é" * 17, "G" * 34, "02" * 17, UUID, UUID.lower(), "7F0000010000238F000000000001E240",
          "007f0000010000238f000000000001e240", "7F0000010000238F" + "00000100" + "00000000", "y" * 300]  # fmt: skip


def instants(chance, rows):
    return [None if chance.random() < 0.1 else AT + timedelta(seconds=chance.randrange(90)) for _ in range(rows)]


def as_type(kind, moments):
    """Moments in a column of a type."""
    if kind == "iso":
        return pa.array([one if one is None else one.isoformat() for one in moments])
    if kind == "millis":
        return pa.array([one if one is None else int(one.timestamp() * 1000) for one in moments], pa.int64())
    if kind == "naive":
        return pa.array([one if one is None else one.replace(tzinfo=None) for one in moments], pa.timestamp("us"))
    return pa.array([one if one is None else one.date() if kind == "date" else one for one in moments],
                    pa.date32() if kind == "date" else UTC)  # fmt: skip


CONTENTS = {
    "text": (["a", "b", "", None], pa.string()),
    "bytes": ([b"a", b"\x00", b"", None], pa.binary()),
    "double": ([0.0, -0.0, float("nan"), 1.5, None], pa.float64()),
    "decimal": ([Decimal("1.50"), Decimal("0.00"), None], pa.decimal128(9, 2)),
    "day": ([date(2026, 1, 1), date(1, 1, 1), None], pa.date32()),
    "flag": ([True, False, None], pa.bool_()),
    "list": ([[1, None], [], None], pa.list_(pa.int64())),
    "struct": ([{"a": 1, "b": None}, {"a": None, "b": "x"}, None], pa.struct({"a": pa.int64(), "b": pa.string()})),
    "map": ([[("a", 1), ("b", 2)], [("b", 2), ("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
}
SOURCES = {
    "text": pa.string(), "bytes": pa.binary(), "bigint": pa.int64(), "int": pa.int32(),
}  # fmt: skip
OFFSETS = {"bigint": pa.int64(), "text": pa.string(), "decimal": pa.decimal128(20, 0)}


def ids_of(chance, number, rows):
    """IDs of some generators of one table: they count on, skip, restart, repeat and go back; and other values."""
    nodes = [number * 4 + 5, layout.synthetic_node("random", number), (0x07 << 40) + number, 0xACDE48000000 + number]
    made = []
    for _ in range(rows):
        if not made or chance.random() < 0.1:
            node, pid = chance.choice(nodes), chance.choice((0, 1, 1, 65_535))
            second, sequence = 100 + chance.randrange(60), chance.choice(SEQUENCES)
        elif chance.random() < 0.15:
            made.append(chance.choice(made))
            continue
        second += chance.choice((0, 0, 0, 1, 1, 5, -3, 90_000))
        sequence = min(sequence + chance.choice((1, 1, 1, 1, 2, 2, 9, 5_000)), 2**32 - 1)
        made.append(layout.pack(node, pid, max(second, 0), sequence).hex())
    made = [chance.choice((one, one.upper())) for one in made]
    for place in range(1, rows, 5):
        derived = str(msgid.derive_id(made[0], f"{number} {place % 3}"))
        position = str(msgid.position_id(f"log {number}", chance.choice(EDGES) + place % 4, AT))
        made[place] = chance.choice((derived, position, *OTHERS))
    return made


def tables_of(chance, kinds, numbers, rows=36):
    """The rows of several tables, with columns of some types."""
    columns = {
        name: [] for name in ("id", "source", "offset", "timestamp", "landed", "content", "parent", "incarnation")
    }
    values, _ = CONTENTS[kinds["content"]]
    for number in numbers:
        ids = ids_of(chance, number, rows)
        start = chance.choice(EDGES)
        offsets = [start + chance.randrange(rows) for _ in range(rows)] if chance.random() < 0.5 else [
            start + place + place // 9 for place in range(rows)]  # fmt: skip
        offsets = [None if chance.random() < 0.03 else -1 if chance.random() < 0.03 else one for one in offsets]
        columns["id"] += ids
        columns["source"] += [None if chance.random() < 0.03 else 2 * number + chance.randrange(2) for _ in range(rows)]
        columns["offset"] += offsets
        columns["timestamp"] += instants(chance, rows)
        columns["landed"] += instants(chance, rows)
        columns["content"] += [chance.choice(values) for _ in range(rows)]
        columns["parent"] += [chance.choice((None, None, ids[0], "none")) for _ in range(rows)]
        columns["incarnation"] += [chance.choice((None, "1", "1", "2")) for _ in range(rows)]
    ids = columns["id"]
    if kinds["id"] == "bytes":
        ids = [bytes.fromhex(one) if one and len(one) == 34 and one.startswith("01") else one and one.encode("utf-8")
               for one in ids]  # fmt: skip
    source = columns["source"]
    if kinds["source"] in ("text", "bytes"):
        source = [one if one is None else f"log {one}" for one in source]
        source = [one and one.encode() for one in source] if kinds["source"] == "bytes" else source
    offset = columns["offset"]
    offset = [n if n is None else {"text": str, "decimal": Decimal}.get(kinds["offset"], int)(n) for n in offset]
    return pa.table({
        "id": pa.array(ids, pa.binary() if kinds["id"] == "bytes" else pa.string()),
        "source": pa.array(source, SOURCES[kinds["source"]]), "offset": pa.array(offset, OFFSETS[kinds["offset"]]),
        "timestamp": as_type(kinds["timestamp"], columns["timestamp"]),
        "landed": as_type(kinds["landed"], columns["landed"]),
        "content": pa.array(columns["content"], CONTENTS[kinds["content"]][1]),
        "parent": columns["parent"], "incarnation": columns["incarnation"],
    })  # fmt: skip


def options_of(chance):
    """The columns and rules of an audit: some are turned off."""
    options = {name: name for name in ("parent", "incarnation") if chance.random() < 0.5}
    for name in ("timestamp", "landed", "content"):
        if chance.random() < 0.4:
            options[name] = [] if name == "content" else ""
    if chance.random() < 0.3:
        options |= {"offset": "", "source": []}
        options.pop("incarnation", None)
    options["holes"] = chance.choice((None, None, "markers", "committed", "compacted"))
    if options["holes"] in ("markers", "committed"):
        options["producers"] = chance.choice((1, 2, 5))
    options["without"] = chance.choice(([], ["late_messages"]))
    options["clock_jump"] = chance.choice(("1 second", "1 day"))
    options["max_gaps"] = chance.choice((3, 10_000))
    if chance.random() < 0.5:
        options["not_before"] = datetime(2021, 1, 1, 0, 2, 10, tzinfo=timezone.utc)
    return options


def check(spark, seed, number, path):
    """Draw tables, and compare the reports of Spark and of Python."""
    chance = random.Random(seed)
    moments = ("zoned", "naive", "date", "iso", "millis")
    choices = {"id": ("text", "bytes"), "source": [*SOURCES], "offset": [*OFFSETS], "content": [*CONTENTS]}
    choices |= {"timestamp": moments, "landed": moments}
    kinds = {name: chance.choice(several) for name, several in choices.items()}
    table = tables_of(chance, kinds, range(number))
    pq.write_table(table, path / "table.parquet", coerce_timestamps="us")
    df = spark.read.parquet(str(path / "table.parquet"))
    options = options_of(chance)
    note = f"seed {seed}: {kinds}, {options}"
    reports = spark_ext.audit(df, **options), msgid.audit.audit_table(table, **options)
    found = [json.loads(report.to_json()) for report in reports]
    assert found[0] == found[1], note
    for name in chance.sample(sorted({finding["check"] for finding in found[0]["findings"]}), 2):
        assert places(reports[0].rows_of(name).toArrow()) == places(reports[1].rows_of(name)), f"{name}, {note}"
    kept = [chance.random() < 0.9 for _ in range(table.num_rows)]
    more = table.take([chance.randrange(table.num_rows) for _ in range(20)])
    other = tables_of(chance, kinds, range(number, number + 3))
    landed = pa.concat_tables([table.filter(pa.array(kept)), more, other])
    pq.write_table(landed, path / "landed.parquet", coerce_timestamps="us")
    columns = {
        name: options[name] for name in ("offset", "source", "timestamp", "content", "incarnation") if name in options
    }
    found = [json.loads(report.to_json()) for report in
             (spark_ext.compare(df, spark.read.parquet(str(path / "landed.parquet")), **columns),
              msgid.audit.compare(table, landed, **columns))]  # fmt: skip
    assert found[0] == found[1], note


def places(rows):
    """The columns of the rows of a check, and all values whose type is the same in both engines."""
    same = [name for name in rows.column_names if name not in ("content", "timestamp", "landed")]
    return rows.column_names, sorted(map(repr, rows.select(same).to_pylist()))


@pytest.mark.parametrize("rounds", [1, pytest.param(50, marks=pytest.mark.volume)])
def test_random_tables_have_the_report_of_python(spark, tmp_path, rounds):
    """One JSON for 100 tables a round, whatever the types, the values and the rules are."""
    for _ in range(rounds):
        check(spark, secrets.randbits(32), 100, tmp_path)
