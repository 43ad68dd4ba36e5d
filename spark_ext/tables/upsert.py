"""Insert rows keyed by ID into PostgreSQL from the executors; a replay or a retried task changes nothing."""

from __future__ import annotations

import io
import re
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.errors import PythonException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from msgid._retrying import retry
from msgid._validate import to_install
from spark_ext._arguments import check_dataframe
from spark_ext._private import python_error_in, use_own_python
from spark_ext._shipping import shipped
from spark_ext.columns._expressions import quoted_name
from spark_ext.columns._identity import identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

_DELAYS: Final = (0.4, 0.8, 1.6, 3.2)
"""Seconds before each further attempt to connect."""
_NAME_LENGTH: Final = 63
_COUNTS: Final = "inserted bigint, present bigint, conflicts bigint"
_NESTED: Final = (T.ArrayType, T.MapType, T.StructType)
_TYPES: Final[tuple[tuple[Any, str], ...]] = (
    (T.StringType, "text"),
    (T.LongType, "bigint"),
    (T.IntegerType, "integer"),
    (T.ShortType, "smallint"),
    (T.ByteType, "smallint"),
    (T.BooleanType, "boolean"),
    (T.DoubleType, "double precision"),
    (T.FloatType, "real"),
    (T.BinaryType, "bytea"),
    (T.DateType, "date"),
    (T.TimestampType, "timestamp with time zone"),
    (T.TimestampNTZType, "timestamp without time zone"),
    (_NESTED, "jsonb"),
)
_AS_JSON: Final = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Spark's own format has milliseconds in the session's time zone."""
_WRITTEN_ALIKE: Final = "SET LOCAL TimeZone = 'UTC'; SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 1"
"""PostgreSQL writes a row as the same JSON for any settings of the server and the role."""
_STORE: Final = (
    "INSERT INTO {table} ({columns}) SELECT {columns} FROM {staged} ORDER BY {key} ON CONFLICT ({key}) DO NOTHING"
)
"""The rows in the order of the key, so that two transactions do not wait for each other in a circle."""
_DIFFERS: Final = (
    "SELECT EXISTS (SELECT FROM {staged} msgid_new LEFT JOIN {table} msgid_held "
    "ON msgid_held.{key} = msgid_new.{key} WHERE ROW({ours}) IS DISTINCT FROM ROW({theirs}))"
)
_COMPARE: Final = (
    "WITH compared AS (SELECT msgid_new, (msgid_new).{key} AS key, "
    "msgid_held.xmin::text::bigint = txid_current() % 4294967296 AS fresh, "
    "ROW({ours}) IS DISTINCT FROM ROW({theirs}) AS differs "
    "FROM {staged} msgid_new LEFT JOIN {table} msgid_held ON msgid_held.{key} = msgid_new.{key}), "
    "other AS (SELECT key::text AS key, to_jsonb(msgid_new)::text AS row FROM compared WHERE differs), "
    "kept AS (INSERT INTO {side} (fingerprint, key, row, reason) SELECT DISTINCT ON (1) md5(row), key, row, "
    "'another content under this key' FROM other ORDER BY 1 ON CONFLICT DO NOTHING) "
    "SELECT count(*) FILTER (WHERE differs), count(DISTINCT key) FILTER (WHERE fresh AND NOT differs), "
    "count(*) FILTER (WHERE differs AND fresh IS NULL) FROM compared"
)
"""Keep the rows with other content aside; count them, the inserted keys that hold a row as it was sent, and the rows
whose key the table does not have."""


class PostgresError(RuntimeError):
    """The database cannot be reached, or rejects the table; the message does not show the password.

    Examples
    --------
    >>> df = spark.createDataFrame([("a", 1)], ["id", "n"])
    >>> try:
    ...     upsert_postgres(df, "host=127.0.0.1 port=1 password=secret", "orders")
    ... except PostgresError as error:
    ...     print("secret" in str(error))
    False
    """


_SAID: Final = rf"(?m)^{re.escape(f'{PostgresError.__module__}.{PostgresError.__qualname__}')}: (.+)$"
"""The error of an executor in the traceback that Spark's error has."""


class Upserted(NamedTuple):
    """Return value of `upsert_postgres`: the numbers of rows.

    Examples
    --------
    >>> Upserted(inserted=3, present=1, conflicts=0)
    Upserted(inserted=3, present=1, conflicts=0)
    """

    inserted: int
    present: int
    """Rows that existed with equal content, including rows of a task that was retried after its commit."""
    conflicts: int
    """Rows in the side table: other content under an existing key."""


