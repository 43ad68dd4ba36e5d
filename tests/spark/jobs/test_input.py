"""The input of the jobs: each record of a file is one row, with its values or with its text and a reason."""

import gzip
import warnings

import pytest
from click.testing import CliRunner

from spark_ext.cli import spark_ext
from spark_ext.columns.reasons import CORRUPT, CORRUPT_REASON
from spark_ext.jobs import _input
from spark_ext.jobs._input import BadInput, InputWarning, format_of, read_json, read_rows

pytestmark = pytest.mark.spark

ID = "0156F7E71C361B21BC024CCDBE00000000"
QUOTE = "a cell is not closed, or has a quotation mark or a line break inside; multiLine=true reads cells of many lines"
CELLS = "the line has another number of cells than the header"
UTF_8 = "the line is not UTF-8"
PAIR = "the line has half of a surrogate pair, or the noncharacter U+FDD0"
MANY_LINES = {"multiLine": "true"}
CSV_LINES = [
    (b"1,x", ("1", "x"), None),
    (b'2,"a""b"', ("2", 'a"b'), None),
    (b'3,"a,b"', ("3", "a,b"), None),
    (b'4,5" pipe', ("4", '5" pipe'), None),
    (b'"5","""q"""', ("5", '"q"'), None),
    (b'6,""', ("6", None), None),
    (b"7,", ("7", None), None),
    ("8,\u00e9\U0001f600".encode(), ("8", "\u00e9\U0001f600"), None),
    (b"9,\x01\x00", ("9", "\x01\x00"), None),
    (b"10,7.0", ("10", "7.0"), None),
    (b'11,"open', None, QUOTE),
    (b'12,"a"b"', None, QUOTE),
    (b'13,"say \\"hi\\" to"', None, QUOTE),
    (b"14,a\rb", None, QUOTE),
    (b'14,"a\rb"', None, QUOTE),
    (b"14,\r15,a", None, QUOTE),
    (b"14", None, CELLS),
    (b"15,a,b", None, CELLS),
    (b"16,\xff", None, UTF_8),
    (b"17,a\xed\xa0\x80", None, UTF_8),
]
JSON_LINES = [
    (b'{"id": "1", "n": 12345678901234567890123}', ("1", "12345678901234567890123"), None),
    (b'{"n": 1.10, "id": "2"}', ("2", "1.10"), None),
    (b'{"id": -0.0, "n":1E400}', ("-0.0", "1E400"), None),
    (b'{"id": 0.' + b"1234567890" * 4 + b', "n" : 1e-3 }', ("0." + "1234567890" * 4, "1e-3"), None),
    (b'{"id": "3", "n": {"a": [1, null, 2.50], "b":1.0}}', ("3", '{"a":[1,null,2.50],"b":1.0}'), None),
    (rb'{"n": ["1.10, 2.0", {"1": "\\"}, ":1.50,", -1.50]}', (None, r'["1.10, 2.0",{"1":"\\"},":1.50,",-1.50]'), None),
    (rb'{"id": ",1.10,", "n": "\":"}', (",1.10,", '":'), None),
    (rb'{"id": "\ud83d\uDE00", "n": "C:\\ud800"}', ("\U0001f600", r"C:\ud800"), None),
    (b'{"id": null}', (None, None), None),
    (b"{}", (None, None), None),
    (b'{"id": "4", "n": true}', ("4", "true"), None),
    ('{"id": "\u00e9 }, {", "n": "Infinity"}'.encode(), ("\u00e9 }, {", "Infinity"), None),
    (b'{"id": "5"', None, "the line is not a JSON object"),
    (b'[{"id": "6"}]', None, "the line is not a JSON object"),
    (b"7", None, "the line is not a JSON object"),
    (b"null", None, "the line is not a JSON object"),
    (b'{"id": "8", "n": ' + b"[" * 2000 + b"]" * 2000 + b"}", None, "the line is not a JSON object"),
    (b'{"id": "9"} {"id": "10"}', None, "the line has more text after its JSON object"),
    (b'{"id": "9"},"end":0}', None, "the line has more text after its JSON object"),
    (b'{"id": "9"},"end":{"":"0"}}', None, "the line has more text after its JSON object"),
    (b'{"id": "9"}]', None, "the line has more text after its JSON object"),
    (b'{"id": "9"}, "n": {"id": "10"}', None, "the line has more text after its JSON object"),
    (b'{"id": "11", "id": "12"}', None, "the line has a key twice"),
    (b'{"ID": "13"}', None, "the line has an empty key, or a key in another case"),
    (b'{"": "14"}', None, "the line has an empty key, or a key in another case"),
    (b'{"id": NaN}', None, "the line is not a JSON object"),
    (b'{"id": 01}', None, "the line is not a JSON object"),
    (b'{"id": 1, 2: 3}', None, "the line is not a JSON object"),
    (b'{"id": [1 2]}', None, "the line is not a JSON object"),
    (b'{"id": "\\ud800"}', None, PAIR),
    (b'{"id": "\\udc00\\ud83d\\ude00"}', None, PAIR),
    (b'{"n": {"\\uD83D": 1}}', None, PAIR),
    (b'{"id": "\\ufdD0"}', None, PAIR),
    ('{"id": "\ufdd0"}'.encode(), None, PAIR),
    (b'{"id": "16\xff"}', None, UTF_8),
]


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def check_lines(df, lines):
    """Check that each line is one row: its values, or its bytes and the reason."""
    rows = df.withColumn("bytes", df[CORRUPT].cast("binary")).collect()
    expected = [(*(cells or ()), None if why is None else line, why) for line, cells, why in lines]
    found = [
        (*((row.id, row.n) if row[CORRUPT_REASON] is None else ()), row.bytes and bytes(row.bytes), row[CORRUPT_REASON])
        for row in rows
    ]
    assert found == expected
    assert df.count() == len(lines)


