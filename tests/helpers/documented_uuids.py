"""The examples of UUIDs in the documentation of DuckDB, Polars and PyArrow, as tables with a column of them.

An example is one entry: the page, the table, all but one of its rows, and the function that writes it to a file.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import uuid4


class Example(NamedTuple):
    """A table of a documentation."""

    rows: int
    whole: object
    rest: object
    """All rows but the first one."""
    write: object
    """Writes the table to a path of a Parquet file."""


def _duckdb(query):
    """Return the rows of a query, whose random values stay the same."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE ids AS {query}")
    whole = connection.table("ids")
    return Example(len(whole.fetchall()), whole, whole.limit(100, offset=1), whole.write_parquet)


def utility_functions(call):
    """DuckDB, "Utility Functions": ``uuid()``, ``gen_random_uuid()``, ``uuidv4()`` and ``uuidv7()``."""
    return _duckdb(f"SELECT {call} AS id FROM range(4)")


def shown_values():
    """DuckDB, "Utility Functions": the UUIDs that the page shows."""
    texts = "'eeccb8c5-9943-b2bb-bb5e-222f4e14b687', '81964ebe-00b1-7e1d-b0f9-43c29b6fb8f5'"
    return _duckdb(f"SELECT unnest([{texts}]::UUID[]) AS id")


def selectors_object():
    """Polars, `polars.selectors.object`: the column of texts; that of objects is beside it."""
    import polars as pl

    df = pl.DataFrame(
        {
            "idx": [0, 1],
            "uuid_obj": [uuid4(), uuid4()],
            "id": [str(uuid4()), str(uuid4())],
        },
        schema_overrides={"idx": pl.Int32},
    )
    return Example(2, df, df[1:], df.drop("uuid_obj").write_parquet)


def _arrow(array):
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"id": array})
    return Example(4, table, table.slice(1), lambda path: parquet.write_table(table, path))


def extending_pyarrow():
    """PyArrow, "Extending PyArrow" up to version 15: a type of UUIDs of a package."""
    import pyarrow as pa

    class UuidType(pa.ExtensionType):
        def __init__(self):
            super().__init__(pa.binary(16), "my_package.uuid")

        def __arrow_ext_serialize__(self):
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage_type, serialized):
            return UuidType()

    storage_array = pa.array([uuid4().bytes for _ in range(4)], pa.binary(16))
    return _arrow(pa.ExtensionArray.from_storage(UuidType(), storage_array))


def canonical_type():
    """Arrow, "Canonical Extension Types", UUID: the type of PyArrow over 16 bytes."""
    import pyarrow as pa

    return _arrow(pa.uuid().wrap_array(pa.array([uuid4().bytes for _ in range(4)], pa.binary(16))))


EXAMPLES = {
    **{
        f"DuckDB {call}": lambda call=call: utility_functions(call)
        for call in ("uuid()", "gen_random_uuid()", "uuidv4()", "uuidv7()")
    },
    "DuckDB shown values": shown_values,
    "Polars selectors.object": selectors_object,
    "PyArrow Extending PyArrow": extending_pyarrow,
    "Arrow Canonical Extension Types": canonical_type,
}