def upsert_postgres(
    batch_df: DataFrame, conninfo: str, table: str | tuple[str, str], key: str = "id", *, key_is_id: bool = True
) -> Upserted:
    """Insert rows into a PostgreSQL table, each key once; a row with an existing key is not changed.

    Each partition is one transaction of an executor: the rows are copied to a temporary table and inserted with ``ON
    CONFLICT DO NOTHING``. A replayed batch, a retried task or a second driver changes nothing.

    A row with an existing key and other content is a conflict. It is stored in the table ``<table>_conflicts`` once,
    with its key, the row as JSON, the reason and the time.

    If PostgreSQL refuses a row, for example by a constraint or for a NUL character in a text, the call ends with its
    error, and no row of the row's partition is written. Rows of other partitions may be stored: repeat the batch after
    the cause is gone. Spark repeats a task that has lost its connection, as often as ``spark.task.maxFailures`` says.

    A missing table is created, with the key as its primary key; nested columns become ``jsonb``. An existing table
    must have these columns, of these types, and a unique index on the key that is not deferrable; the key must be NOT
    NULL. A trigger must not change or drop the rows of an insert.

    IDs are compared by value, never by spelling. A key of text or bytes is therefore stored in its canonical form: an
    ID of version 0 or 1 as `translate_v0` and upper case write it, a UUID with dashes in lower case, any other value as
    it is. Rows that another program has inserted must have their keys in that form, too.

    Parameters
    ----------
    batch_df : DataFrame
        the rows.
    conninfo : str
        connection string, as for `psycopg.connect`. It is not printed, but it is part of the tasks that executors run.
        Use a password file or a service file on the executors to keep the password out of it.
    table : str or tuple of str
        the table's name, ``table`` or ``schema.table``; a tuple (schema, table) if a name has a dot.
    key : str
        the column of the key.
    key_is_id : bool
        whether the key is an ID. If False, keys are stored and compared unchanged: 32 hex digits, for example, are not
        read as an ID of version 0.

    Returns
    -------
    Upserted
        numbers of inserted rows, of existing rows, and of conflicts.

    Raises
    ------
    PostgresError
        if the database cannot be reached, or refuses the table or a row.
    ValueError
        if an argument is not allowed, or a column has a type that PostgreSQL lacks.
    ImportError
        if the package `psycopg` is missing (extra ``postgres``).

    Examples
    --------
    >>> def write(batch_df, batch_id):
    ...     upsert_postgres(batch_df, "host=db dbname=shop", "orders")
    >>> query = orders.writeStream.foreachBatch(write).start()  # doctest: +SKIP
    """
    check_dataframe(batch_df, "batch_df")
    parts = tuple(table.split(".")) if isinstance(table, str) else tuple(table)
    if len(parts) not in (1, 2) or not all(parts):
        raise ValueError(f"table must be a name or a schema and a name, got {table!r}")
    for name in (*parts[:-1], f"{parts[-1]}_conflicts", *batch_df.columns):
        if len(name.encode()) > _NAME_LENGTH:
            raise ValueError(f"a name in PostgreSQL must have at most {_NAME_LENGTH} bytes of UTF-8, got {name!r}")
    if key not in batch_df.columns:
        raise ValueError(f"key must be one of the columns {', '.join(batch_df.columns)}, got {key!r}")
    target = _Target(conninfo, parts, key, _column_types(batch_df.schema))
    if key_is_id:
        batch_df = _with_canonical_key(batch_df, key)
    use_own_python(batch_df.sparkSession)
    _transact(target, lambda connection: _prepare(connection, target))

    def insert(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        counts = _insert(target, batches)
        yield pa.RecordBatch.from_pylist([counts._asdict()], pa.schema([(name, pa.int64()) for name in counts._fields]))

    try:
        counts = _with_json(batch_df).mapInArrow(shipped(insert), _COUNTS).collect()
    except PythonException as error:
        said = python_error_in(error, _SAID)
        if said is None:
            raise
        raise PostgresError(said) from error
    return Upserted(*(sum(row[place] for row in counts) for place in range(3)))


def _column_types(schema: T.StructType) -> dict[str, str]:
    """Return the PostgreSQL type of each column.

    Raises
    ------
    ValueError
        if PostgreSQL lacks a type, or JSON cannot hold the keys of a map.

    Examples
    --------
    >>> _column_types(T.StructType.fromDDL("id string, amount decimal(10, 2), tags array<string>"))
    {'id': 'text', 'amount': 'numeric(10,2)', 'tags': 'jsonb'}
    """
    types: dict[str, str] = {}
    for field in schema:
        if isinstance(field.dataType, T.DecimalType):
            types[field.name] = f"numeric({field.dataType.precision},{field.dataType.scale})"
            continue
        found = [name for kinds, name in _TYPES if isinstance(field.dataType, kinds)]
        if not found or _has_odd_keys(field.dataType):
            raise ValueError(
                f"cannot store column {field.name!r} in PostgreSQL: it lacks the type "
                f"{field.dataType.simpleString()}; cast it, for example to string"
            )
        types[field.name] = found[0]
    return types


def _has_odd_keys(type: T.DataType) -> bool:
    """Return whether a nested type has a map whose keys Spark does not write to JSON as their values."""
    if isinstance(type, T.ArrayType):
        return _has_odd_keys(type.elementType)
    if isinstance(type, T.MapType):
        return isinstance(type.keyType, (T.BinaryType, *_NESTED)) or _has_odd_keys(type.valueType)
    return isinstance(type, T.StructType) and any(_has_odd_keys(field.dataType) for field in type)


def _with_canonical_key(df: DataFrame, key: str) -> DataFrame:
    """Return the rows with the key in its canonical form if it is text or binary: one spelling per ID."""
    column, type = F.col(quoted_name(key)), df.schema[key].dataType
    if isinstance(type, T.StringType):
        return df.withColumn(key, F.coalesce(identity(column), column.cast("string")))
    if isinstance(type, T.BinaryType):
        text = identity(column)  # the hex digits of an ID, or 0x and the hex digits of other bytes
        return df.withColumn(key, F.when(text.startswith("0x"), column).otherwise(F.coalesce(F.unhex(text), column)))
    return df


def _with_json(df: DataFrame) -> DataFrame:
    """Return the rows with nested values as JSON, and times as microseconds, which do not depend on a time zone.

    The columns are named by their positions, because `mapInArrow` does not accept a name with a dot.
    """
    columns = []
    for place, field in enumerate(df.schema):
        column = F.col(quoted_name(field.name))
        if isinstance(field.dataType, _NESTED):
            column = F.to_json(column, _AS_JSON)
        elif isinstance(field.dataType, T.TimestampType):
            column = F.unix_micros(column)
        columns.append(column.alias(f"c{place}"))
    return df.select(*columns)


class _Target(NamedTuple):
    """The table and its connection. ``repr`` leaves out the connection string, which may hold a password."""

    conninfo: str
    table: tuple[str, ...]
    key: str
    types: dict[str, str]

    def __repr__(self) -> str:
        return f"_Target({'.'.join(self.table)})"

    def error(self, reason: str) -> PostgresError:
        return PostgresError(f"cannot write to table {'.'.join(self.table)}: {' '.join(reason.split())}")


def _transact(target: _Target, work: Callable[[Any], Any]) -> Any:
    """Run one transaction; errors show neither the connection string nor its password."""
    try:
        import psycopg
    except ImportError:
        message = f"upsert_postgres needs psycopg, on the executors too: {to_install('postgres')}"
        raise ImportError(message, name="psycopg") from None

    def connect() -> Any:
        # SQL_ASCII would give bytes for text. A prepared statement would stay on a connection of a pool.
        return psycopg.connect(target.conninfo, client_encoding="utf8", prepare_threshold=None)

    try:
        connection = retry(connect, lambda error: isinstance(error, psycopg.OperationalError), _DELAYS)
    except psycopg.OperationalError as error:
        raise target.error(str(error)) from None
    except psycopg.ProgrammingError:
        raise ValueError(
            "conninfo must be a connection string of PostgreSQL (not shown: it may hold a password)"
        ) from None
    try:
        with connection:
            return work(connection)
    except psycopg.Error as error:
        raise target.error(error.diag.message_primary or str(error) or type(error).__name__) from None


def _names(target: _Target) -> dict[str, Any]:
    from psycopg import sql

    *schema, name = target.table
    columns = [sql.Identifier(column) for column in target.types]
    return {
        "table": sql.Identifier(*target.table),
        "side": sql.Identifier(*schema, f"{name}_conflicts"),
        "staged": sql.Identifier("pg_temp", "msgid_staged"),
        "key": sql.Identifier(target.key),
        "columns": sql.SQL(", ").join(columns),
        "ours": sql.SQL(", ").join(sql.SQL("msgid_new.{}").format(column) for column in columns),
        "theirs": sql.SQL(", ").join(sql.SQL("msgid_held.{}").format(column) for column in columns),
    }


def _run(connection: Any, statement: str, names: dict[str, Any]) -> Any:
    """Run a statement with names in ``{}``."""
    from psycopg import sql

    return connection.execute(sql.SQL(statement).format(**names))


def _prepare(connection: Any, target: _Target) -> None:
    """Create missing tables, and check an existing table."""
    from psycopg import sql

    names = _names(target)
    # Two drivers that create one table at once wait for each other.
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('msgid'), hashtext(%s))", [".".join(target.table)])
    if connection.execute("SELECT to_regclass(%s)", [names["table"].as_string(connection)]).fetchone()[0] is None:
        names["definitions"] = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(type))  # a type from `_column_types`
            for name, type in target.types.items()
        )
        _run(connection, "CREATE TABLE {table} ({definitions}, PRIMARY KEY ({key}))", names)
    else:
        _check_table(connection, target, names)
    if connection.execute("SELECT to_regclass(%s)", [names["side"].as_string(connection)]).fetchone()[0] is None:
        columns = "fingerprint text PRIMARY KEY, key text, row text NOT NULL, reason text NOT NULL"
        _run(connection, f"CREATE TABLE {{side}} ({columns}, at timestamptz NOT NULL DEFAULT now())", names)


