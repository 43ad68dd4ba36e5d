"""JSON lines and lines of text as DuckDB reads them for an audit: exact values, and the line of each fault."""

import json
import re

import pytest

pytest.importorskip("duckdb")
sources = pytest.importorskip("msgid.audit._sources")

from msgid.audit.duck import Duck  # noqa: E402


@pytest.fixture(scope="module")
def duck():
    duck = Duck()
    yield duck
    duck.close()


def written(folder, data, name="a.jsonl"):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def kept_of(duck, path):
    source = sources.open_file(duck, path)
    return sources.keep(duck, source, source.readable)


def refusal(duck, path):
    with pytest.raises(ValueError, match=r"^cannot read '") as caught:
        kept_of(duck, path)
    text = str(caught.value)
    assert "\n" not in text
    assert text.isprintable()
    return re.sub(r"^cannot read '.*?'(\.\.\. \(\d+ in all\))?: ", "", text)


@pytest.mark.parametrize(
    ("values", "type", "expected"),
    [
        (["1", "-2", str(2**63 - 1), "null"], "BIGINT", [1, -2, 2**63 - 1, None]),
        (["1.5", "null", "-0.25"], "DOUBLE", [1.5, None, -0.25]),
        (["true", "false"], "BOOLEAN", [True, False]),
        (["null", "null"], '"NULL"', [None, None]),
        (['"a"', '"\\u00e9\\n"', '""'], "VARCHAR", ["a", "é\n", ""]),
        (['"007"', '"2026-01-01"', '"NaN"'], "VARCHAR", ["007", "2026-01-01", "NaN"]),
        (["1", '"1"', "1.5"], "VARCHAR", ["1", "1", "1.5"]),
        ([str(10**38 + 1), "7"], "VARCHAR", [str(10**38 + 1), "7"]),
        (["1e400", "1.5"], "VARCHAR", ["1e400", "1.5"]),
        ([str(2**63), "1"], "VARCHAR", [str(2**63), "1"]),
        (['{"b":[9007199254740993,0.5]}', "[]"], "VARCHAR", ['{"b":[9007199254740993,0.5]}', "[]"]),
    ],
    ids=str,
)
def test_column_has_the_type_of_all_its_values_or_is_text(duck, tmp_path, values, type, expected):
    """No value is rounded, and no text is taken for a number or a time."""
    text = "".join(f'{{"n": {n}, "v": {value}}}\n' for n, value in enumerate(values))
    kept = kept_of(duck, written(tmp_path, text))
    assert kept.columns == {"n": "BIGINT", "v": type}
    assert [value for _, value in sorted(duck.rows(kept.scan(["n", "v"])))] == expected


def test_numbers_that_are_text_here_are_named(duck, tmp_path):
    """So an audit can say that a column of IDs has numbers: 33 digits have lost a zero at their beginning."""
    text = '{"id": 156000000000000000000000000000001, "n": "1", "m": 1, "o": "x"}\n'
    text += '{"id": 7, "n": "2", "m": "x", "o": 156000000000000000000000000000001}\n'
    kept = kept_of(duck, written(tmp_path, text))
    assert (kept.columns, kept.numbers) == (dict.fromkeys(["id", "n", "m", "o"], "VARCHAR"), {"id", "o"})


def test_columns_are_those_of_all_lines(duck, tmp_path):
    """A name of the last line alone is a column, which is NULL elsewhere."""
    text = '{"id": "x"}\n' * 5_000 + '\n  \n{"parent": "p", "id": "y"}'
    source = sources.open_file(duck, written(tmp_path, text))
    assert list(source.columns) == ["id", "parent"]
    kept = sources.keep(duck, source, ["parent"])
    assert duck.rows(f"SELECT count(*), count(parent), max(parent) FROM {kept.relation}") == [(5_001, 1, "p")]


def test_names_of_all_characters_are_columns(duck, tmp_path):
    names = ["a/b~c", 'q"', "d.e*", "x[0]", "0", "$", "é", "\\"]
    kept = kept_of(duck, written(tmp_path, json.dumps({name: n for n, name in enumerate(names)})))
    assert duck.rows(kept.scan(names)) == [tuple(range(len(names)))]


