"""Tables in memory as relations of DuckDB: each carrier has the same values, and only columns in use are exported."""

import uuid
from decimal import Decimal

import pytest

duckdb = pytest.importorskip("duckdb")
np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
sources = pytest.importorskip("msgid.audit._sources")

import msgid  # noqa: E402
from msgid.audit._frames import column_names, ids_source  # noqa: E402
from msgid.audit.duck import Duck  # noqa: E402

ID = "0156F7E71C361B21BC024CCDBE00000000"
UUID = uuid.UUID(int=7)
ROWS = [(ID, 0), ("x", 1), (None, 2)]
COLUMNS = {"id": [ID, "x", None], "offset": [0, 1, 2]}


@pytest.fixture(scope="module")
def duck():
    duck = Duck()
    yield duck
    duck.close()


def rows_of(duck, table, columns=None):
    """Return the rows of the columns in use; two scans give the same rows."""
    source = sources.open_frame(duck, table, columns)
    text = source.scan(columns or source.readable)
    rows = sorted(duck.rows(text), key=lambda row: str(row[::-1]))
    assert sorted(duck.rows(text), key=lambda row: str(row[::-1])) == rows
    assert source.is_cheap
    return rows


def carriers():
    """Return functions that make a table of each kind."""
    table = pa.table(COLUMNS)
    made = {
        "arrow": lambda: table,
        "record batch": lambda: table.to_batches()[0],
        "reader": table.to_reader,
        "mapping": lambda: COLUMNS,
        "mapping of arrays": lambda: {"id": table["id"], "offset": np.arange(3)},
        "list of mappings": lambda: [dict(zip(COLUMNS, row, strict=True)) for row in ROWS],
        "relation of another connection": lambda: duckdb.connect().from_arrow(table),
    }
    for name in ("pandas", "polars"):
        made[name] = lambda name=name: pytest.importorskip(name).DataFrame(COLUMNS)
    return made


@pytest.mark.parametrize(
    "name",
    ["arrow", "record batch", "reader", "mapping", "mapping of arrays", "list of mappings",
     "relation of another connection", "pandas", "polars"],
)  # fmt: skip
def test_tables_of_all_kinds_have_the_same_rows(duck, name):
    if name in ("pandas", "polars"):
        pytest.importorskip(name)
    made = carriers()[name]
    assert column_names(made()) == ["id", "offset"]
    assert rows_of(duck, made()) == ROWS
    assert rows_of(duck, made(), ["offset"]) == [(0,), (1,), (2,)]
    with pytest.raises(ValueError, match=r"the column 'id' is not in use"):
        sources.open_frame(duck, made(), ["offset"]).scan(["id"])


ENCODED = {
    "uuid": (lambda: pa.array([UUID.bytes], pa.uuid()), UUID),
    "dictionary": (lambda: pa.array(["a"]).dictionary_encode(), "a"),
    "dictionary of uuids": (
        lambda: pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([UUID.bytes], pa.uuid())), UUID,
    ),
    "view": (lambda: pa.array(["a"], pa.string_view()), "a"),
    "runs": (lambda: pa.RunEndEncodedArray.from_arrays(pa.array([1]), pa.array(["a"])), "a"),
    "opaque": (lambda: pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "id", "ours"), pa.array(["a"])), "a"),
    "fixed bytes": (lambda: pa.array([b"ab"], pa.binary(2)), b"ab"),
    "float16": (lambda: pa.array([np.float16(1.5)], pa.float16()), 1.5),
    "wide decimal": (lambda: pa.array([Decimal(7)], pa.decimal256(38, 0)), Decimal(7)),
    "null": (lambda: pa.nulls(1), None),
}  # fmt: skip


@pytest.mark.parametrize("kind", ENCODED)
def test_encodings_of_arrow_are_values(duck, kind):
    make, value = ENCODED[kind]
    assert rows_of(duck, pa.table({"c": make()})) == [(value,)]
    assert rows_of(duck, pa.table({"c": make()}).to_reader()) == [(value,)]


def test_uuids_bytes_and_values_of_this_library_beside_text_are_text(duck):
    """A UUID is its text, an ID its canonical text; missing values of all kinds are NULL."""
    values = [UUID, ID, bytes.fromhex(ID), msgid.parse(ID), None, float("nan")]
    expected = sorted([(str(UUID),), (ID,), (ID,), (ID,), (None,), (None,)], key=str)
    for table in ({"id": values}, [{"id": value} for value in values], values, tuple(values)):
        assert sorted(rows_of(duck, table), key=str) == expected
    pandas = pytest.importorskip("pandas")
    more = [*values[:4], pandas.NA, pandas.NaT]
    for table in (pandas.DataFrame({"id": more}), pandas.Series(more), {"id": pandas.Series(more)}):
        assert sorted(rows_of(duck, table), key=str) == expected