def _check_table(connection: Any, target: _Target, names: dict[str, Any]) -> None:
    oid = connection.execute("SELECT %s::regclass::oid", [names["table"].as_string(connection)]).fetchone()[0]
    held = dict(
        connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped",
            [oid],
        ).fetchall()
    )
    for name, type in target.types.items():
        if held.get(name) != type:
            found = f"it is {held[name]}" if name in held else "it is missing"
            raise target.error(f"column {name!r} must be {type}, and {found}")
    unique = connection.execute(
        "SELECT 1 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] WHERE "
        "i.indrelid = %s AND i.indisunique AND i.indnkeyatts = 1 AND i.indpred IS NULL "
        "AND i.indisvalid AND i.indimmediate AND a.attnotnull AND a.attname = %s",
        [oid, target.key],
    ).fetchone()
    if unique is None:
        raise target.error(f"it must have a unique index on {target.key!r}, which must be NOT NULL")


def _insert(target: _Target, batches: Iterable[pa.RecordBatch]) -> Upserted:
    """Insert a partition's rows in one transaction."""
    rest = iter(batches)
    first = next((batch for batch in rest if batch.num_rows), None)
    if first is None:
        return Upserted(0, 0, 0)
    counts: Upserted = _transact(target, lambda connection: _insert_rows(connection, target, chain([first], rest)))
    return counts


