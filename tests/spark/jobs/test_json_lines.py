"""JSON lines: keys in any case are one column, and each line is in a row or is kept whole."""

import json

import pytest
from click.testing import CliRunner
from helpers.sinks import put

from spark_ext import read_table
from spark_ext.cli import spark_ext as command
from spark_ext.jobs import ids_job
from spark_ext.jobs._files import read_rows
from spark_ext.jobs._formats import InputWarning

pytestmark = pytest.mark.spark

V1 = "0156F7E71C361B21BC024CCDBE{:08X}"


def write_lines(folder, name, *lines):
    """Write a file of JSON lines; a line may be text or a value. Return the text of the lines."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    put(folder, name, "\n".join(texts) + "\n")
    return texts


@pytest.mark.details
def test_ids_job_on_lines_with_a_key_twice_keeps_them_whole(spark, tmp_path):
    """Such a line is in quarantine with its reason, also if its keys are in another case; the other lines are read."""
    good = [{"id": V1.format(0), "n": 1, "s": {"x": 1}}, {"id": V1.format(1), "n": 2}]
    twice = [
        f'{{"id": "{V1.format(2)}", "id": "{V1.format(3)}"}}',
        f'{{"n": 1, "N": 2, "N": 3, "id": "{V1.format(4)}"}}',
    ]
    write_lines(tmp_path / "in", "1.json", good[0], *twice, good[1])
    out = str(tmp_path / "out")
    summary = ids_job.run(spark, str(tmp_path / "in"), out)
    assert (summary.rows, summary.malformed) == (4, 2)
    ids, quarantine = (read_table(spark, f"{out}/{name}") for name in ("ids", "quarantine"))
    assert {(row.id, row.n) for row in ids.collect()} == {(V1.format(0), 1), (V1.format(1), 2)}
    bad = quarantine.collect()
    assert {row._corrupt_record for row in bad} == set(twice)
    assert {row.reason for row in bad} == {"the line has a key twice, compared without regard to case"}


@pytest.mark.details
def test_read_rows_of_a_nested_key_twice_keeps_the_text(spark, tmp_path):
    """A table cannot store both values, so the column has the JSON of each object; folders give columns too."""
    (tmp_path / "in").mkdir()
    lines = ({"id": "a", "s": {"x": 1}}, '{"id": "b", "s": {"x": 1, "x": 2}}', '{"id": "c", "id": "d"}')
    write_lines(tmp_path / "in" / "k=7", "1.json", *lines)
    df = read_rows(spark, str(tmp_path / "in"))
    assert set(df.columns) == {"id", "s", "k", "_corrupt_record"}
    found = {(row.id, row.s, row.k, row._corrupt_record) for row in df.collect()}
    whole = {("a", '{"x":1}', 7, None), ("b", '{"x":1,"x":2}', 7, None)}
    assert found >= whole
    assert {line for *_, line in found - whole} == {lines[2]}


@pytest.mark.details
def test_ids_command_on_keys_in_another_case_says_so(spark, tmp_path):
    """The command names the spellings; the column has the spelling of the option."""
    write_lines(tmp_path, "in.json", {"Key": V1.format(0)}, {"key": V1.format(1)})
    done = CliRunner().invoke(
        command, ["ids", str(tmp_path / "in.json"), "-o", str(tmp_path / "out"), "--column", "Key"]
    )
    assert done.exit_code == 0, done.output
    assert "Warning: the keys Key, key differ in case only, so they are read as one column, 'Key'\n" in done.output
    assert {row.Key for row in read_table(spark, f"{tmp_path}/out/ids").collect()} == {V1.format(0), V1.format(1)}


@pytest.mark.details
def test_read_rows_of_spellings_with_other_types_keeps_their_text(spark, tmp_path):
    """A column of two types, or with fields that differ in case only, holds the JSON of each value."""
    lines = [{"a": 1.50, "b": {"k": 1}}, {"A": {"x": [1]}, "b": {"K": 2}}, {"A": "t", "b": None}]
    write_lines(tmp_path, "in.json", *lines)
    with pytest.warns(InputWarning):
        df = read_rows(spark, str(tmp_path / "in.json"))
    assert df.schema.simpleString() == "struct<a:string,b:string,_corrupt_record:string>"
    found = {tuple(row) for row in df.collect()}
    assert found == {("1.5", '{"k":1}', None), ('{"x":[1]}', '{"K":2}', None), ("t", None, None)}


TYPES = (
    "a.b` string, n bigint, f double, t boolean, d decimal(20,0), s struct<x: bigint>, l array<bigint>, "
    "p array<struct<key: string, value: string>>"
)
VALUES = {
    "a.b`": "x",
    "n": -5,
    "f": 0.1,
    "t": True,
    "d": 12345678901234567890,
    "s": {"x": 1},
    "l": [1, None],
    "p": [{"key": "k", "value": None}],
}


BIG = 12345678901234567


@pytest.mark.details
def test_read_rows_of_numbers_that_a_double_cannot_hold_loses_no_digit(spark, tmp_path):
    """A column of such integers and fractions has their text, and a number out of range keeps its line."""
    lines = [
        {"id": "a", "n": BIG, "f": 0.5, "s": {"n": BIG, "f": 1.5}, "t": {"f": BIG}, "l": [1.5], "e": 10**22},
        {"id": "b", "n": 1.5, "f": 2**53, "s": {"n": 1, "f": 2.5}, "t": {"f": 1.5}, "l": [BIG], "e": 1.5},
        [{"id": "g", "m": 1.5, "M2": BIG}, {"id": "h", "m": BIG, "m2": 1.5}],
    ]
    far = ['{"id": "c", "f": 1e400}', '{"id": "d", "f": -2.5E-400}', '{"id": "e", "x": [1' + "0" * 400 + "]}"]
    write_lines(tmp_path, "in.json", *lines, *far, '{"id": "f", "f": -1e300, "e": 0e400}')
    with pytest.warns(InputWarning, match="the keys M2, m2 differ in case only"):
        df = read_rows(spark, str(tmp_path / "in.json"))
    types = {field.name: field.dataType.simpleString() for field in df.schema}
    assert (types["n"], types["f"], types["t"], types["l"], types["e"], types["m"], types["m2"]) == (
        "string", "double", "string", "string", "double", "string", "string",
    )  # fmt: skip
    assert types["s"] == "struct<f:double,n:bigint>"
    rows = {row.id: row for row in df.collect() if row._corrupt_record is None}
    assert [(rows[id].n, rows[id].f, rows[id].s.n, rows[id].t, rows[id].l, rows[id].e) for id in "ab"] == [
        (str(BIG), 0.5, BIG, f'{{"f":{BIG}}}', "[1.5]", 1e22),
        ("1.5", 2.0**53, 1, '{"f":1.5}', f"[{BIG}]", 1.5),
    ]
    assert (set(rows), rows["f"].f) == (set("abfgh"), -1e300)
    assert [(rows[id].m, rows[id].m2) for id in "gh"] == [("1.5", str(BIG)), (str(BIG), "1.5")]
    assert {row._corrupt_record for row in df.collect() if row._corrupt_record is not None} == set(far)


@pytest.mark.details
def test_read_rows_of_a_line_that_is_nested_900_deep_keeps_the_line(spark, tmp_path):
    """Spark cannot have a column of such a type; the other lines are read."""
    texts = {
        (place, depth): f'{{"id": "{place} {depth}", "x{place}": {opening * depth}1{closing * depth}}}'
        for depth in (20, 900, 30000)
        for place, (opening, closing) in enumerate([('{"a":', "}"), ("[", "]"), ('[0, {"\\"]": [], "a": ', "}]")])
    }
    wide = {"id": "wide", "y": [[[n]] for n in range(500)]}
    write_lines(tmp_path, "in.json", wide, *texts.values(), {"id": "z"})
    rows = read_rows(spark, str(tmp_path / "in.json")).collect()
    assert [row.id for row in rows if row._corrupt_record is None] == ["wide", "0 20", "1 20", "2 20", "z"]
    kept = [row._corrupt_record for row in rows if row._corrupt_record is not None]
    assert kept == [text for (_, depth), text in texts.items() if depth > 20]


@pytest.mark.details
def test_read_rows_of_folders_with_values_keeps_the_columns_of_folders(spark, tmp_path):
    """A folder ``name=value`` is a column, also if a key or a step of the reader has its name."""
    for name in ("unit=1", "unit=2"):
        (tmp_path / "in" / name).mkdir(parents=True)
        lines = [{"id": name, "Unit": 7}, {"ID": name}]
        (tmp_path / "in" / name / "a.json").write_text("\n".join(map(json.dumps, lines)))
    with pytest.warns(InputWarning):
        rows = read_rows(spark, str(tmp_path / "in")).collect()
    assert sorted((row.id, row.unit) for row in rows) == [("unit=1", 1)] * 2 + [("unit=2", 2)] * 2