@pytest.mark.parametrize("ending", ["tsv", "csv.gz"])
def test_each_line_of_csv_is_a_row_with_its_cells_or_its_text(spark, tmp_path, ending):
    """Quotation marks, other numbers of cells, bytes that are not UTF-8, empty lines and a byte order mark."""
    gap = b"\t" if ending == "tsv" else b","
    lines = [
        (line.replace(b",", gap), cells and tuple(cell and cell.replace(",", gap.decode()) for cell in cells), why)
        for line, cells, why in CSV_LINES
    ]
    content = b"\xef\xbb\xbfid" + gap + b"n\r\n" + b"\n \n".join(line for line, _, _ in lines)
    path = put(tmp_path / f"in.{ending}", gzip.compress(content) if ending.endswith("gz") else content)
    check_lines(read_rows(spark, path), lines)


OPTIONS = [
    ({"delimiter": ";", "nullValue": "NA"}, 'id;n\n1;"a;b"\n2;NA\n3;"open\n', [("1", "a;b"), ("2", None), None]),
    ({"SEP": "|"}, "id|n\n1|a,b\n2|a|b\n", [("1", "a,b"), None]),
    ({"sep": "^"}, 'id^n\n1^"a^b"\n2^"x"y"\n', [("1", "a^b"), None]),
    ({"escape": "\\"}, 'id,n\n1,"say \\"hi\\", he"\n2,"a\\\\"\n3,"a\\"\n', [("1", 'say "hi", he'), ("2", "a\\"), None]),
]


@pytest.mark.parametrize(("options", "content", "rows"), OPTIONS)
@pytest.mark.parametrize("lines", ["false", "true"])
def test_options_of_csv_mean_what_they_mean_to_spark(spark, tmp_path, options, content, rows, lines):
    """A malformed row is kept whole. Cells of many lines with an open one are refused."""
    path = put(tmp_path / "in.csv", content)
    options = {**options, "multiLine": lines}
    if lines == "true" and None in rows and '"' in content:
        with pytest.raises(BadInput, match=r"unexpected end of data|expected after"):
            read_rows(spark, path, None, options)
        return
    found = [None if row[CORRUPT] else (row.id, row.n) for row in read_rows(spark, path, None, options).collect()]
    assert found == rows