def _insert_rows(connection: Any, target: _Target, batches: Iterable[pa.RecordBatch]) -> Upserted:
    names = _names(target)
    _run(connection, "CREATE TEMPORARY TABLE {staged} ON COMMIT DROP AS SELECT {columns} FROM {table} LIMIT 0", names)
    copied = _copy(connection, target, names, batches)
    # If two partitions insert one key at once, the second waits for the first and compares with the stored row.
    inserted = _run(connection, _STORE, names).rowcount
    if not _run(connection, _DIFFERS, names).fetchone()[0]:
        return Upserted(inserted, copied - inserted, 0)
    connection.execute(_WRITTEN_ALIKE)
    conflicts, unchanged, missing = _run(connection, _COMPARE, names).fetchone()
    if missing or unchanged < inserted:
        raise target.error("a trigger or a policy of the table must not change or drop the rows of an insert")
    return Upserted(inserted, copied - inserted - conflicts, conflicts)


def _copy(connection: Any, target: _Target, names: dict[str, Any], batches: Iterable[pa.RecordBatch]) -> int:
    """Copy rows to the temporary table; return their number."""
    from psycopg import sql

    copied = 0
    statement = sql.SQL("COPY {staged} ({columns}) FROM STDIN (FORMAT csv)").format(**names)
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for batch in batches:
            copy.write(_csv_lines(batch, target))
            copied += batch.num_rows
    return copied


def _csv_lines(batch: pa.RecordBatch, target: _Target) -> bytes:
    """Return a batch as the lines of ``COPY ... (FORMAT csv)``: NULL is an empty field, and empty text is quoted."""
    import pyarrow as pa
    from pyarrow import csv

    texts = []
    for column, type in zip(batch.columns, target.types.values(), strict=True):
        if type == "bytea":  # Arrow cannot convert bytes to hex digits
            values = [None if value is None else "\\x" + value.hex() for value in column.to_pylist()]
            texts.append(pa.array(values, pa.string()))
        elif type == "timestamp with time zone":
            texts.append(column.cast(pa.timestamp("us", "UTC")).cast(pa.string()))
        else:
            texts.append(column.cast(pa.string()))
    out = io.BytesIO()
    options = csv.WriteOptions(include_header=False, quoting_style="all_valid")
    csv.write_csv(pa.RecordBatch.from_arrays(texts, batch.schema.names), out, options)
    return out.getvalue()
