"""Every carrier of a column of IDs in every function of Python and in files: the same IDs, or a refusal with a cure."""

import inspect
import uuid
from importlib.util import find_spec

import pytest
from helpers import carriers
from helpers.carriers import DIGITS, REFUSED, SAME, UUID, V0, V1, Carrier, is_refusal

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
audit = pytest.importorskip("msgid.audit")
pytest.importorskip("duckdb")

import msgid  # noqa: E402

MIXED = (V1, V0, UUID, V1.lower(), "order 7")
RAW = [bytes.fromhex(V1), bytes.fromhex(V0), bytes.fromhex(V1)]
UUIDS = [uuid.UUID(UUID), uuid.UUID(int=7), uuid.UUID(UUID)]
NUMBERS = (DIGITS, DIGITS[:-1] + "8")


def package(name):
    return pytest.importorskip(name)


def column(name, ids, make):
    return Carrier(name, tuple(map(str, ids)), make)


def of_arrow(name, ids, make):
    """Return a carrier that files hold too."""
    return column(f"PyArrow {name}", ids, make)


def object_array(values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


class OwnUuid(pa.ExtensionType):
    """A type of UUIDs as programs made them before Arrow had one."""

    def __init__(self, storage=None):
        super().__init__(storage or pa.binary(16), "my_package.uuid")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls(storage_type)


RAW_IDS = (V1, V0, V1)
COLUMNS = [
    column("list of text", MIXED, lambda: list(MIXED)),
    column("list of bytes", RAW_IDS, lambda: list(RAW)),
    column("list of `MessageId`", RAW_IDS, lambda: [msgid.parse(one) for one in RAW_IDS]),
    column("list of `uuid.UUID`", UUIDS, lambda: list(UUIDS)),
    column("list of `uuid.UUID` and text", (*UUIDS, V1), lambda: [*UUIDS, V1]),
    column("NumPy text (U)", MIXED, lambda: np.array(MIXED)),
    column("NumPy text (S)", MIXED, lambda: np.array(MIXED, "S")),
    column("NumPy text (StringDType)", MIXED, lambda: np.array(MIXED, np.dtypes.StringDType())),
    column("NumPy bytes (S)", RAW_IDS, lambda: np.array(RAW, "S17")),
    column("NumPy bytes (V)", (V1, V1), lambda: np.array([RAW[0], RAW[0]], "V17")),
    column("NumPy uint8, a row per ID", (V1, V1), lambda: np.frombuffer(RAW[0] * 2, np.uint8).reshape(2, 17)),
    column("NumPy objects", (*UUIDS, V1), lambda: object_array([*UUIDS, V1])),
    of_arrow("string", MIXED, lambda: pa.array(MIXED)),
    of_arrow("large_string", MIXED, lambda: pa.array(MIXED, pa.large_string())),
    of_arrow("string_view", MIXED, lambda: pa.array(MIXED, pa.string_view())),
    of_arrow("dictionary of text", MIXED, lambda: pa.array(MIXED).dictionary_encode()),
    of_arrow("run-end encoded text", MIXED, lambda: pa.compute.run_end_encode(pa.array(MIXED))),
    of_arrow("part of run-end encoded text", (V0, V0, UUID), lambda: pa.compute.run_end_encode(
        pa.array([V1, V1, V0, V0, UUID, UUID]))[2:5]),
    of_arrow("run-end encoded dictionary", (V1, V1, V0), lambda: pa.RunEndEncodedArray.from_arrays(
        pa.array([2, 3]), pa.array([V1, V0]).dictionary_encode())),
    of_arrow("text in an extension type", MIXED,
             lambda: pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "id", "ours"), pa.array(MIXED))),
    of_arrow("binary", RAW_IDS, lambda: pa.array(RAW)),
    of_arrow("large_binary", RAW_IDS, lambda: pa.array(RAW, pa.large_binary())),
    of_arrow("binary_view", RAW_IDS, lambda: pa.array(RAW, pa.binary_view())),
    of_arrow("fixed_size_binary(17)", (V1, V1), lambda: pa.array([RAW[0]] * 2, pa.binary(17))),
    of_arrow("fixed_size_binary(16)", (V0, V0), lambda: pa.array([RAW[1]] * 2, pa.binary(16))),
    of_arrow("uuid", UUIDS, lambda: pa.array([one.bytes for one in UUIDS], pa.uuid())),
    of_arrow("dictionary of uuid", UUIDS, lambda: pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 0]), pa.array([one.bytes for one in UUIDS[:2]], pa.uuid()))),
    of_arrow("extension type named `my_package.uuid`", UUIDS, lambda: pa.ExtensionArray.from_storage(
        OwnUuid(), pa.array([one.bytes for one in UUIDS], pa.binary(16)))),
    of_arrow("`my_package.uuid` over bytes of any length", UUIDS, lambda: pa.ExtensionArray.from_storage(
        OwnUuid(pa.binary()), pa.array([one.bytes for one in UUIDS], pa.binary()))),
    of_arrow("chunked uuid", UUIDS, lambda: pa.chunked_array([pa.array([one.bytes], pa.uuid()) for one in UUIDS])),
    of_arrow("int64", NUMBERS, lambda: pa.array([1, 2])),
    of_arrow("decimal128", NUMBERS, lambda: pa.array([*map(int, NUMBERS)], pa.decimal128(38))),
    of_arrow("double", NUMBERS, lambda: pa.array([*map(float, NUMBERS)])),
    of_arrow("bool8", (V1,), lambda: pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8()))),
    of_arrow("list", (V1,), lambda: pa.array([[V1]])),
    of_arrow("struct", (V1,), lambda: pa.array([{"id": V1}])),
    column("pandas object", (*UUIDS, V1), lambda: package("pandas").Series([*UUIDS, V1], dtype=object)),
    column("pandas string", MIXED, lambda: package("pandas").Series(MIXED, dtype="string")),
    column("pandas string[pyarrow]", MIXED, lambda: package("pandas").Series(MIXED, dtype="string[pyarrow]")),
    column("pandas category", MIXED, lambda: package("pandas").Series(MIXED, dtype="category")),
    column("pandas of Arrow's uuid", UUIDS, lambda: package("pandas").Series(
        package("pandas").arrays.ArrowExtensionArray(pa.array([one.bytes for one in UUIDS], pa.uuid())))),
    column("pandas float64", NUMBERS, lambda: package("pandas").Series([*map(float, NUMBERS)])),
    column("Polars String", MIXED, lambda: package("polars").Series(MIXED)),
    column("Polars Categorical", MIXED, lambda: package("polars").Series(MIXED, dtype=package("polars").Categorical)),
    column("Polars Binary", RAW_IDS, lambda: package("polars").Series(RAW)),
    column("Polars Object", UUIDS, lambda: package("polars").Series(UUIDS, dtype=package("polars").Object)),
    column("Polars Int128", NUMBERS, lambda: package("polars").Series([1], dtype=package("polars").Int128)),
    column("Polars Float64", NUMBERS, lambda: package("polars").Series([*map(float, NUMBERS)])),
]  # fmt: skip
"""A carrier is one line."""


