"""CSV as DuckDB reads it for an audit: the rows of Python's `csv` in strict mode, or one line of refusal."""

import collections
import csv
import gzip
import io
import re

import pytest

duckdb = pytest.importorskip("duckdb")
sources = pytest.importorskip("msgid.audit._sources")
hypothesis = pytest.importorskip("hypothesis")

from helpers.strategies import share_of_examples  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from msgid.audit.duck import Duck  # noqa: E402


@pytest.fixture(scope="module")
def duck():
    duck = Duck()
    yield duck
    duck.close()


def rows_of(duck, path, **options):
    """Return the rows of a file, in any order, with all columns that can be read."""
    source = sources.open_file(duck, path, **options)
    kept = sources.keep(duck, source, source.readable)
    rows = duck.rows(kept.scan(kept.readable))
    duck.run(f"DROP TABLE {kept.parts[0].rows}")
    return rows


def written(folder, data, name="a.csv"):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def refusal(duck, path, **options):
    """Return the one line that refuses a file, without its name."""
    with pytest.raises(ValueError, match=r"^cannot read '") as caught:
        rows_of(duck, path, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert text.isprintable()
    return re.sub(r"^cannot read '.*?'(\.\.\. \(\d+ in all\))?: ", "", text)


# --- The property -----------------------------------------------------------------------------------------------------


def python_rows(data, delimiter=","):
    """Return the rows of CSV as Python reads them, without empty lines; None if the table is refused."""
    try:
        text = data.decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except (UnicodeDecodeError, csv.Error):
        return None
    full = [row for row in rows if row]
    if not rows or not rows[0] or any(len(row) != len(full[0]) for row in full):
        return None
    return [tuple(cell or None for cell in row) for row in full]


def ends_of_rows(data, delimiter):
    """Return the different line ends of a text's rows."""
    lines = io.StringIO(data.decode("utf-8-sig"), newline="").readlines()
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    ends = set()
    for _ in reader:
        last = lines[reader.line_num - 1]
        ends.add(last[len(last.rstrip("\r\n")) :])
    return ends - {""}


CELLS = st.text(st.sampled_from(['"', ",", ";", "\n", "\r", " ", "a", "é", "1", "\\", "'", "#", "\x02"]), max_size=5)
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=6)
)


@st.composite
def well_formed(draw):
    """Return CSV as a program writes it, with any line ends, quotes and a byte order mark."""
    sink = io.StringIO(newline="")
    style = {"lineterminator": draw(st.sampled_from(["\n", "\r\n", "\r"])), "delimiter": draw(st.sampled_from(",;\t"))}
    csv.writer(sink, quoting=draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])), **style).writerows(draw(TABLES))
    text = sink.getvalue()
    if draw(st.booleans()):
        text = text.removesuffix(style["lineterminator"])
    return (b"\xef\xbb\xbf" if draw(st.booleans()) else b"") + text.encode(), style["delimiter"]


@st.composite
def malformed(draw):
    """Return text that may be CSV."""
    pieces = ['"', '""', ",", ",,", "\n", "\r\n", "a", " ", '"b"', ',"c"', "1,2\n", "\n\n", "é"]
    text = "".join(draw(st.lists(st.sampled_from(pieces), min_size=1, max_size=20)))
    return draw(st.sampled_from([b"", b"a,b\n", b"a\n"])) + text.encode(), ","


@share_of_examples(120)
@hypothesis.given(st.one_of(well_formed(), malformed()))
def test_rows_are_those_of_python_or_both_refuse(duck, tmp_path_factory, example):
    """Two exceptions are documented: a space beside a quotation mark, and lines that end in different ways."""
    data, delimiter = example
    hypothesis.assume(not re.search(rb'(^|[,;\t\n\r]|\xbf) +"|" +([",;\t\n\r]|$)', data))
    path = written(tmp_path_factory.getbasetemp(), data, "property.csv")
    expected = python_rows(data, delimiter)
    found, refused = None, ""
    try:
        found = rows_of(duck, path, header=False, delimiter=delimiter)
    except ValueError as error:
        refused = str(error)
    if found is None:
        assert refused.startswith("cannot read '")
        assert expected is None or len(ends_of_rows(data, delimiter)) > 1, f"{refused}: Python reads {expected}"
    else:
        assert expected is not None, f"Python refuses what is read as {found}"
        assert collections.Counter(found) == collections.Counter(expected)