def test_names_of_their_own_in_each_line_are_read(duck, tmp_path):
    """The names are the sender's, such as a header with a number; only the columns in use are taken apart."""
    path = written(tmp_path, "".join(json.dumps({"id": "x", f"attribute {n}": n}) + "\n" for n in range(3_000)))
    source = sources.open_file(duck, path)
    assert len(source.columns) == 3_001
    kept = sources.keep(duck, source, ["id"])
    assert duck.rows(f"SELECT count(*) FROM {kept.relation}") == [(3_000,)]


def test_too_many_names_are_refused(duck, tmp_path, monkeypatch):
    monkeypatch.setattr("msgid.audit._text_files._NAMES_LIMIT", 10)
    path = written(tmp_path, "".join(json.dumps({f"{n}": n}) + "\n" for n in range(11)))
    assert refusal(duck, path) == "its objects have more than 10 different names"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id":', "line 4 is not JSON: Expecting value"),
        ('{"id": 1} {"id": 2}', "line 4 is not JSON: Extra data"),
        ("[1]", "line 4 is not a JSON object"),
        ("null", "line 4 is not a JSON object"),
        ('{"id": 1, "n": 2, "id": 3}', "line 4 has the name 'id' twice"),
        (r'{"id": "\ud800"}', "line 4 has half of a surrogate pair"),
        (r'{"\udfff": 1}', "line 4 has half of a surrogate pair"),
        (b'{"id": "\xff"}', "it is not text in UTF-8: line 4"),
        (b'{"id": "a\0"}', "it is not text in UTF-8"),
        (b'{"id": "a\x01"}', "line 4 is not JSON: Invalid control character at"),
    ],
)
def test_line_that_is_not_one_object_is_refused_with_its_number(duck, tmp_path, line, reason):
    good = b'{"id": "x"}\n'
    data = good + b"\n" + good + (line if isinstance(line, bytes) else line.encode()) + b"\n" + good * 20_000
    assert refusal(duck, written(tmp_path, data)).startswith(reason)


def test_deep_value_is_text(duck, tmp_path):
    """Python's JSON reads a thousand levels."""
    deep = "[" * 20_000 + "]" * 20_000
    assert duck.rows(kept_of(duck, written(tmp_path, f'{{"v": {deep}}}')).scan(["v"])) == [(deep,)]


def test_empty_file_has_no_columns(duck, tmp_path):
    assert sources.open_file(duck, written(tmp_path, b"")).columns == {}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_lines_of_text_are_values(duck, tmp_path, end, start):
    """An empty line is an empty value, also at the end; quotation marks, commas and spaces are text."""
    lines = ['a,"b"', "", " x ", "\\", ""]
    path = written(tmp_path, start + "".join(f"{line}{end}" for line in lines), "ids.txt")
    source = sources.open_file(duck, path)
    assert source.columns == {"value": "VARCHAR"}
    assert sorted(duck.rows(source.scan(["value"]))) == sorted((line,) for line in lines)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"a\nb\xff\n", "it is not text in UTF-8: line 2"),
        (b"a\n" * 50_000 + b"\xff\n", "it is not text in UTF-8: line 50,001"),
        ("a\n".encode("utf-16"), "it is not text in UTF-8"),
        (b"a\r\nb\n", r"line 2 ends with '\n', and the first one with '\r\n'"),
        (b"a\n" * 50_000 + b"b\0\n", "line 50,001 has a NUL character"),
        (b"a\nb\1\2\3\4c\n", "line 2 has the control characters U+0001 to U+0004"),
        (b"a\n" + b"x" * (1 << 21) + b"\n", "line 2 is longer than 2,097,152 bytes"),
    ],
)
def test_malformed_text_is_refused_with_its_line(duck, tmp_path, data, reason):
    assert refusal(duck, written(tmp_path, data, "ids.txt")) == reason