def table_of(ids):
    """Return a table with a column of IDs."""
    return {"id": ids}


def digest(ids):
    return audit.digest({"id": ids, "offset": range(len(ids))}).to_pylist()


def file_of(folder, ids, write):
    """Return the report of a file with a column of IDs, if the format has the type."""
    if not isinstance(ids, pa.Array | pa.ChunkedArray):
        pytest.skip("Arrow writes columns of its own alone")
    if pa.types.is_dictionary(ids.type) and isinstance(ids.type.value_type, pa.BaseExtensionType):
        pytest.skip("PyArrow 26 writes a Parquet file without rows, and no error")
    path = folder / "ids"
    try:
        write(pa.table({"id": ids}), path)
    except (pa.ArrowException, TypeError) as error:
        pytest.skip(f"the format does not have the type: {error}")
    return path


def audited(path, format):
    return audit.audit_file(path, format=format).to_json()


def write_arrow(table, path):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


ENTRIES = {
    "parse_batch": lambda ids, folder: [column.tolist() for column in msgid.parse_batch(ids)],
    "audit_ids": lambda ids, folder: audit.audit_ids(ids).to_json(),
    "audit_table": lambda ids, folder: audit.audit_table(table_of(ids)).to_json(),
    "compare": lambda ids, folder: audit.compare(table_of(ids), {"id": [V1, UUID]}, id="id").to_json(),
    "digest": lambda ids, folder: digest(ids),
    "doctor": lambda ids, folder: audit.doctor(ids).to_json(),
    "Parquet file": lambda ids, folder: audited(file_of(folder, ids, pq.write_table), "parquet"),
    "Arrow file": lambda ids, folder: audited(file_of(folder, ids, write_arrow), "arrow"),
}
"""An entry point is one line."""
QUICK = ("parse_batch", "audit_table", "doctor")
"""The entry points whose cells the default tests check."""