# --- Columns ----------------------------------------------------------------------------------------------------------


def test_cells_are_text_and_an_empty_cell_is_null(duck, tmp_path):
    """No sample decides a type: leading zeros, times and large numbers stay as they are."""
    path = written(tmp_path, 'id,n,t\n007,1e400,2026-01-01\n"",,NULL\n')
    source = sources.open_file(duck, path)
    assert source.columns == {"id": "VARCHAR", "n": "VARCHAR", "t": "VARCHAR"}
    assert sorted(rows_of(duck, path), key=str) == [("007", "1e400", "2026-01-01"), (None, None, "NULL")]
    assert not source.is_cheap


def test_relation_can_be_scanned_again(duck, tmp_path):
    source = sources.open_file(duck, written(tmp_path, "id,n\nx,1\n"))
    for _ in range(2):
        assert duck.rows(f"SELECT n, id FROM {source.relation}") == [("1", "x")]


def test_columns_without_a_header_have_numbers(duck, tmp_path):
    path = written(tmp_path, "x,1\ny,2\n")
    assert sources.open_file(duck, path, header=False).columns == {"column0": "VARCHAR", "column1": "VARCHAR"}
    assert sorted(rows_of(duck, path, header=False)) == [("x", "1"), ("y", "2")]


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ";"), ("a.tsv", None), ("a.dat", "|"), ("a.csv", "\xa7")])
def test_delimiter_is_any_character(duck, tmp_path, name, delimiter):
    """A file of an unknown ending is CSV if the delimiter is given."""
    path = written(tmp_path, f"id{delimiter or chr(9)}n\nx,y{delimiter or chr(9)}1\n", name)
    assert rows_of(duck, path, delimiter=delimiter) == [("x,y", "1")]


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n"])
def test_other_delimiter_is_refused(duck, tmp_path, delimiter):
    with pytest.raises(ValueError, match=r"^delimiter must be one character"):
        sources.open_file(duck, written(tmp_path, "id\nx\n"), delimiter=delimiter)


def test_repeated_name_is_refused_only_if_it_is_read(duck, tmp_path):
    source = sources.open_file(duck, written(tmp_path, "id,note,note\nx,1,2\n"))
    assert source.readable == ["id"]
    assert duck.rows(source.scan(["id"])) == [("x",)]
    with pytest.raises(ValueError, match=r"it has several columns 'note'"):
        source.scan(["note"])


def test_names_that_differ_in_case_are_two_columns(duck, tmp_path):
    """DuckDB would take the first one for both, so both in one query are refused."""
    source = sources.open_file(duck, written(tmp_path, "id,ID,\nx,y,z\n"))
    assert [duck.rows(source.scan([name])) for name in ("id", "ID")] == [[("x",)], [("y",)]]
    with pytest.raises(ValueError, match=r"the columns 'id' and 'ID' differ in case only"):
        source.scan(["id", "ID"])
    with pytest.raises(ValueError, match=r"a column is named '': rename it"):
        source.scan([""])
    with pytest.raises(ValueError, match=r"it does not have a column 'no'"):
        source.scan(["no"])


def test_names_are_quoted(duck, tmp_path):
    name = "a\"b'c)--"
    source = sources.open_file(duck, written(tmp_path, '"a""b\'c)--",offset\nx,1\n'))
    assert duck.rows(source.scan([name, "offset"])) == [("x", "1")]


