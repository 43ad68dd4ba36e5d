"""UUIDs in Parquet files, which Spark refuses, or reads as 16 bytes: the footers name them, and they are read as text.

The type stands in Parquet's schema, or in the Arrow schema of the footer alone, as in files of delta-rs.
"""

from __future__ import annotations

import base64
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql import types as T

from msgid.shared.arrow_schema import UUID, arrow_types
from msgid.shared.known_tables import MESSAGES
from spark_ext._filesystem import PathError, filesystem, path_of_uri
from spark_ext._private import conditions_of
from spark_ext.columns.column_types import quoted_name
from spark_ext.columns.identity import identity, uuid_of_digits

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, DataFrameReader

_UUID_LENGTH: Final = 16
_ARROW_SCHEMA: Final = re.compile(rb"ARROW:schema.{1,6}?(/////[A-Za-z0-9+/]+={0,2})", re.DOTALL)
"""The Arrow schema in a footer that PyArrow refuses. A message of Arrow begins with four bytes of ones."""
_READERS: Final = 8
"""The footers that are read at the same time: most of the time is that of a store."""


class UnreadParquet(ValueError):
    """A column of Parquet files that is not read; the error names it.

    Examples
    --------
    >>> issubclass(UnreadParquet, ValueError)
    True
    """


class _Footer(NamedTuple):
    """The columns of a file: their types of Spark, and which of them are UUIDs."""

    types: dict[str, T.DataType]
    uuids: frozenset[str]


def read_parquet(reader: DataFrameReader, files: DataFrameReader, path: str) -> DataFrame:
    """Read Parquet files; a column is text with dashes if any of the files says that it has UUIDs.

    Parameters
    ----------
    reader : DataFrameReader
        The reader of Parquet, with its options.
    files : DataFrameReader
        Another reader, which lists the files.
    path : str
        The path, as Spark reads it.

    Raises
    ------
    UnreadParquet
        If a column has UUIDs in one file and another type in another, or a type that Spark does not read.
    """
    try:
        rows = reader.parquet(path)
        _ = rows.schema  # over Connect, Spark looks for the files only now
    except Exception as error:
        if "PARQUET_TYPE_ILLEGAL" not in conditions_of(error):
            raise
        footers = _footers(files.format("binaryFile").load(path).inputFiles(), with_types=True)
        schema = T.StructType([T.StructField(name, type) for name, type in _joined(footers).items()])
        return _as_text(reader.schema(schema).parquet(path), footers)
    return with_uuids(rows)


def with_uuids(rows: DataFrame) -> DataFrame:
    """Return the rows of Parquet files with UUIDs as text, if Spark reads them as 16 bytes.

    The footers are read only if the rows have a binary column; those of the table of messages are known.
    """
    known = MESSAGES.types if MESSAGES.types.keys() <= {*rows.columns} else {}
    if not any(isinstance(field.dataType, T.BinaryType) for field in rows.schema if field.name not in known):
        return rows
    return _as_text(rows, _footers(rows.inputFiles()))


def _as_text(rows: DataFrame, footers: Iterable[_Footer]) -> DataFrame:
    uuids = frozenset().union(*(footer.uuids for footer in footers))
    names = [field.name for field in rows.schema if field.name in uuids and isinstance(field.dataType, T.BinaryType)]
    if not names:
        return rows
    return rows.withColumns({name: _uuid_text(F.col(quoted_name(name))) for name in names})


def _uuid_text(value: Column) -> Column:
    """Return the text of a UUID; of bytes of another length, in a file without the type, their identity."""
    is_uuid = F.octet_length(value) == _UUID_LENGTH
    return F.when(is_uuid, uuid_of_digits(F.hex(value))).otherwise(identity(value))


def _footers(uris: list[str], *, with_types: bool = False) -> list[_Footer]:
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(lambda uri: _footer(path_of_uri(uri), with_types=with_types), uris))