NAME = "Columns in Python and files"


def cell(entry, carrier, folder):
    """Return the cell of a pair, from the functions themselves."""
    try:
        found = ENTRIES[entry](carrier.make(), folder)
    except (TypeError, ValueError) as error:
        return REFUSED if is_refusal(error) else f"{carrier.name} in {entry}: {error}"
    except pytest.skip.Exception:
        return "-"
    if "file" in entry:
        expected = ENTRIES["audit_table"](list(carrier.ids), folder)
    else:
        expected = ENTRIES[entry](list(carrier.ids), folder)
    return SAME if found == expected else f"{carrier.name} in {entry} has other IDs"


def check_page(entries, request, folder):
    cells = {carrier.name: {entry: cell(entry, carrier, folder) for entry in entries} for carrier in COLUMNS}
    carriers.check(NAME, cells, request)


def test_each_carrier_in_the_quick_functions_is_as_the_page_says(request, tmp_path):
    """Run `pytest tests/unit/test_carriers.py -m "" --update-golden` to write the page."""
    for name in ("pandas", "polars"):
        package(name)
    if not request.config.getoption("--update-golden"):
        check_page(QUICK, request, tmp_path)


@pytest.mark.variants
def test_each_carrier_in_each_function_is_as_the_page_says(request, tmp_path):
    for name in ("pandas", "polars"):
        package(name)
    check_page(tuple(ENTRIES), request, tmp_path)


def test_a_comparison_of_uuids_with_their_bare_bytes_names_the_cause():
    """Polars reads UUIDs of Parquet as bytes, which are IDs of version 0."""
    found = audit.compare(UUIDS, {"id": [one.bytes for one in UUIDS]}).findings
    assert ["16 bytes or 32 digits" in one.meaning for one in found if one.check == "lost_messages"] == [True]
    apart = audit.compare(UUIDS, [V1, V0]).findings
    assert ["16 bytes" in one.meaning for one in apart if one.check == "lost_messages"] == [False]


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (lambda: np.frombuffer(RAW[0] * 2, np.int8).reshape(2, 17), "is an array of int8 with 2 dimensions: pass one"),
        (lambda: np.array([[V1], [V0]]), "is an array of <U34 with 2 dimensions: pass one of its columns"),
        (lambda: [1j, 2j], "cannot be a column of Arrow: .*; cast it to text"),
        (lambda: [UUIDS[0], 1.5], "has values of several types, float and str: pass one type"),
        (lambda: pa.ExtensionArray.from_storage(OwnUuid(pa.binary()), pa.array([b"x"])), "is of UUIDs, and some have"),
    ],
)
def test_column_that_is_not_read_is_one_line_with_its_name(column, says):
    with pytest.raises(ValueError, match=f"'id' {says}") as error:
        audit.audit_table({"id": column(), "offset": [0, 1][: len(column())]}, id="id")
    assert "\n" not in str(error.value)