# --- Cells with line breaks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [0, 200_000], ids=["in the first bytes", "far behind"])
def test_cells_may_have_line_breaks(duck, tmp_path, before):
    """The first reader refuses such a cell where the first bytes have none, and another one takes its place."""
    path = written(tmp_path, "n,note\n" + "1,x\n" * before + '2,"a\n2,b"\n3,"\r"\n')
    source = sources.open_file(duck, path)
    kept = sources.keep(duck, source, ["n", "note"])
    notes = dict(duck.rows(f"SELECT n, min(note) FROM {kept.relation} GROUP BY n"))
    assert notes == ({"1": "x"} if before else {}) | {"2": "a\n2,b", "3": "\r"}
    assert duck.rows(f"SELECT count(*) FROM {kept.relation}") == [(before + 2,)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("header", [True, False])
def test_first_row_may_have_line_breaks(duck, tmp_path, end, start, header):
    """DuckDB would take such a break for the end of all lines."""
    path = written(tmp_path, start + end.join(['"i\nd","\r"', 'x,"1\n\r"', "y,2", ""]))
    first = [] if header else [("i\nd", "\r")]
    assert sorted(rows_of(duck, path, header=header), key=str) == sorted([*first, ("x", "1\n\r"), ("y", "2")], key=str)


def test_fault_that_one_thread_does_not_see_is_refused(duck, tmp_path):
    """DuckDB reads two rows of this file, and no error."""
    path = written(tmp_path, 'a\n"\n"b","', "a.csv")
    assert "the row that begins at line 2 is not CSV" in refusal(duck, path, header=False)


def test_line_of_an_error_behind_a_cell_with_a_line_break_is_counted_anew(duck, tmp_path):
    """DuckDB counts a row as one line; a thread may meet a fault before another one meets the cell."""
    path = written(tmp_path, "id,n\n" + "1,x\n" * 20_000 + '1,"a\nb"\n1,x\n"y"z,2\n')
    error = duckdb.InvalidInputException(
        f"CSV Error on Line: 20004\nValue with unterminated quote found.\n file = {path}"
    )
    reason = sources.open_file(duck, path).explained(error)
    assert reason.startswith("the row that begins at line 20,005 is not CSV: ")


# --- Refusals ---------------------------------------------------------------------------------------------------------

MANY = "1,x\n" * 100_000


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty: it must have a header"),
        (b"\xef\xbb\xbf", "it is empty: it must have a header"),
        (b"\nid,n\nx,1\n", "line 1 is empty: it must be the header"),
        (b'"id,n\nx,1\n', "the row that begins at line 1 is not CSV: unexpected end of data"),
        (b'id"x,n\n"id"x,n\n', "the row that begins at line 2 is not CSV: "),
        (b'id,n\nx,1\n"y,2\nz,3\n', "the row that begins at line 3 is not CSV"),
        (b'id,n\nx,1\n"y"z,2\n', "the row that begins at line 3 is not CSV"),
        (b'id,n\n"x\n",1\n"y"z,2\n', "the row that begins at line 4 is not CSV"),
        (b"id,n\nx,1\n\ny\n", "the row that begins at line 4 must have 2 cells, got 1"),
        (b"id,n\nx,1\ny,2,\n", "the row that begins at line 3 must have 2 cells, got 3"),
        (b'id,n\nx,1\ny,2,""\n', "the row that begins at line 3 must have 2 cells, got 3"),
        (b"id,n\nx,1\ny,2,,,\n", "the row that begins at line 3 must have 2 cells, got more"),
        (b"id,n\nx,1\ny,2,3,4\n", "the row that begins at line 3 must have 2 cells, got more"),
        (b"id\nx\ny,\n", "the row that begins at line 3 must have 1 cells, got 2"),
        (b"id,n\nx,1\r\ny,2\n", r"the row that begins at line 2 ends with '\r\n', and the first one with '\n'"),
        (b"id,n\r\nx,1\ny,2\r\n", r"the row that begins at line 2 ends with '\n', and the first one with '\r\n'"),
        (b"id,n\nx,\xff\n", "it is not text in UTF-8: line 2"),
        ("id,n\nx,1\n".encode("utf-16"), "it is not text in UTF-8"),
        ((f"id,n\n{MANY}").encode() + b"y,\xff\n", "it is not text in UTF-8: line 100,002"),
        ((f"id,n\n{MANY}").encode() + b"y,\0\n", "the row that begins at line 100,002 has a NUL character"),
        ((f"id,n\n{MANY}").encode() + b"y\n", "the row that begins at line 100,002 must have 2 cells, got 1"),
        ((f"id,n\n{MANY}").encode() + b'"y,2\n', "the row that begins at line 100,002 is not CSV"),
        (b"id,n\n" + b"x" * 2_000_001 + b",1\n", "the row that begins at line 2 is longer than 2,000,000 bytes"),
        (b"x" * 2_500_000, "line 1 is longer than 2,000,000 bytes"),
        (b"x," * 2_000_000, "line 1 is longer than 2,000,000 bytes"),
    ],
)  # fmt: skip
def test_malformed_file_is_refused_with_its_line(duck, tmp_path, data, reason):
    assert refusal(duck, written(tmp_path, data)).startswith(reason)