def test_text_that_spark_has_written_is_read_as_it_was(spark, tmp_path):
    """Spark's CSV has a backslash before a quotation mark, and before a backslash at the end of a cell."""
    rows = [("1", 'say "hi", he'), ("2", "back\\slash"), ("3", "end\\"), ("4", '\\"'), ("5", '"')]
    df = spark.createDataFrame(rows, "id string, n string")
    df.coalesce(1).write.option("header", True).csv(str(tmp_path / "in"))
    read = read_rows(spark, str(tmp_path / "in"), "csv", {"escape": "\\"})
    assert [tuple(row) for row in read.orderBy("id").collect()] == [(*row, None, None) for row in rows]


def test_each_line_of_json_is_a_row_with_its_values_or_its_text(spark, tmp_path):
    """Values stay text: no type is guessed. Lines that Spark reads only in part are kept whole."""
    path = put(tmp_path / "in.json", b"\xef\xbb\xbf" + b"\n \n".join(line for line, _, _ in JSON_LINES))
    check_lines(read_rows(spark, path), JSON_LINES)


def test_pairs_in_json_are_lists_and_columns_have_any_case(spark, tmp_path):
    """A column that no line has is NULL; a list of other values is malformed, so no header is lost."""
    lines = [
        '{"Key":"a","headers":[{"key":"h","value":1.10},{"key":"i"}]}',
        '{"Key":"b","headers":[{"Key":"h"}]}',
        '{"Key":"c","headers":"x"}',
    ]
    path = put(tmp_path / "in.json", "\n".join(lines))
    rows = read_json(spark, path, ("key", "headers", "topic"), ("headers",)).collect()
    assert [tuple(map(tuple, rows[0].headers)), rows[0].Key, rows[0].topic] == [(("h", "1.10"), ("i", None)), "a", None]
    assert [row[CORRUPT] for row in rows] == [None, *lines[1:]]
    assert {row[CORRUPT_REASON] for row in rows[1:]} == {"the line has a list that is not of pairs with a key"}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_multi_line_csv_reads_cells_with_line_breaks(spark, tmp_path, end):
    """Rows with another number of cells are still malformed; the marker of the file's start is left out."""
    rows = ["\ufeffid,n", '1,"a', 'b"', '2,"x""y"', "3", '4,5"']
    path = put(tmp_path / "in.csv", end.join(rows) + end)
    found = [tuple(row) for row in read_rows(spark, path, options=MANY_LINES).collect()]
    assert found == [
        ("1", "a\nb", None, None),
        ("2", 'x"y', None, None),
        ("3", None, "3", CELLS),
        ("4", '5"', None, None),
    ]