def test_runs_of_a_type_of_uuids_of_a_program_are_uuids():
    """PyArrow drops the name of such a type when it reads a file, so files are not in the table of carriers."""
    values = pa.ExtensionArray.from_storage(OwnUuid(), pa.array([one.bytes for one in UUIDS[:2]], pa.binary(16)))
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3]), values)
    expected = [str(UUIDS[0]), str(UUIDS[0]), str(UUIDS[1])]
    for ids in (runs, pa.chunked_array([runs])):
        assert audit.audit_ids(ids).to_json() == audit.audit_ids(expected).to_json()
    assert audit.audit_ids(runs.slice(1, 2)).to_json() == audit.audit_ids(expected[1:]).to_json()


@pytest.mark.parametrize("function", [audit.audit_ids, audit.doctor, msgid.parse_batch])
def test_an_array_without_a_dimension_is_one_value(function):
    """It can be iterated as text, and its characters are not IDs."""
    with pytest.raises(TypeError, match="ids must be an iterable of texts or bytes, or an array, got array"):
        function(np.array(V1))


# --- Functions that take an ID ---

TAKERS = {
    "parse_batch": "parse_batch", "audit_ids": "audit_ids", "audit_table": "audit_table", "compare": "compare",
    "digest": "digest", "doctor": "doctor", "audit_file": "Parquet file",
}  # fmt: skip
"""The functions that take a column of IDs, and their entry points."""
OF_VALUES = {
    "parse", "is_valid", "translate_v0", "derive_id", "pseudonymize", "MessageId", "BrokerOffsetId", "ClientUniqueId",
    "Message", "message_id", "id_text", "identity", "trace",
}  # fmt: skip
"""The functions that take a single value, whose forms `ids/test_accepted.py` and `audit/test_trace.py` have."""
NO_TAKERS = {"dumps", "loads"}
TAKEN = {"id", "ids", "value", "parent", "table", "sent", "path", "raw"}


def public_functions():
    """Return the public functions of the packages of IDs, audits and handlers that have a parameter with IDs."""
    import msgid.processing

    for module in (msgid, audit, msgid.processing):
        for name in module.__all__:
            one = getattr(module, name)
            if not callable(one) or name[0].isupper():
                continue
            if TAKEN & inspect.signature(one).parameters.keys():
                yield name


def test_each_public_function_that_takes_ids_is_an_entry_point():
    """A new function fails here until the lists have it."""
    names = set(public_functions())
    assert names - TAKERS.keys() - OF_VALUES - NO_TAKERS == set()
    assert set(TAKERS.values()) <= ENTRIES.keys()


FRAMES = {
    "mapping": lambda: {"id": [*MIXED]},
    "list of mappings": lambda: [{"id": one} for one in MIXED],
    "PyArrow table": lambda: pa.table({"id": MIXED}),
    "PyArrow reader": lambda: pa.table({"id": MIXED}).to_reader(),
    "pandas": lambda: package("pandas").DataFrame({"id": MIXED}),
    "Polars": lambda: package("polars").DataFrame({"id": MIXED}),
    "DuckDB": lambda: package("duckdb").connect().sql(f"SELECT unnest({list(MIXED)}) AS id"),
}
if find_spec("ibis"):  # no extra installs it
    FRAMES["Ibis"] = lambda: package("ibis").memtable({"id": [*MIXED]})


@pytest.mark.parametrize("name", FRAMES)
def test_each_frame_is_a_table_and_not_a_column_of_ids(name):
    """Its names and its columns are not IDs."""
    assert audit.audit_table(FRAMES[name]()).to_json() == audit.audit_ids(MIXED).to_json()
    for function in (msgid.parse_batch, audit.audit_ids, audit.doctor):
        with pytest.raises(TypeError, match=r"ids must be IDs, got a table of type .*: pass its column of IDs"):
            function(FRAMES[name]())
