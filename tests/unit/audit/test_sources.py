"""Files of all forms as relations of DuckDB: folders, patterns, compressions, Parquet of several types, and pipes."""

import bz2
import gzip
import io
import os
import sys
import uuid
from decimal import Decimal

import pytest

pytest.importorskip("duckdb")
np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
sources = pytest.importorskip("msgid.audit._sources")
file_forms = pytest.importorskip("helpers.file_forms")

from msgid import layout  # noqa: E402
from msgid.audit.duck import Duck  # noqa: E402

IDS = [layout.pack(0x56F7E71C361B, 7, 100, n).hex().upper() for n in (0, 1, 2, 2, 5)]
UUIDS = [uuid.UUID(int=n << 64 | 5) for n in range(4)]


@pytest.fixture(scope="module")
def duck():
    duck = Duck()
    yield duck
    duck.close()


def rows_of(duck, path, columns=None, **options):
    """Return the sorted rows of a source, by all columns that can be read or by some."""
    source = sources.open_file(duck, path, **options)
    names = source.readable if columns is None else columns
    if not source.is_cheap:
        source = sources.keep(duck, source, names)
    return sorted(duck.rows(source.scan(names)), key=str)


def parquet(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


# --- Formats and compressions -----------------------------------------------------------------------------------------


def test_files_of_all_forms_have_the_same_ids(duck, tmp_path):
    """Encodings, line ends, byte order marks, compressions, quotes and Arrow's types do not change an ID."""
    paths = list(file_forms.forms(tmp_path, IDS))
    assert len(paths) > 90
    for path in paths:
        source = sources.open_file(duck, path)
        name = "id" if "id" in source.columns else "value"
        rows = [id for (id,) in rows_of(duck, path, [name])]
        assert [id.hex().upper() if isinstance(id, bytes) else id for id in rows] == IDS, path


FORMS = {
    "csv": b"id,n\nx,1\n",
    "tsv": b"id\tn\nx\t1\n",
    "json": b'{"id": "x", "n": 1}\n',
    "compressed": gzip.compress(b"id,n\nx,1\n"),
    "bz2": bz2.compress(b"id,n\nx,1\n"),
}


@pytest.mark.parametrize("form", [*FORMS, "parquet", "arrow"])
def test_first_bytes_tell_the_format_of_a_file_without_an_ending(duck, tmp_path, form):
    """So do those of an open file, such as standard input, and of a pipe, which are read once."""
    data = FORMS.get(form)
    if data is None:
        sink, table = io.BytesIO(), pa.table({"id": ["x"], "n": ["1"]})
        if form == "parquet":
            pq.write_table(table, sink)
        else:
            with pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        data = sink.getvalue()
    (tmp_path / "noending").write_bytes(data)
    for path in (tmp_path / "noending", io.BytesIO(data)):
        assert [(id, int(n)) for id, n in rows_of(duck, path)] == [("x", 1)]
    if os.path.exists("/dev/fd"):
        reading, writing = os.pipe()
        os.write(writing, data)
        os.close(writing)
        assert [(id, int(n)) for id, n in rows_of(duck, f"/dev/fd/{reading}")] == [("x", 1)]
        os.close(reading)


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".zst", ".lz4"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.txt"])
def test_compressed_file_that_is_cut_off_is_refused(duck, tmp_path, name, ending):
    """DuckDB reads the rows before the cut of a zstd file, and does not raise an error."""
    line = {"a.csv": "x{0},{0}\n", "a.jsonl": '{{"id": "x{0}"}}\n', "a.txt": "{0}\n"}[name]
    data = "".join(line.format(n * n) for n in range(20_000)).encode()
    packed = file_forms.compressed(data)[ending]
    path = tmp_path / (name + ending)
    path.write_bytes(packed)
    assert len(rows_of(duck, path, header=False)) == 20_000
    for size in (len(packed) - 1, len(packed) // 2, 7, 0):
        path.write_bytes(packed[:size])
        with pytest.raises(ValueError, match=r"^cannot read '") as caught:
            rows_of(duck, path, header=False)
        assert "\n" not in str(caught.value)


def test_zstd_file_of_several_frames_is_read(duck, tmp_path):
    """A frame that a program skips, and a checksum, are part of the format."""
    whole = file_forms.compressed(b"id\n" + b"x\n" * 100_000)[".zst"]
    more = file_forms.compressed(b"y\n")[".zst"]
    (tmp_path / "a.csv").write_bytes(whole + b"\x50\x2a\x4d\x18\x03\0\0\0abc" + more)
    assert len(rows_of(duck, tmp_path / "a.csv")) == 100_001
    (tmp_path / "a.csv").write_bytes(whole + b"more")
    with pytest.raises(ValueError, match=r"compressed data is cut off, or has other bytes at its end"):
        rows_of(duck, tmp_path / "a.csv")


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_compressed_table_is_read(duck, tmp_path, form):
    sink, table = io.BytesIO(), pa.table({"id": IDS})
    if form == "parquet":
        pq.write_table(table, sink)
    else:
        with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table)
    (tmp_path / f"a.{form}").write_bytes(sink.getvalue())
    (tmp_path / f"a.{form}.gz").write_bytes(gzip.compress(sink.getvalue()))
    for path in (tmp_path / f"a.{form}", tmp_path / f"a.{form}.gz"):
        source = sources.open_file(duck, path)
        for _ in range(2):
            assert duck.rows(f"SELECT id FROM {source.relation} ORDER BY id") == [(id,) for id in IDS]


def test_unknown_ending_and_unknown_format_are_refused(duck, tmp_path):
    (tmp_path / "a.xlsx").write_text("id\nx\n")
    with pytest.raises(ValueError, match=r"files that end with '.xlsx' are not known; pass the format: csv, tsv, json"):
        sources.open_file(duck, tmp_path / "a.xlsx")
    assert rows_of(duck, tmp_path / "a.xlsx", format="csv") == [("x",)]
    with pytest.raises(ValueError, match=r"format must be csv, .* or text, got 'xml'"):
        sources.open_file(duck, tmp_path / "a.xlsx", format="xml")


@pytest.mark.parametrize("path", [5, None, object(), ["a.csv", 5]])
def test_path_of_another_type_is_refused(duck, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("id\nx\n")
    with pytest.raises(TypeError, match=r"path must be the path of a file, or an open file, got"):
        sources.open_file(duck, path)


@pytest.mark.parametrize("path", ["missing.csv", "*.csv", "missing/", ["a.txt", "b.txt"]])
def test_missing_file_is_file_not_found(duck, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("x\n")
    with pytest.raises(FileNotFoundError, match=r"no file '"):
        sources.open_file(duck, path)


# --- Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a[1].csv", "a*.csv", "a?.csv", "it's.csv", "a;b.csv", "\u00e9 \U0001f600.csv", "a\\b.csv", "a\nb.csv"]
)
def test_names_of_all_characters_are_names_of_one_file(duck, tmp_path, name):
    """A pattern is a pattern only if no file has this name."""
    (tmp_path / "a1.csv").write_text("id\nother\n")
    (tmp_path / name).write_text("id\nx\n")
    assert rows_of(duck, tmp_path / name) == [("x",)]
    (tmp_path / name).write_text("id\nx,2\n")
    with pytest.raises(ValueError, match=r"^cannot read ['\"].*must have 1 cells") as caught:
        rows_of(duck, tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not have such names")
def test_name_that_is_not_utf8_is_read_but_not_in_a_folder(duck, tmp_path):
    name = os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.parquet")
    os.rename(parquet(tmp_path / "a.parquet", id=["x"]), name)
    assert rows_of(duck, name) == [("x",)]
    with pytest.raises(ValueError, match=r"must be UTF-8, got .*rename the file"):
        sources.open_file(duck, tmp_path)


# --- Folders, patterns and several files ------------------------------------------------------------------------------


def test_folders_patterns_and_lists_name_the_same_files(duck, tmp_path):
    for name in "ab":
        parquet(tmp_path / f"{name}.parquet", id=[name])
    for hidden in ("_c.parquet", ".d.parquet", "_temporary/e.parquet", "_SUCCESS.parquet"):
        parquet(tmp_path / hidden, id=["hidden"])
    for path in (
        tmp_path,
        tmp_path / "*.parquet",
        str(tmp_path / "**/*.parquet"),
        [tmp_path / "a.parquet", tmp_path / "b.parquet"],
    ):
        assert rows_of(duck, path) == [("a",), ("b",)]
    assert rows_of(duck, tmp_path / "_c.parquet") == [("hidden",)]


def test_files_of_several_formats_are_refused(duck, tmp_path):
    for folder, names in (("a", ["1.csv", "2.json"]), ("b", ["1.parquet", "2.csv"]), ("c", ["1.csv", "part-0"])):
        for name in names:
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / name).write_text("id\nx\n")
    (tmp_path / "d").mkdir()
    for folder, reason in (
        ("a", "its files must have one format, got '1.csv' and '2.json'"),
        ("b", "its files must be Parquet, got '2.csv'"),
        ("c", "its files must have one format, got '1.csv' and 'part-0'"),
        ("d", "there are not any files in it"),
        ("a/*", "the files must have one format, got csv and json"),
    ):
        with pytest.raises(ValueError, match=rf"^cannot read .*{reason}"):
            sources.open_file(duck, tmp_path / folder)


def test_links_in_a_folder_are_files_or_refused(duck, tmp_path):
    parquet(tmp_path / "a/1.parquet", id=["x"])
    for folder, target in (("b", "a/1.parquet"), ("c", "a"), ("d", "nothing")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "2.parquet").symlink_to(tmp_path / target)
    assert rows_of(duck, tmp_path / "b") == [("x",)]
    for folder in "cd":
        with pytest.raises(ValueError, match=r"'2.parquet' in it links to a folder, or to nothing"):
            sources.open_file(duck, tmp_path / folder)


def test_values_in_the_names_of_folders_are_text(duck, tmp_path):
    """``source=007`` and ``source=7`` are two logs. Folders above the passed one do not count."""
    top = tmp_path / "source=above" / "year=2026"
    for value, offset in (("007", 1), ("7", 2), ("a%2Fb", 3), ("__HIVE_DEFAULT_PARTITION__", 4), ("", 5)):
        parquet(top / f"source={value}/a.parquet", offset=[offset])
    expected = [(1, "007"), (2, "7"), (3, "a/b"), (4, None), (5, None)]
    assert rows_of(duck, top, ["offset", "source"]) == expected
    assert sources.open_file(duck, top).columns == {"offset": "BIGINT", "source": "VARCHAR"}
    assert sources.open_file(duck, top / "source=7/a.parquet").columns == {"offset": "BIGINT"}
    assert rows_of(duck, top / "source=*/*.parquet", ["offset", "source"]) == expected


def test_column_of_a_file_wins_over_the_name_of_its_folder(duck, tmp_path):
    parquet(tmp_path / "source=7/a.parquet", source=["007"], file=["a column of this name"])
    assert rows_of(duck, tmp_path, ["source", "file"]) == [("007", "a column of this name")]


def test_output_of_a_job_is_its_table(duck, tmp_path):
    """The rows without a valid ID belong to the table; the outputs that were written before do not."""
    parquet(tmp_path / "a/ids/1.parquet", id=["x"], id_kind=["v1"])
    parquet(tmp_path / "a/quarantine/1.parquet", id=["bad"], reason=["malformed"])
    parquet(tmp_path / "b/outputs/1.parquet", id=["x", "y"], kind=["new", "repeated"])
    parquet(tmp_path / "c/messages/1.parquet", id=["x"])
    parquet(tmp_path / "c/orders/1.parquet", id=["x"])
    assert rows_of(duck, tmp_path / "a", ["id", "id_kind", "reason"]) == [("bad", None, "malformed"), ("x", "v1", None)]
    assert rows_of(duck, tmp_path / "b", ["id"]) == [("x",)]
    with pytest.raises(
        ValueError, match=r"it has the table 'messages' of a job and 'orders/1.parquet': pass one of them"
    ):
        sources.open_file(duck, tmp_path / "c")


# --- The types of several Parquet files ------------------------------------------------------------------------------

BYTES = [one.bytes for one in UUIDS]
JOINED = {
    "integers": (pa.array([1], pa.int8()), pa.array([300], pa.int64()), "BIGINT", [1, 300]),
    "signs": (pa.array([2**64 - 1], pa.uint64()), pa.array([-1], pa.int8()), "HUGEINT", [2**64 - 1, -1]),
    "nulls": (pa.nulls(1), pa.array(["a"]), "VARCHAR", [None, "a"]),
    "uuid and bytes": (pa.array(BYTES[:1], pa.uuid()), pa.array(BYTES[1:2]), "UUID", UUIDS[:2]),
    "uuid and fixed bytes": (pa.array(BYTES[:1], pa.uuid()), pa.array(BYTES[1:2], pa.binary(16)), "UUID", UUIDS[:2]),
    "uuid and text": (pa.array(BYTES[:1], pa.uuid()), pa.array(["an ID"]), "VARCHAR", [str(UUIDS[0]), "an ID"]),
    "doubles": (pa.array([0.5], pa.float32()), pa.array([0.1]), "DOUBLE", [0.5, 0.1]),
    "float16": (pa.array([np.float16(0.5)], pa.float16()), pa.array([0.1]), "DOUBLE", [0.5, 0.1]),
    "decimals": (
        pa.array([Decimal("1.5")], pa.decimal128(5, 1)), pa.array([Decimal("2.25")], pa.decimal128(20, 2)),
        "DECIMAL(20,2)", [Decimal("1.50"), Decimal("2.25")],
    ),
    "dictionaries": (pa.array(["a"]).dictionary_encode(), pa.array(["b"]), "VARCHAR", ["a", "b"]),
}  # fmt: skip


@pytest.mark.parametrize("case", JOINED)
@pytest.mark.parametrize("order", [1, -1])
def test_types_of_several_files_become_one_that_has_all_values(duck, tmp_path, case, order):
    one, other, type, values = JOINED[case]
    for name, column in zip("ab", (one, other)[::order], strict=True):
        parquet(tmp_path / f"{name}.parquet", c=column)
    assert sources.open_file(duck, tmp_path).columns == {"c": type}
    assert rows_of(duck, tmp_path) == sorted(((value,) for value in values), key=str)


REFUSED = {
    "text and integers": (pa.array([7]), pa.array(["007"]), ["BIGINT", "text"]),
    "bytes and text": (pa.array([b"\xff"]), pa.array(["a"]), ["bytes", "text"]),
    "integers and doubles": (pa.array([2**53 + 1]), pa.array([0.5]), ["BIGINT", "DOUBLE"]),
    "times": (pa.array([1], pa.timestamp("us")), pa.array([1], pa.timestamp("us", "UTC")), ["TIMESTAMP", "TIME ZONE"]),
    "nested": (pa.array([{"a": 1}]), pa.array([{"a": "x"}]), ["STRUCT(a BIGINT)", "STRUCT(a VARCHAR)"]),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("order", [1, -1])
def test_types_without_a_common_one_are_refused_if_the_column_is_read(duck, tmp_path, case, order):
    one, other, words = REFUSED[case]
    for name, column in zip("ab", (one, other)[::order], strict=True):
        parquet(tmp_path / f"{name}.parquet", c=column, id=[name])
    source = sources.open_file(duck, tmp_path)
    assert sorted(duck.rows(source.scan(["id"]))) == [("a",), ("b",)]
    with pytest.raises(ValueError, match=r"^cannot read .*the column 'c' is of ") as caught:
        source.scan(["c"])
    assert all(word in str(caught.value) for word in words)
    assert "\n" not in str(caught.value)


def test_bytes_beside_uuids_that_are_not_uuids_end_the_scan_with_one_line(duck, tmp_path):
    parquet(tmp_path / "a.parquet", id=pa.array(BYTES, pa.uuid()))
    parquet(tmp_path / "b.parquet", id=[b"17 bytes, so an ID"])
    source = sources.open_file(duck, tmp_path)
    with pytest.raises(ValueError, match=r"a value in a column of UUIDs is not a UUID") as caught:
        sources.keep(duck, source, ["id"])
    assert "\n" not in str(caught.value)


def test_uuids_bytes_and_text_of_three_files_are_text(duck, tmp_path):
    for name, column in zip(
        "abc", (pa.array(BYTES[:1], pa.uuid()), pa.array(BYTES[1:2]), pa.array(["x"])), strict=True
    ):
        parquet(tmp_path / f"{name}.parquet", id=column)
    assert rows_of(duck, tmp_path) == [(str(UUIDS[0]),), (str(UUIDS[1]),), ("x",)]


def test_moments_of_several_units_are_exact(duck, tmp_path):
    parquet(tmp_path / "a.parquet", t=pa.array([1_000], pa.timestamp("us")))
    parquet(tmp_path / "b.parquet", t=pa.array([1_000_001], pa.timestamp("ns")))
    source = sources.open_file(duck, tmp_path)
    assert source.columns == {"t": "TIMESTAMP_NS"}
    assert sorted(duck.rows(f"SELECT epoch_ns(t) FROM {source.relation}")) == [(1_000_000,), (1_000_001,)]


def test_types_that_duckdb_would_round_are_refused_if_they_are_read(duck, tmp_path):
    """DuckDB reads a decimal of 40 digits as a double. The other columns of the file are read."""
    wide = pa.array([Decimal(10) ** 39 + 1], pa.decimal256(40, 0))
    path = parquet(tmp_path / "a.parquet", id=["x"], wide=wide, nested=pa.StructArray.from_arrays([wide], ["w"]))
    source = sources.open_file(duck, path)
    assert source.readable == ["id"]
    assert duck.rows(source.scan(["id"])) == [("x",)]
    for name in ("wide", "nested"):
        with pytest.raises(ValueError, match=rf"the column '{name}' is a decimal of 40 digits: cast it to text"):
            source.scan([name])


def test_integers_of_128_bits_of_polars_are_refused_if_they_are_read(duck, tmp_path):
    """In Parquet they are bytes without a type; in an Arrow file, no other program reads any column."""
    polars = pytest.importorskip("polars")
    schema = {"id": polars.String, "account": polars.Int128}
    frame = polars.DataFrame({"id": ["x"], "account": [2**126]}, schema=schema)
    frame.write_parquet(tmp_path / "a.parquet")
    frame.write_ipc(tmp_path / "a.arrow")
    source = sources.open_file(duck, tmp_path / "a.parquet")
    assert duck.rows(source.scan(["id"])) == [("x",)]
    with pytest.raises(ValueError, match=r"the column 'account' is of Int128, .*cast it to text"):
        source.scan(["account"])
    with pytest.raises(ValueError, match=r"the column 'account' is of 128-bit integers, .*cast it to text"):
        sources.open_file(duck, tmp_path / "a.arrow")


def test_uuids_of_delta_rs_are_uuids(duck, tmp_path):
    """The type stands in the Arrow schema of the footer alone."""
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": pa.array(BYTES, pa.uuid()), "n": range(4)}))
    assert sources.open_file(duck, tmp_path / "t").columns == {"id": "UUID", "n": "BIGINT"}
    assert rows_of(duck, tmp_path / "t", ["id"]) == sorted((one,) for one in UUIDS)


def test_column_that_one_parquet_file_lacks_is_refused_if_it_is_read(duck, tmp_path):
    parquet(tmp_path / "a.parquet", offset=[1])
    parquet(tmp_path / "b.parquet", offset=[2], content=["x"])
    assert rows_of(duck, tmp_path, ["offset"]) == [(1,), (2,)]
    words = r"its files must have the same columns, got \['offset'\] and \['content', 'offset'\]"
    with pytest.raises(ValueError, match=words):
        sources.open_file(duck, tmp_path).scan(["content"])


def test_columns_have_their_exact_names(duck, tmp_path):
    """DuckDB calls the second one ``ID_1``, and an empty name by its place."""
    path = parquet(tmp_path / "a.parquet", **{"id": ["x"], "ID": ["y"], "": ["z"], "ID_1": ["w"]})
    source = sources.open_file(duck, path)
    assert [duck.rows(source.scan([name])) for name in ("id", "ID", "ID_1")] == [[("x",)], [("y",)], [("w",)]]


# --- Damaged files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 4, 100, -4])
def test_parquet_file_that_is_cut_off_is_named(duck, tmp_path, size):
    parquet(tmp_path / "a.parquet", id=IDS)
    path = parquet(tmp_path / "b.parquet", id=IDS)
    path.write_bytes(path.read_bytes()[:size])
    for each, name in ((path, ""), (tmp_path, "'b.parquet': ")):
        with pytest.raises(ValueError, match=rf"{name}it is not a Parquet file, or it is cut off$"):
            sources.open_file(duck, each)


def test_parquet_file_with_other_bytes_inside_is_one_line(duck, tmp_path):
    path = parquet(tmp_path / "a.parquet", id=[str(n) * 9 for n in range(10_000)])
    data = bytearray(path.read_bytes())
    data[4:2_000] = bytes(1_996)
    path.write_bytes(data)
    source = sources.open_file(duck, path)
    with pytest.raises(ValueError, match=r"^cannot read '.*it is damaged: ") as caught:
        sources.keep(duck, source, ["id"])
    assert "\n" not in str(caught.value)


def test_arrow_file_with_text_that_is_not_utf8_is_refused(duck, tmp_path):
    """DuckDB reads Arrow's text unchecked."""
    text = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]
    )
    with (
        pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, pa.schema([("id", pa.string())])) as writer,
    ):
        writer.write_table(pa.table({"id": text}))
    with pytest.raises(ValueError, match=r"Invalid UTF8"):
        sources.open_file(duck, tmp_path / "a.arrow")