def test_integers_beyond_64_bits_do_not_end_an_audit_of_other_columns(duck):
    """They are decimals, so that an audit can refuse them as IDs; beyond 38 digits there is not a type."""
    source = sources.open_frame(duck, {"offset": [0, 1], "id": [10**33, None], "wide": [10**39, 1]})
    assert source.columns["id"] == "DECIMAL(38,0)"
    assert sorted(duck.rows(source.scan(["offset"]))) == [(0,), (1,)]
    with pytest.raises(ValueError, match=r"the column 'wide' has integers of more than 38 digits: cast it to text"):
        source.scan(["wide"])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1.5, "x"], "has values of several types, float and str"),
        (["\ud800"], "has text with half of a surrogate pair"),
        ([object()], "cannot be a column of Arrow"),
    ],
)
def test_column_that_arrow_does_not_have_is_refused_only_if_it_is_read(duck, values, reason):
    source = sources.open_frame(duck, {"offset": range(len(values)), "c": values})
    assert source.readable == ["offset"]
    assert len(duck.rows(source.scan(["offset"]))) == len(values)
    with pytest.raises(ValueError, match=rf"the column 'c' {reason}"):
        source.scan(["c"])


def test_columns_of_polars_that_are_not_arrow_are_refused_only_if_they_are_read(duck):
    """Objects would be addresses in memory, and integers of 128 bits end the export of all columns."""
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"o": [UUID], "i": [2**126], "n": [1]}, schema_overrides={"i": polars.Int128})
    assert rows_of(duck, frame) == [(1,)]
    for name, kind in (("o", "Object"), ("i", "Int128")):
        for table in (frame, {name: frame[name], "n": [1]}):
            with pytest.raises(
                ValueError, match=rf"the column '{name}' is of the type {kind}.* of Polars: cast it to text"
            ):
                sources.open_frame(duck, table).scan([name])
    with pytest.raises(TypeError, match=r"collect it"):
        sources.open_frame(duck, frame.lazy())


def test_integers_of_128_bits_of_a_relation_are_refused_only_if_they_are_read(duck):
    """DuckDB exports the largest one as -1."""
    relation = duckdb.connect().sql("SELECT 'x' AS id, 1::UHUGEINT AS wide")
    assert rows_of(duck, relation, ["id"]) == [("x",)]
    with pytest.raises(ValueError, match=r"the column 'wide' is of UHUGEINT: cast it to text"):
        sources.open_frame(duck, relation).scan(["wide"])


@pytest.mark.parametrize(
    "ids",
    [
        [ID, "x"], (ID, "x"), np.array([ID, "x"]), np.array([ID.encode(), b"x"], object), pa.array([ID, "x"]),
        pa.chunked_array([[ID], ["x"]]),
    ],
    ids=lambda ids: type(ids).__name__,
)  # fmt: skip
def test_ids_alone_are_the_column_id(duck, ids):
    for source in (sources.open_frame(duck, ids), ids_source(duck, ids)):
        rows = [id.decode() if isinstance(id, bytes) else id for (id,) in duck.rows(source.scan(["id"]))]
        assert sorted(rows) == [ID, "x"]


def test_rows_of_bytes_and_masks_of_numpy_are_read(duck):
    raw = np.frombuffer(bytes.fromhex(ID) * 2, np.uint8).reshape(2, 17)
    assert rows_of(duck, raw) == [(bytes.fromhex(ID),)] * 2
    masked = np.ma.masked_array([1, 2, 3], [0, 1, 0])
    assert sorted(rows_of(duck, {"n": masked}), key=str) == [(1,), (3,), (None,)]


def test_frames_are_refused_in_place_of_ids(duck):
    for table in (pa.table(COLUMNS), COLUMNS):
        with pytest.raises(TypeError, match=r"ids must be IDs, got a table .*: pass its column of IDs"):
            ids_source(duck, table)
    with pytest.raises(TypeError, match=r"a column must have values, got a table"):
        sources.open_frame(duck, {"id": pa.table(COLUMNS)})
    for ids in (ID, b"x", 5):
        with pytest.raises(TypeError, match=r"ids must be an iterable of texts or bytes, or an array"):
            ids_source(duck, ids)


@pytest.mark.parametrize("table", ["a.csv", b"x", 5, None, object()])
def test_value_that_is_not_a_table_is_refused(duck, table):
    with pytest.raises(TypeError, match=r"table must be a table of Arrow, pandas or polars, got"):
        sources.open_frame(duck, table)


def test_columns_of_other_lengths_are_refused(duck):
    with pytest.raises(ValueError, match=r"its columns must have one length, got 'a' 2, 'b' 1"):
        sources.open_frame(duck, {"a": [1, 2], "b": [1]})


def test_names_that_repeat_or_differ_in_case_are_refused_only_if_they_are_read(duck):
    table = pa.table([[1], [2], [3], [4]], names=["id", "ID", "n", "n"])
    source = sources.open_frame(duck, table)
    assert [duck.rows(source.scan([name])) for name in ("id", "ID")] == [[(1,)], [(2,)]]
    for names, reason in ((["id", "ID"], "differ in case only"), (["n"], "it has several columns 'n'")):
        with pytest.raises(ValueError, match=reason):
            source.scan(names)


def test_empty_tables_have_no_rows(duck):
    for table in ({}, [], pa.table({"id": pa.array([], pa.string())}), {"id": []}):
        source = sources.open_frame(duck, table)
        assert duck.rows(source.scan(source.readable)) == []
