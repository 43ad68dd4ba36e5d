"""Audits of files in every form: the same IDs give the same report, and a broken file is one error."""

import contextlib
import json
import random

import pytest
from helpers.commands import invoke

from msgid import layout

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
audit = pytest.importorskip("msgid.audit")
file_forms = pytest.importorskip("helpers.file_forms")

IDS = [layout.pack(0x56F7E71C361B, 7, 100, n).hex().upper() for n in (0, 1, 2, 2, 5, 6, 9)]


def test_files_of_all_forms_have_the_same_report(tmp_path):
    """Encodings, line ends, byte order marks, compressions, quotes and Arrow's types do not change an ID."""
    expected = audit.audit_ids(IDS).to_dict()
    assert [finding["check"] for finding in expected["findings"]] == ["duplicate_ids", "missing_sequences"]
    paths = list(file_forms.forms(tmp_path, IDS))
    assert len(paths) > 90
    for path in paths:
        found = audit.audit_file(path).to_dict()
        assert found == expected, path.read_bytes()[:99]


@pytest.mark.parametrize("seeds", [range(75), pytest.param(range(75, 10_000), marks=pytest.mark.volume)], ids=len)
def test_damaged_file_is_a_report_or_one_error(tmp_path, seeds):
    """A file may be cut off, have bytes too many or other bytes: never another exception."""
    whole = [(path.name, path.read_bytes()) for path in file_forms.forms(tmp_path, IDS)]
    for seed in seeds:
        chance = random.Random(seed)
        name, data = chance.choice(whole)
        path = tmp_path / f"damaged {name}"
        path.write_bytes(file_forms.damaged(data, chance))
        with contextlib.suppress(ValueError):
            audit.audit_file(path).to_json()
        path.unlink()


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.jsonl", b'{"id":"x"}\n{"id":\n"y"}', "line 2 is not JSON"),
        ("a.jsonl", b'{"id":"x"}\n[1]\n', "line 2 is not a JSON object"),
        ("a.csv", b'id,n\nx,1\n"y,2\nz,3\n', "line 3 is not CSV: a quotation mark is not closed"),
        ("a.csv", b"id,n\nx,1\n\ny\n", "the row that begins at line 4 must have 2 cells, got 1"),
        ("a.csv", b"id,n\nx,\xff\n", "it is not text in UTF-8"),
        ("a.txt", "\ufeff".join(["", *IDS]).encode("utf-16"), "it is not text in UTF-8"),
        ("a.csv", b"id\n" + IDS[0].encode() + b"\0", "it is not text in UTF-8"),
        ("a.csv.gz", b"", "it is empty, and so cut off"),
        ("a.csv", b"id,id\n1,2\n", "it has several columns 'id'"),
        ("a.arrow", b"ARROW1\0\0", "File is too small"),
        ("a.csv", b"", "it is empty: it must have a header"),
    ],
)  # fmt: skip
def test_unreadable_file_ends_the_command_with_one_line(tmp_path, name, data, reason):
    path = tmp_path / name
    path.write_bytes(data)
    done = invoke(["audit", str(path)])
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert reason in done.stderr


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", "date32", "date64", "integers"])
def test_times_outside_the_years_are_not_read(tmp_path, unit):
    """The other times are, exactly, and no time becomes another."""
    per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9, "date64": 10**3, "integers": 10**3}.get(unit, 1)
    day = 1 if unit == "date32" else 86_400 * per_second
    largest = 2**31 - 1 if unit == "date32" else 2**63 - 1
    largest -= unit == "ns"  # the last value is an infinity of DuckDB
    largest -= largest % day if unit.startswith("date") else 0
    last = min(2_932_896 * day, largest // day * day)
    kinds = {"date32": pa.date32(), "date64": pa.date64(), "integers": pa.int64()}
    moments = pa.array([0, last, largest, -largest, 5 * day], pa.int64())
    if unit == "date32":
        moments = moments.cast(pa.int32())
    moments = moments.cast(kinds.get(unit) or pa.timestamp(unit))
    path = tmp_path / "a.parquet"
    if unit in ("date64", "s"):
        path = tmp_path / "a.arrow"
        with (
            pa.OSFile(str(path), "wb") as sink,
            pa.ipc.new_file(sink, pa.schema([("t", moments.type), ("offset", pa.int64())])) as writer,
        ):
            writer.write_table(pa.table({"t": moments, "offset": range(5)}))
    else:
        pq.write_table(pa.table({"t": moments, "offset": range(5)}), path)
    (log,) = audit.audit_file(path, offset="offset", timestamp="t", landed="t").logs
    assert log.last_time.date().isoformat() == ("2262-04-11" if unit == "ns" else "9999-12-31")
    assert log.first_time.date().isoformat() == ("1677-09-21" if unit == "ns" else "1970-01-01")


def test_uuids_and_other_types_of_arrow_are_read_or_refused():
    """A UUID is its text, also in a dictionary; a nested column is not a column of IDs."""
    import uuid

    made = [uuid.UUID(int=n) for n in (1, 2, 2)]
    stored = pa.array([one.bytes for one in made], pa.uuid())
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1]), stored.take(pa.array([0, 1])))
    for column in (stored, coded, pa.array(map(str, made)), pa.chunked_array([stored[:1], stored[1:]])):
        report = audit.audit_table(pa.table({"id": column}))
        assert [(row.kind, row.rows) for row in report.kinds] == [("uuid", 3)]
        assert {finding.check: finding.example for finding in report.findings} == {"duplicate_ids": str(made[1])}
    assert audit.audit_table(pa.table({"id": pa.chunked_array([], pa.uuid())})).findings == []
    for column in (pa.array([[IDS[0]]]), pa.array([{"a": IDS[0]}])):
        with pytest.raises(ValueError, match="must be a column of text, binary or UUIDs, got "):
            audit.audit_table(pa.table({"id": column}))