def test_fault_in_a_column_that_nobody_reads_is_refused(duck, tmp_path):
    """Text that is not UTF-8 in another column shows a file that is damaged, or is of another encoding."""
    source = sources.open_file(duck, written(tmp_path, f"id,n\n{MANY}".encode() + b"x,\xff\n"))
    with pytest.raises(ValueError, match=r"it is not text in UTF-8: line 100,002"):
        sources.keep(duck, source, ["id"])


def test_space_beside_a_quotation_mark_is_not_part_of_the_cell(duck, tmp_path):
    """DuckDB reads it so, in contrast to Python's `csv`; two spaces are."""
    assert rows_of(duck, written(tmp_path, 'a,b,c\n "x","y" ,  "z"\n')) == [("x", "y", '  "z"')]


def test_error_of_one_of_several_files_names_it(duck, tmp_path):
    for name, text in (("1.csv", "id,n\nx,1\n"), ("2.csv", "id,n\ny\n"), ("3.csv", "id,n\nz,1\n")):
        written(tmp_path, text, name)
    assert refusal(duck, tmp_path) == "'2.csv': the row that begins at line 2 must have 2 cells, got 1"


# --- Several files ----------------------------------------------------------------------------------------------------


def test_files_have_their_own_order_of_columns_and_line_ends(duck, tmp_path):
    """One file after another would be read by the places of the first one's columns."""
    written(tmp_path, "id,n\nx,1\n", "1.csv")
    written(tmp_path, "n,id\r\n2,y\r\n", "2.csv")
    written(tmp_path, gzip.compress(b"id,n\nz,3\n"), "3.csv.gz")
    assert sorted(rows_of(duck, tmp_path)) == [("x", "1"), ("y", "2"), ("z", "3")]


def test_column_that_one_file_lacks_is_refused_if_it_is_read(duck, tmp_path):
    written(tmp_path, "id,n\nx,1\n", "1.csv")
    written(tmp_path, "id\ny\n", "2.csv")
    source = sources.open_file(duck, tmp_path)
    assert sorted(duck.rows(source.scan(["id"]))) == [("x",), ("y",)]
    with pytest.raises(ValueError, match=r"its files must have the same columns, got \['id', 'n'\] and \['id'\]"):
        source.scan(["n"])


def test_names_of_folders_are_columns_of_text(duck, tmp_path):
    for day in ("1", "02"):
        (tmp_path / f"day={day}").mkdir()
        written(tmp_path / f"day={day}", "id\nx\n", "x.csv")
    expected = [("x", "02"), ("x", "1")]
    for path in (tmp_path, tmp_path / "day=*/x.csv", tmp_path / "day=*"):
        assert sorted(rows_of(duck, path)) == expected
    assert sources.open_file(duck, tmp_path / "day=1/x.csv").columns == {"id": "VARCHAR"}