def _footer(path: str, *, with_types: bool) -> _Footer:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        files, inner = filesystem(path)
    except PathError:  # a store that only Spark can reach
        return _Footer({}, frozenset())
    with files.open_input_file(inner) as file:
        try:
            metadata = pq.read_metadata(file)
        except pa.ArrowInvalid as error:  # UUIDs of variable length, or a damaged file, which Spark will name
            size = file.size()
            length = int.from_bytes(file.read_at(4, max(0, size - 8)), "little")
            arrow = _ARROW_SCHEMA.search(file.read_at(length, size - 8 - length)) if 0 < length < size - 8 else None
            uuids = _uuids_of_arrow(None if arrow is None else arrow[1])
            if uuids and with_types:
                raise UnreadParquet(f"PyArrow does not read the types of {path}: {error}") from None
            return _Footer({}, frozenset(uuids))
    return _columns(metadata, with_types=with_types)


def _uuids_of_arrow(schema: bytes | None) -> set[str]:
    """Return the columns of UUIDs in an Arrow schema, which a footer has as base64."""
    types = {} if schema is None else arrow_types(base64.b64decode(schema))
    return {name for name, type in types.items() if type == UUID}


def _columns(metadata: Any, *, with_types: bool) -> _Footer:
    columns = [metadata.schema.column(index) for index in range(len(metadata.schema))]
    # The text of the logical type: older versions of PyArrow lack the type of UUIDs.
    uuids = {column.path for column in columns if column.logical_type.type == "UUID"}
    uuids |= _uuids_of_arrow((metadata.metadata or {}).get(b"ARROW:schema"))
    types: dict[str, T.DataType] = {}
    if with_types:
        for field in metadata.schema.to_arrow_schema():
            nested = [uuid for uuid in uuids if uuid.startswith(f"{field.name}.")]
            if nested:
                raise UnreadParquet(f"the column {nested[0]!r} is of UUIDs inside {field.type}: write text")
            types[field.name] = _spark_type(field.name, field.type)
    return _Footer(types, frozenset(uuids))


def _joined(footers: list[_Footer]) -> dict[str, T.DataType]:
    """Return the columns of all files and their types.

    Raises
    ------
    UnreadParquet
        If a column has several types.
    """
    joined: dict[str, T.DataType] = {}
    for footer in footers:
        for name, type in footer.types.items():
            if joined.setdefault(name, type) != type:
                shown = " and ".join(sorted({joined[name].simpleString(), type.simpleString()}))
                uuids = " (UUIDs)" if any(name in other.uuids for other in footers) else ""
                raise UnreadParquet(f"the column {name!r} has several types in its files: {shown}{uuids}; write text")
    return joined


_SIMPLE: Final = {
    "bool": T.BooleanType(),
    "int8": T.ByteType(),
    "int16": T.ShortType(),
    "int32": T.IntegerType(),
    "int64": T.LongType(),
    "uint8": T.ShortType(),
    "uint16": T.IntegerType(),
    "uint32": T.LongType(),
    "uint64": T.DecimalType(20, 0),
    "float": T.FloatType(),
    "double": T.DoubleType(),
    "date32[day]": T.DateType(),
    "null": T.IntegerType(),
}
"""The types that Spark infers for types of Arrow, by their names."""


def _spark_type(name: str, type: pa.DataType) -> T.DataType:
    """Return the type that Spark infers for a column of a Parquet file.

    Raises
    ------
    UnreadParquet
        If Spark does not read it.
    """
    import pyarrow as pa

    types = pa.types
    if str(type) in _SIMPLE:
        return _SIMPLE[str(type)]
    if isinstance(type, pa.BaseExtensionType):
        return _spark_type(name, type.storage_type)
    if types.is_dictionary(type):
        return _spark_type(name, type.value_type)
    if types.is_string(type) or types.is_large_string(type) or str(type) == "string_view":
        return T.StringType()
    if types.is_binary(type) or types.is_large_binary(type) or types.is_fixed_size_binary(type):
        return T.BinaryType()
    if types.is_decimal(type):
        return T.DecimalType(type.precision, type.scale)
    if types.is_timestamp(type) and type.unit != "ns":
        return T.TimestampNTZType() if type.tz is None else T.TimestampType()
    if types.is_map(type):
        return T.MapType(_spark_type(name, type.key_type), _spark_type(name, type.item_type))
    if types.is_list(type) or types.is_large_list(type):
        return T.ArrayType(_spark_type(name, type.value_type))
    if types.is_struct(type):
        return T.StructType([T.StructField(field.name, _spark_type(name, field.type)) for field in type])
    raise UnreadParquet(f"the column {name!r} is of {type} beside a column of UUIDs: cast it to another type")