def test_offsets_and_sources_of_encoded_columns_are_read():
    """A dictionary, a view and a run of equal values are the values themselves."""
    offset, source = pa.array([4, 5, 9]), pa.array(["a", "a", "a"])
    expected = audit.audit_table(pa.table({"o": offset, "s": source}), id=None, source="s", offset="o").to_json()
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([3]), source[:1])
    for columns in (
        (offset.dictionary_encode(), source.dictionary_encode()),
        (offset, runs),
        (offset, source.cast(pa.string_view())),
    ):
        table = pa.table(dict(zip("os", columns, strict=True)))
        assert audit.audit_table(table, id=None, source="s", offset="o").to_json() == expected
    assert json.loads(expected)["findings"][0]["example"] == "6 to 8"


def test_times_and_offsets_as_text_of_a_file_are_those_of_typed_columns(tmp_path):
    """Milliseconds, and text of other programs: nanoseconds, offsets of PostgreSQL. A CSV has text alone."""
    moments = [1_700_000_000_000, 1_700_000_003_000, 1_700_000_001_000]
    texts = ["2023-11-14T22:13:20.000000789Z", "2023-11-14 22:13:23+00", "2023-11-15T03:43:21.000000001+0530"]
    expected = audit.audit_table(pa.table({"offset": [0, 1, 2], "sent": moments}), offset="offset", timestamp="sent")
    assert [finding.check for finding in expected.findings] == ["time_backwards"]
    for values in (moments, texts):
        path = tmp_path / "a.csv"
        path.write_text("offset,sent\n" + "".join(f"{'-' * (n == 0)}{n},{sent}\n" for n, sent in enumerate(values)))
        assert audit.audit_file(path, offset="offset", timestamp="sent").to_json() == expected.to_json()


def test_cells_of_csv_may_have_line_breaks_at_any_place(tmp_path):
    """No row is invented or lost."""
    path = tmp_path / "a.csv"
    path.write_text("offset,content\n" + "".join(f'{n},"a\n{n},b\n"\n' for n in range(100)))
    report = audit.audit_file(path)
    assert (report.rows, report.findings) == (100, [])


def test_text_of_json_that_looks_like_a_time_is_text(tmp_path):
    """Values of JSON and of CSV are one ID."""
    rows = [{"id": "2026-01-01", "n": 2**53 + 1}, {"id": "2026-01-02", "n": 0.5}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "a.csv").write_text("id\n2026-01-01\n2026-01-02\n")
    assert audit.compare(tmp_path / "a.jsonl", tmp_path / "a.csv").findings == []


def test_folder_is_read_whole_or_refused(tmp_path):
    """Endings in upper case are read; files of other kinds or columns, and those beside a job's table, are refused."""
    for name in ("a/1.parquet", "a/day=1/2.PARQUET", "a/_SUCCESS", "b/1.parquet", "c/messages/1.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"offset": [len(name)]}), tmp_path / name)
    assert audit.audit_file(tmp_path / "a").rows == 2
    assert audit.audit_file(tmp_path / "c", offset="offset").rows == 1
    pq.write_table(pa.table({"offset": [1], "content": ["x"]}), tmp_path / "a/3.parquet")
    (tmp_path / "b/2.csv").write_text("offset\n1\n")
    (tmp_path / "c/orders").mkdir()
    pq.write_table(pa.table({"offset": [1]}), tmp_path / "c/orders/1.parquet")
    for folder, target in (("d", "a"), ("e", "nothing")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1.parquet").symlink_to(tmp_path / "a/1.parquet")
        (tmp_path / folder / "2.parquet").symlink_to(tmp_path / target)
    for folder, reason in (
        *((name, "'2.parquet' in it links to a folder, or to nothing") for name in "de"),
        ("a", r"its files must have the same columns, got \['offset'\] and \['content', 'offset'\]"),
        ("b", "its files must be Parquet, got '2.csv'"),
        ("c", "it has the table 'messages' of a job and 'orders/1.parquet': pass one of them"),
    ):
        for read in (audit.audit_file, lambda path: audit.digest(path, offset="offset")):
            with pytest.raises(ValueError, match=reason):
                read(tmp_path / folder)


def test_values_in_the_names_of_folders_are_text(tmp_path):
    """``source=007`` and ``source=7`` are two logs, as for the command of Spark; a digest reads them so, too."""
    for value, offsets in (("007", [1, 5]), ("7", [1]), ("a%2Fb", [3]), ("__HIVE_DEFAULT_PARTITION__", [4])):
        (tmp_path / f"source={value}").mkdir()
        pq.write_table(pa.table({"offset": offsets}), tmp_path / f"source={value}/a.parquet")
    report = audit.audit_file(tmp_path)
    assert {log.source: log.missing for log in report.logs} == {"007": 3, "7": 0, "a/b": 0}
    assert report.unplaced == 1
    assert audit.digest(tmp_path)["source"].to_pylist() == ["007", "7", "a/b", None]