REFUSED = {
    "open cell": ("in.csv", b'id,n\n1,"a\n2,b\n', "unexpected end of data", MANY_LINES),
    "two open cells": ("in.csv", b'id,n\n1,"a\n2,"b\n3,c\n', "expected after", MANY_LINES),
    "ends": ("in.csv", b"id,n\n1,a\r\n2,b\n", "its rows must end alike", MANY_LINES),
    "bytes": ("in.csv", b"id,n\n1,\xff\n", "can't decode byte 0xff", MANY_LINES),
    "option of text": ("in.txt", b"a\n", "--option is for CSV and TSV", MANY_LINES),
    "unknown option": ("in.csv", b"id,n\n", "--option must name one of sep, escape, nullValue", {"header": "false"}),
    "long separator": ("in.csv", b"id,n\n", "--option sep must be one character", {"delimiter": "||"}),
    "letter": ("in.csv", b"id,n\n", "--option escape must be one character", {"escape": "e"}),
    "no header": ("in.csv", b"", "a file with a header is missing", {}),
    "utf-16": ("in.csv", "id,n\n1,a\n".encode("utf-16"), "is not UTF-8; convert the file", {}),
    "open header": ("in.csv", b'"id,n\n1,a\n', "cannot read the header of", {}),
    "two names": ("in.csv", b"id,ID\n1,a\n", "the columns 'id' and 'ID', and Spark", {}),
    "equal names": ("in.csv", b"id,a,a\n1,a,b\n", "the columns 'a' and 'a', and Spark", {}),
    "name of a folder": ("id=7/in.csv", b"id,n\n1,a\n", "the columns 'id' and 'id'", {}),
    "carriage returns": ("in.csv", b"id,n\r1,a\r", "cannot read the header of", {}),
    "own name": ("in.csv", b"id,_Corrupt_Record\n1,a\n", "has a column '_Corrupt_Record' already; rename it", {}),
    "no object": ("in.json", b"[1]\n", "a line with a JSON object is missing", {}),
    "keys": ("in.json", b'{"id": 1}\n{"a": 1, "b": 2, "c": 3}\n', "more than 3 different keys", {}),
    "own key": ("in.json", b'{"_corrupt_record": 1}\n', "has a column '_corrupt_record' already", {}),
    "hidden": ("_in.csv", b"id,n\n1,a\n", "Spark skips names that begin with", {}),
    "half copied": ("in.csv._COPYING_", b"id,n\n1,a\n", "Spark skips names that begin with", {}),
    "no file": ("in.parquet/_SUCCESS", b"", "a Parquet file that shows the columns is missing", {}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_input_that_would_lose_rows_is_refused(spark, tmp_path, monkeypatch, case):
    """The error is one line that names the file; Spark would read most of these files without an error."""
    name, content, says, options = REFUSED[case]
    monkeypatch.setattr(_input, "_MOST_KEYS", 3)
    path = put(tmp_path / "in" / name, content)
    path = path.removesuffix("/_SUCCESS") if name.startswith(("_in", "in.")) else str(tmp_path / "in")
    with pytest.raises(BadInput) as raised:
        read_rows(spark, path, "csv" if "id=7" in name else None, options)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value).replace(repr(content.decode("latin-1")), "")


def run(*arguments):
    return CliRunner().invoke(spark_ext, [str(argument) for argument in arguments])


UNREADABLE = {
    "header": ("csv", b"n,id\n1,a\n", "CSV header does not conform to the schema"),
    "gzip": ("csv.gz", b"\x1f\x8b\x08half", "EOFException"),
    "parquet": ("parquet", b"PAR1 no footer PAR1", "Exception"),
}


@pytest.mark.parametrize(
    "case", ["header", *(pytest.param(name, marks=pytest.mark.details) for name in ("gzip", "parquet"))]
)
def test_file_that_cannot_be_read_ends_the_job_and_commits_nothing(spark, tmp_path, case):
    """One line names the file. The output has no table, so that the next run needs no --overwrite."""
    ending, content, says = UNREADABLE[case]
    if ending == "parquet":
        spark.createDataFrame([(ID,)], "id string").coalesce(1).write.parquet(f"{tmp_path}/in")
    else:
        put(tmp_path / "in" / "1.csv", f"id,n\n{ID},1\n{ID},2\n{ID},3\n")
    bad = put(tmp_path / "in" / f"2.{ending}", content)
    done = run("ids", tmp_path / "in", "-o", tmp_path / "out")
    assert (done.exit_code, done.output.count("\n")) == (1, 1), done.output
    assert says in done.output
    assert bad in done.output or "1.csv" in done.output
    assert not list((tmp_path / "out").rglob("*.parquet"))
    (tmp_path / "in" / f"2.{ending}").unlink()
    assert run("ids", tmp_path / "in", "-o", tmp_path / "out").exit_code == 0


def test_parquet_files_of_other_columns_are_united_or_refused(spark, tmp_path):
    """Spark's default are the columns of one file: a column of the others is left out in silence."""
    for name, rows, columns in (("k=007", [("a",)], "id string"), ("k=8", [("b", 1)], "id string, n long")):
        spark.createDataFrame(rows, columns).coalesce(1).write.parquet(f"{tmp_path}/in/{name}")
    assert sorted(map(tuple, read_rows(spark, f"{tmp_path}/in").collect())) == [("a", None, "007"), ("b", 1, "8")]
    spark.createDataFrame([(1,)], "id long").coalesce(1).write.parquet(f"{tmp_path}/in/k=9")
    with pytest.raises(BadInput, match=r"a column has several types in its files: .*CANNOT_MERGE_SCHEMAS"):
        read_rows(spark, f"{tmp_path}/in")


@pytest.mark.parametrize("name", ["orders.csv", "a[1].csv", "b{x,y}.csv", "c d%20e.csv", "f\\g.csv"])
def test_file_is_read_whatever_its_name_and_its_neighbours(spark, tmp_path, name):
    """A name is not a pattern. A neighbour with a colon only matters if Spark lists the folder."""
    path = put(tmp_path / "in" / name, f"id\n{ID}\n")
    put(tmp_path / "in" / ("x:1.csv" if name == "orders.csv" else "a1.csv"), "other\n1\n")
    assert [row.id for row in read_rows(spark, path).collect()] == [ID]


def test_files_that_spark_skips_are_named(spark, tmp_path):
    """Hidden files, and files in folders that are not of values; the books of a table are not files of rows."""
    put(tmp_path / "in" / "a.csv", f"id\n{ID}\n")
    for name in ("_SUCCESS", ".a.csv.crc"):
        put(tmp_path / "in" / name, "")
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        read_rows(spark, f"{tmp_path}/in")
    for name, words in (("_b.csv", "1, such as _b.csv"), ("inner/c.csv", r"2, such as inner/c.csv; .*/\* reads them")):
        put(tmp_path / "in" / name, f"id\n{ID}\n")
        with pytest.warns(InputWarning, match=words):
            read_rows(spark, f"{tmp_path}/in")
    put(tmp_path / "in" / "k=1" / "d.csv", f"id\n{ID}\n")
    with pytest.raises(BadInput, match="it has folders of values, such as k=1, and other folders, such as inner"):
        read_rows(spark, f"{tmp_path}/in")
    done = run("ids", tmp_path / "in" / "a.csv", "-o", tmp_path / "out")
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.parametrize(("names", "format"), [
    (["a.csv", "b.csv.gz"], "csv"), (["a.TSV"], "tsv"), (["a.jsonl", "b.json"], "json"), (["a", "b.ids"], "text"),
    (["k=1/a.parquet"], "parquet"), (["a.csv", "b.json"], None), ([], None), (["_a.csv"], None),
])  # fmt: skip
def test_format_of_a_folder_is_that_of_its_files(spark, tmp_path, names, format):
    """Files of several formats, or no files, need --format."""
    (tmp_path / "in").mkdir()
    for name in names:
        put(tmp_path / "in" / name, "")
    if format is None:
        with pytest.raises(BadInput, match=r"cannot tell the format of .*in: pass --format csv, tsv, json"):
            format_of(f"{tmp_path}/in")
    else:
        assert format_of(f"{tmp_path}/in") == format


def test_table_with_a_log_is_read_by_its_log(spark, tmp_path):
    """The files of deleted rows are still in the folder."""
    deltalake = pytest.importorskip("deltalake")
    import pyarrow as pa

    path = f"{tmp_path}/table"
    deltalake.write_deltalake(path, pa.table({"id": [ID, "gone"]}))
    deltalake.DeltaTable(path).delete("id = 'gone'")
    assert [row.id for row in read_rows(spark, path).collect()] == [ID]
    assert [row.id for row in read_rows(spark, path, "parquet").collect()] == [ID]
    with pytest.raises(BadInput, match="it is not a table of the format 'delta'"):
        read_rows(spark, f"{tmp_path}", "delta")
