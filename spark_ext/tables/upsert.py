"""Insert rows keyed by ID into PostgreSQL from the executors; a replay or a retried task changes nothing."""

from __future__ import annotations

import io
import re
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.errors import PythonException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from msgid.shared import postgres_limits
from msgid.shared.retrying import retry
from msgid.shared.validate import one_of, to_install
from spark_ext._arguments import check_dataframe, check_name
from spark_ext._private import python_error_in, use_own_python
from spark_ext._shipping import shipped
from spark_ext.columns.column_types import quoted_name
from spark_ext.columns.identity import canonical, unpadded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

__all__ = ["Upserted"]

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
_HOLDS: Final = (
    ("text", r"character varying(\(\d+\))?|uuid|jsonb?"),
    ("smallint|integer|bigint", r"smallint|integer|bigint|numeric(\(\d+,\d+\))?"),
    ("numeric.*", "numeric"),
    ("jsonb", "json"),
)
"""Patterns of types, and of other types of a table that take their values unchanged or refuse them."""
_ELEMENTS: Final = r"(text|smallint|integer|bigint|numeric.*|boolean|double precision|real|date)$"
"""The types of elements that an array may have; another one is ``jsonb``."""
_ORDERED_TEXT: Final = r"text|character varying(\(\d+\))?"
_CURES: Final = {
    "e": ", an enum, whose order and values are its own: change the column to text with a CHECK constraint",
    "d": ", a domain: change the column to its base type, and keep the rule as a CHECK constraint",
}
"""The kind of a type and its cure, by ``typtype``."""
_CAST: Final = ": cast it in the DataFrame, or change the table"
_PADDED: Final = ", a type that pads its values with spaces: change the column to varchar or text"
_ODD_KEYS: Final = r"map<(binary|array|map|struct)\b"
"""Spark does not write the keys of these maps to JSON as their values."""
_FLOATS: Final = r"\b(float|double)[,>]"
"""A float inside a nested type."""
_AS_JSON: Final = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Spark's own format has milliseconds in the session's time zone."""
_CHUNK: Final = 32 << 20
"""Bytes that are copied to the table in one step."""
_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END: Final = b"\xff\xff"
_NULL: Final = b"\xff\xff\xff\xff"
"""The length of NULL."""
_FIXED: Final = {
    "smallint": (">i2", 0),
    "integer": (">i4", 0),
    "bigint": (">i8", 0),
    "real": (">f4", 0),
    "double precision": (">f8", 0),
    "boolean": ("u1", 0),
    "date": (">i4", 10_957),
    "timestamp with time zone": (">i8", 946_684_800_000_000),
    "timestamp without time zone": (">i8", 946_684_800_000_000),
}
"""The binary form of types, and where they begin to count: the days and microseconds from 1970 to 2000."""
_BYTES: Final = r"text|character varying(\(\d+\))?|jsonb?|bytea"
"""Types whose binary form is their bytes; ``jsonb`` has a version before them."""
_WRITTEN_ALIKE: Final = "SET LOCAL TimeZone = 'UTC'; SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 1"
"""PostgreSQL writes a row as the same JSON for any settings of the server and the role."""
_LOOK_UP: Final = "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off"
"""Each key is looked up in the index: the cost of a row does not depend on the size of the table."""
_MAY_LOCK: Final = "SELECT has_table_privilege(%s, 'INSERT')"
"""A role with rights on columns alone may insert, and not lock."""
_LOCK: Final = "LOCK TABLE {table} IN ROW EXCLUSIVE MODE"
"""The lock of an insert, which keeps others from creating a trigger."""
_STORE: Final = (
    "INSERT INTO {table} ({columns}) SELECT {columns} FROM {staged} ORDER BY {order} ON CONFLICT ({keys}) DO NOTHING"
)
"""The rows in the order of the key, so that two transactions do not wait for each other in a circle."""
_STORE_MISSING: Final = (
    "INSERT INTO {table} ({columns}) SELECT {columns} FROM {staged} msgid_new WHERE NOT EXISTS "
    "(SELECT FROM {table} msgid_held WHERE ROW({held_keys}) = ROW({new_keys})) ORDER BY {order}"
)
"""Without ON CONFLICT, an insert takes half of its time. It ends with an error if two rows have one key."""
_REPLACE: Final = (
    "INSERT INTO {table} AS msgid_held ({columns}) SELECT {columns} FROM (SELECT DISTINCT ON ({keys}) {columns} "
    "FROM {staged} ORDER BY {keys}, {latest}) msgid_new ORDER BY {order} "
    "ON CONFLICT ({keys}) DO UPDATE SET ({columns}) = ROW({excluded}) WHERE {later}"
)
_OTHER: Final = "ROW({ours}) IS DISTINCT FROM ROW({theirs})"
_NOT_EARLIER: Final = " AND NOT ({earlier} AND NOT (ROW({latest_values}) IS NULL))"
"""Not a row that loses against the stored one. A row without a value of order is a conflict, and not an earlier row."""
_DIFFERENCES: Final = (
    "SELECT count(*) - count({held_key}), count(*) FILTER (WHERE {differs} AND {held_key} IS NOT NULL) "
    "FROM {staged} msgid_new LEFT JOIN {table} msgid_held ON ROW({held_keys}) = ROW({new_keys})"
)
"""The number of rows that the table does not have, and of those that differ from the stored ones."""
_IS_PLAIN: Final = (
    "SELECT relkind = 'r' AND NOT relrowsecurity AND NOT relhasrules AND NOT EXISTS "
    "(SELECT FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal) AND NOT EXISTS "
    "(SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = ANY(%s) AND (attidentity = 'a' OR "
    "attgenerated <> '')) FROM pg_class c WHERE oid = %s::regclass"
)
"""Whether nothing can change the rows of an insert, and COPY refuses what INSERT refuses."""
_COMPARE: Final = (
    "WITH compared AS (SELECT msgid_new, {key} AS key, "
    "msgid_held.xmin::text::bigint = txid_current() % 4294967296 AS fresh, {differs} AS differs "
    "FROM {staged} msgid_new LEFT JOIN {table} msgid_held ON ROW({held_keys}) = ROW({new_keys})), "
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
    >>> issubclass(PostgresError, RuntimeError)
    True
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
    """Rows that are new, and rows that have replaced others."""
    present: int
    """Rows that existed with equal content, including rows of a task that was retried after its commit."""
    conflicts: int
    """Rows in the side table: other content under an existing key."""


def upsert_postgres(
    batch_df: DataFrame,
    conninfo: str,
    table: str | tuple[str, str],
    key: str | Sequence[str] = "id",
    *,
    key_is_id: bool | None = None,
    latest_by: str | Sequence[str] | None = None,
    evolve: bool = False,
    lock_timeout: float = postgres_limits.SINK_LOCK_TIMEOUT,
    idle_timeout: float = postgres_limits.IDLE_TIMEOUT,
) -> Upserted:
    """Insert rows into a PostgreSQL table, each key once; the first row of a key stays, or its latest one.

    Each partition is one transaction of an executor, in the order of the keys. New rows are copied to the table. From
    the first stored key on, rows are copied to a temporary table, compared, and inserted if their keys are new. A
    replayed batch, a retried task or a second driver changes nothing.

    A row with an existing key and other content is a conflict. It is stored in the table ``<table>_conflicts`` once,
    with its key, the row as JSON, the reason and the time.

    If PostgreSQL refuses a row, for example by a constraint or for a NUL character in a text, the call ends with its
    error, and no row of the row's partition is written. Rows of other partitions may be stored: repeat the batch after
    the cause is gone. Spark repeats a task that has lost its connection, as often as ``spark.task.maxFailures`` says.

    With ``latest_by``, a row replaces the stored row with its key if its value in this column is greater. A row with a
    lower value changes nothing, so batches may come in any order. An equal value or NULL with other content is a
    conflict. A stored NULL is lower than each value. The order is that of Spark's ``max_by`` on every server: text is
    compared by its bytes, NaN is the greatest number. Of several columns, the first one that differs decides.

    A missing table is created, with the key as its primary key; arrays of text, numbers, booleans and dates become
    arrays, other nested columns ``jsonb``. An existing table must have these columns, and a unique index on the key
    that is not deferrable; the key must be NOT NULL. Its types may differ if they hold each value: ``varchar``,
    ``uuid``, ``json`` and ``jsonb`` for text, integers and ``numeric`` for integers, ``numeric`` without a scale for
    decimals, and arrays of such types for arrays. PostgreSQL converts the values, refuses those that do not fit, and
    compares them as its own. A trigger must not change or drop the rows of an insert.

    IDs are compared by value, never by spelling. The IDs of a key are therefore stored in their canonical form: an ID
    of version 0 or 1 as `translate_v0` and upper case write it, a UUID with dashes in lower case, any other value as it
    is. Rows that another program has inserted must have their IDs in that form, too.

    Parameters
    ----------
    batch_df : DataFrame
        the rows.
    conninfo : str
        connection string, as for `psycopg.connect`. It is not printed, but it is part of the tasks that executors run.
        Use a password file or a service file on the executors to keep the password out of it.
    table : str or tuple of str
        the table's name, ``table`` or ``schema.table``; a tuple (schema, table) if a name has a dot.
    key : str or sequence of str
        the column of the key, or its columns.
    key_is_id : bool, optional
        whether the columns of the key have IDs. If False, keys are stored and compared unchanged: 32 hex digits, for
        example, are not read as an ID of version 0. Default: a column named ``id`` has IDs, and others do not.
    latest_by : str or sequence of str, optional
        the column that orders the rows of a key, such as a version or a time, or several columns: ``["term", "seq"]``.
        Structs, arrays and maps are refused. Default: the first row of a key stays.
    evolve : bool
        whether to add the columns that the table lacks. A change stays if the batch fails after it.
    lock_timeout : float
        seconds to wait for a lock of another transaction, such as one that inserts the same keys.
    idle_timeout : float
        seconds after which the server ends a transaction whose client has vanished, so that its locks are free.

    Returns
    -------
    Upserted
        numbers of inserted rows, of existing rows, and of conflicts.

    Raises
    ------
    PostgresError
        if the database cannot be reached, refuses the table or a row, or does not get a lock in time.
    ValueError
        if an argument is not allowed, or a column has a type that PostgreSQL lacks. Also if the IDs of a key are floats
        or numbers beyond 64 bits, which may have been text: pass ``key_is_id=False`` if they are numbers.
    ImportError
        if the package `psycopg` is missing (extra ``postgres``).

    Examples
    --------
    >>> def write(batch_df, batch_id):
    ...     upsert_postgres(batch_df, "host=db dbname=shop", "orders")
    >>> query = orders.writeStream.foreachBatch(write).start()  # doctest: +SKIP
    """
    check_dataframe(batch_df, "batch_df")
    if batch_df.isStreaming:
        raise ValueError("cannot write a stream: call `upsert_postgres` in its foreachBatch")
    if not isinstance(conninfo, str):
        raise TypeError(f"conninfo must be text, got a value of type {type(conninfo).__name__}")
    named = table.split(".") if isinstance(table, str) else table
    parts = tuple(named) if isinstance(named, tuple | list) else ()
    if len(parts) not in (1, 2) or not all(isinstance(part, str) and part for part in parts):
        raise ValueError(f"table must be a name or a schema and a name, got {table!r}")
    for name in (*parts[:-1], f"{parts[-1]}_conflicts", *batch_df.columns):
        if len(name.encode()) > _NAME_LENGTH:
            raise ValueError(f"a name in PostgreSQL must have at most {_NAME_LENGTH} bytes of UTF-8, got {name!r}")
    one_of("key_is_id", key_is_id, (True, False, None))
    one_of("evolve", evolve, (True, False))
    keys, order = _columns_of("key", key), () if latest_by is None else _columns_of("latest_by", latest_by)
    for names in (keys, order, batch_df.columns):
        if twice := [name for name in names if list(names).count(name) > 1]:
            raise ValueError(f"cannot write the column {twice[0]!r} several times: name each column once")
    is_empty = latest_by is not None and not order
    if not keys or is_empty or not {*keys, *order} <= {*batch_df.columns}:
        raise ValueError(f"key and latest_by must be of {batch_df.columns}, got key={key!r}, latest_by={latest_by!r}")
    for name in order:
        _check_ordered(name, batch_df.schema[name].dataType)
    limits = (
        postgres_limits.seconds("lock_timeout", lock_timeout),
        postgres_limits.seconds("idle_timeout", idle_timeout),
    )
    ids = tuple(one for one in keys if key_is_id or (key_is_id is None and one.lower() == "id"))
    batch_df = batch_df.select(*unpadded(batch_df))
    for name in ids:
        batch_df = batch_df.withColumn(name, canonical(batch_df, name))
    use_own_python(batch_df.sparkSession)
    wanted = _Target(conninfo, parts, keys, _column_types(batch_df.schema), order, ids, limits)
    target: _Target = _transact(wanted, lambda connection: _prepare(connection, wanted, evolve=evolve))

    def insert(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        counts = _insert(target, batches)
        yield pa.RecordBatch.from_pylist([counts._asdict()], pa.schema([(name, pa.int64()) for name in counts._fields]))

    try:
        # In the order of the keys, so that two tasks do not wait for each other in a circle.
        names = [f"c{batch_df.columns.index(one)}" for one in target.keys]
        rows = _with_texts(batch_df, target.types).sortWithinPartitions(*names)
        counts = rows.mapInArrow(shipped(insert), _COUNTS).collect()
    except PythonException as error:
        said = python_error_in(error, _SAID)
        if said is None:
            raise
        raise PostgresError(said) from error
    return Upserted(*(sum(row[index] for row in counts) for index in range(3)))


def _columns_of(argument: str, names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns of an argument, which is a name or several."""
    several = tuple(names) if isinstance(names, tuple | list) else (names,)
    for name in several:
        check_name(argument, name)
    return several


def _check_ordered(name: str, type: Any) -> None:
    """Check that PostgreSQL can compare the values of a column as Spark does.

    Raises
    ------
    ValueError
        if not.
    """
    text = type.simpleString()
    if isinstance(type, _NESTED):
        raise ValueError(
            f"latest_by must name columns that are not nested, got {name!r} of {text}; name its parts as columns in "
            "the order in which they count: latest_by=['term', 'seq']"
        )
    if isinstance(type, T.StringType) and text != "string":
        raise ValueError(f"latest_by must name text that is compared by its bytes, got {name!r} of {text}; cast it")


def _column_types(schema: T.StructType) -> dict[str, str]:
    """Return the PostgreSQL type of each column.

    Raises
    ------
    ValueError
        if PostgreSQL lacks a type, if JSON cannot hold the keys of a map, or if a struct or a map has floats.

    Examples
    --------
    >>> _column_types(T.StructType.fromDDL("id string, amount decimal(10, 2), tags array<string>"))
    {'id': 'text', 'amount': 'numeric(10,2)', 'tags': 'text[]'}
    """
    types: dict[str, str] = {}
    for field in schema:
        if isinstance(field.dataType, T.DecimalType):
            types[field.name] = f"numeric({field.dataType.precision},{field.dataType.scale})"
            continue
        types_of_field = [name for kinds, name in _TYPES if isinstance(field.dataType, kinds)]
        if not types_of_field or re.search(_ODD_KEYS, field.dataType.simpleString()):
            raise ValueError(
                f"cannot store column {field.name!r} in PostgreSQL: it lacks the type "
                f"{field.dataType.simpleString()}; cast it, for example to string"
            )
        types[field.name] = types_of_field[0]
        if isinstance(field.dataType, T.ArrayType):
            element = _column_types(T.StructType([T.StructField(field.name, field.dataType.elementType)]))[field.name]
            if re.match(_ELEMENTS, element):
                types[field.name] = f"{element}[]"
        if types[field.name] == "jsonb" and re.search(_FLOATS, field.dataType.simpleString()):
            raise ValueError(
                f"cannot store column {field.name!r} of {field.dataType.simpleString()}: as JSON, its floats have "
                "another text on a later Java; cast them to decimals, or the column to text by to_json"
            )
    return types


def _takes(stored: str, type: str) -> bool:
    """Return whether a column of a table holds each value of a type unchanged, or refuses it.

    Examples
    --------
    >>> _takes("uuid", "text"), _takes("numeric(10,2)", "numeric(10,4)"), _takes("character varying(9)[]", "text[]")
    (True, False, True)
    """
    if type.endswith("[]"):
        return stored in ("json", "jsonb") or (stored.endswith("[]") and _takes(stored[:-2], type[:-2]))
    return stored == type or any(re.fullmatch(own, type) and re.fullmatch(other, stored) for own, other in _HOLDS)


def _with_texts(df: DataFrame, types: dict[str, str]) -> DataFrame:
    """Return the rows with nested values as arrays of PostgreSQL or JSON, and times as microseconds without a zone.

    The columns are named by their positions, because `mapInArrow` does not accept a name with a dot.
    """
    columns = []
    for index, field in enumerate(df.schema):
        column = F.col(quoted_name(field.name))
        if types[field.name].endswith("[]"):
            cells = F.transform(column, lambda cell: F.regexp_replace(cell.cast("string"), r'(["\\])', r"\\$1"))
            cells = F.transform(cells, lambda cell: F.coalesce(F.concat(F.lit('"'), cell, F.lit('"')), F.lit("NULL")))
            column = F.concat(F.lit("{"), F.array_join(cells, ","), F.lit("}"))
        elif isinstance(field.dataType, _NESTED):
            column = F.to_json(column, _AS_JSON)
        elif isinstance(field.dataType, T.TimestampType):
            column = F.unix_micros(column)
        columns.append(column.alias(f"c{index}"))
    return df.select(*columns)


class _Target(NamedTuple):
    """The table and its connection. ``repr`` leaves out the connection string, which may hold a password."""

    conninfo: str
    table: tuple[str, ...]
    keys: tuple[str, ...]
    types: dict[str, str]
    latest_by: tuple[str, ...] = ()
    id_keys: tuple[str, ...] = ()
    limits: tuple[float, float] = (postgres_limits.SINK_LOCK_TIMEOUT, postgres_limits.IDLE_TIMEOUT)
    """The seconds to wait for a lock, and those after which a silent transaction ends."""
    is_binary: bool = False
    """Whether the rows are sent in PostgreSQL's binary form."""

    def __repr__(self) -> str:
        return f"_Target({'.'.join(self.table)})"

    def error(self, reason: str) -> PostgresError:
        return PostgresError(f"cannot write to table {'.'.join(self.table)}: {' '.join(reason.split())}")


def _transact(target: _Target, work: Callable[[Any], Any]) -> Any:
    """Run one transaction; errors show neither the connection string nor its password."""
    try:
        import psycopg
        from psycopg import errors
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        message = f"upsert_postgres needs psycopg, on the executors too: {to_install('postgres')}"
        raise ImportError(message, name="psycopg") from None

    def connect() -> Any:
        # SQL_ASCII would give bytes for text. A prepared statement would stay on a connection of a pool.
        options = postgres_limits.connection_options(conninfo_to_dict(target.conninfo), target.limits[1])
        options |= {"client_encoding": "utf8", "prepare_threshold": None}
        return postgres_limits.connect(target.conninfo, postgres_limits.SINK_ANSWER_TIMEOUT, **options)

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
            # Of this transaction alone, because a pool gives the session to another client.
            settings = postgres_limits.settings(*target.limits)
            connection.execute("; ".join(f"SET LOCAL {setting}" for setting in settings))
            return work(connection)
    except errors.LockNotAvailable:
        raise target.error(
            f"another transaction has locked it, or a row with the same {', '.join(map(repr, target.keys))}, for more "
            f"than lock_timeout={target.limits[0]:g} seconds; find it by pg_blocking_pids and end it, or wait longer"
        ) from None
    except psycopg.Error as error:
        reason = error.diag.message_primary or str(error) or type(error).__name__
        if isinstance(error, errors.InvalidTextRepresentation) and "uuid" in map(target.types.get, target.id_keys):
            reason += (
                "; an ID of another version than a UUID does not fit into uuid, and 32 hex digits are read as an ID of "
                "version 0: pass key_is_id=False to store keys as they are"
            )
        raise target.error(reason) from None


def _names(target: _Target) -> dict[str, Any]:
    from psycopg import sql

    *schema, name = target.table

    def cells(row: str, columns: Iterable[str], json: str = "") -> Any:
        forms = {column: f"{row}{{}}{json if target.types[column] == 'json' else ''}" for column in columns}
        return sql.SQL(", ").join(sql.SQL(form).format(sql.Identifier(column)) for column, form in forms.items())

    names = {
        "table": sql.Identifier(*target.table),
        "side": sql.Identifier(*schema, f"{name}_conflicts"),
        "staged": sql.Identifier("pg_temp", "msgid_staged"),
        "keys": cells("", target.keys),
        "order": sql.SQL(", ").join(_ordered(target, "", one) for one in target.keys),
        "new_keys": cells("msgid_new.", target.keys),
        "held_keys": cells("msgid_held.", target.keys),
        "held_key": cells("msgid_held.", target.keys[:1]),
        "key": sql.SQL("{}" if len(target.keys) == 1 else "ROW({})").format(cells("(msgid_new).", target.keys)),
        "columns": cells("", target.types),
        "excluded": cells("excluded.", target.types),
        "ours": cells("msgid_new.", target.types, "::jsonb"),
        "theirs": cells("msgid_held.", target.types, "::jsonb"),
        "latest": sql.SQL(", ").join(
            sql.SQL("{} DESC NULLS LAST").format(_ordered(target, "", one)) for one in target.latest_by
        ),
        "latest_values": cells("msgid_new.", target.latest_by),
        "later": _less(target, "msgid_held.", "excluded."),
        "earlier": _less(target, "msgid_new.", "msgid_held."),
    }
    differs = _OTHER + (_NOT_EARLIER if target.latest_by else "")
    return {**names, "differs": sql.SQL(differs).format(**names)}


def _ordered(target: _Target, row: str, column: str) -> Any:
    """Return a column in the form in which PostgreSQL orders it as Spark does: text by its bytes."""
    from psycopg import sql

    collation = ' COLLATE "C"' if re.fullmatch(_ORDERED_TEXT, target.types[column]) else ""
    return sql.SQL(f"{row}{{}}{collation}").format(sql.Identifier(column))


def _less(target: _Target, lower: str, higher: str) -> Any:
    """Return the condition that one row is before another one; NULL is the lowest value."""
    from psycopg import sql

    condition: Any = sql.SQL("FALSE")
    for column in reversed(target.latest_by):
        low, high = _ordered(target, lower, column), _ordered(target, higher, column)
        condition = sql.SQL(
            "({high} IS NOT NULL AND ({low} IS NULL OR {low} < {high}) OR {low} IS NOT DISTINCT FROM {high} AND {rest})"
        ).format(low=low, high=high, rest=condition)
    return condition


def _run(connection: Any, statement: str, names: dict[str, Any], *columns: str) -> Any:
    """Run a statement with names in ``{}``."""
    from psycopg import sql

    return connection.execute(sql.SQL(statement).format(*map(sql.Identifier, columns), **names))


def _prepare(connection: Any, target: _Target, *, evolve: bool = False) -> _Target:
    """Create missing tables, and check an existing table; return the target with the types of the table."""
    from psycopg import sql

    names = _names(target)
    # Two drivers that create one table at once wait for each other.
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('msgid'), hashtext(%s))", [".".join(target.table)])
    if connection.execute("SELECT to_regclass(%s)", [names["table"].as_string(connection)]).fetchone()[0] is None:
        names["definitions"] = sql.SQL(", ").join(
            sql.SQL(f"{{}} {type}").format(sql.Identifier(name)) for name, type in target.types.items()
        )
        _run(connection, "CREATE TABLE {table} ({definitions}, PRIMARY KEY ({keys}))", names)
    types = _check_table(connection, target, names, evolve=evolve)
    if connection.execute("SELECT to_regclass(%s)", [names["side"].as_string(connection)]).fetchone()[0] is None:
        columns = "fingerprint text PRIMARY KEY, key text, row text NOT NULL, reason text NOT NULL"
        _run(connection, f"CREATE TABLE {{side}} ({columns}, at timestamptz NOT NULL DEFAULT now())", names)
    return target._replace(types=types)


def _check_table(connection: Any, target: _Target, names: dict[str, Any], *, evolve: bool) -> dict[str, str]:
    """Check that a table takes the rows, or add the columns that it lacks; return the types of the rows there."""
    oid = connection.execute("SELECT %s::regclass::oid", [names["table"].as_string(connection)]).fetchone()[0]
    columns = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod), typtype::text FROM pg_attribute "
        "JOIN pg_type t ON t.oid = atttypid WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped",
        [oid],
    ).fetchall()
    stored_types, kinds = {name: type for name, type, _ in columns}, {name: kind for name, _, kind in columns}
    for name, type in target.types.items():
        if evolve and name not in stored_types:
            _run(connection, f"ALTER TABLE {{table}} ADD COLUMN {{}} {type}", names, name)
            stored_types[name] = type
        if not _takes(stored_types.get(name, ""), type):
            fault = "it is missing: evolve=True adds it"
            if name in stored_types:
                cure = _PADDED if stored_types[name].startswith("character(") else _CURES.get(kinds[name], _CAST)
                fault = f"it is {stored_types[name]}{cure}"
            raise target.error(f"column {name!r} must be {type}, and {fault}")
        if name in target.latest_by and type == "text":
            encoding = connection.info.parameter_status("server_encoding")
            if not re.fullmatch(_ORDERED_TEXT, stored_types[name]) or encoding not in ("UTF8", "SQL_ASCII"):
                raise target.error(
                    f"column {name!r} of latest_by must be text or varchar in a database of the encoding UTF8, and it "
                    f"is {stored_types[name]} in {encoding}: its order is not that of Spark. Name another column"
                )
    unique = connection.execute(
        "SELECT FROM pg_index i WHERE indrelid = %s AND indisunique AND indnkeyatts = %s AND indpred IS NULL "
        "AND indisvalid AND indimmediate AND (SELECT array_agg(attname::text) FROM pg_attribute WHERE attnotnull "
        "AND attrelid = i.indrelid AND attnum = ANY((i.indkey::int2[])[0:i.indnkeyatts - 1])) @> %s",
        [oid, len(target.keys), [*target.keys]],
    ).fetchone()
    if unique is None:
        raise target.error(
            f"it must have a unique index on {', '.join(map(repr, target.keys))}, which must be NOT NULL"
        )
    return {name: stored_types[name] for name in target.types}


def _insert(target: _Target, batches: Iterable[pa.RecordBatch]) -> Upserted:
    """Insert a partition's rows in one transaction."""
    rest = iter(batches)
    first = next((batch for batch in rest if batch.num_rows), None)
    if first is None:
        return Upserted(0, 0, 0)
    counts: Upserted = _transact(target, lambda connection: _insert_rows(connection, target, chain([first], rest)))
    return counts


def _insert_rows(connection: Any, target: _Target, batches: Iterator[pa.RecordBatch]) -> Upserted:
    first = next(batches)
    rest: Iterator[pa.RecordBatch] = chain([first], batches)
    target = target._replace(is_binary=_has_binary_form(first, target))
    names, stored = _names(target), 0
    name = names["table"].as_string(connection)
    is_plain = connection.execute(_MAY_LOCK, [name]).fetchone()[0]
    if is_plain:
        _run(connection, _LOCK, names)
        is_plain = connection.execute(_IS_PLAIN, [[*target.types], name]).fetchone()[0]
    connection.execute(_LOOK_UP)
    if is_plain:
        stored, rest = _copy_new(connection, target, names, rest)
        if (first := next(rest, None)) is None:
            return Upserted(stored, 0, 0)
        rest = chain([first], rest)
    _run(connection, "CREATE TEMPORARY TABLE {staged} ON COMMIT DROP AS SELECT {columns} FROM {table} LIMIT 0", names)
    copied = _copy(connection, target, names, rest, "staged")
    counts = _insert_staged(connection, target, names, copied, is_plain=is_plain)
    return counts._replace(inserted=stored + counts.inserted)


def _copy_new(
    connection: Any, target: _Target, names: dict[str, Any], batches: Iterator[pa.RecordBatch]
) -> tuple[int, Iterator[pa.RecordBatch]]:
    """Copy rows to the table until a chunk has a stored key; return the number of copied rows, and the other batches.

    Later chunks are not copied, because two transactions must insert their keys in one order. The first chunk is one
    batch, and each later one is larger.
    """
    from psycopg.errors import UniqueViolation

    stored = size = 0
    while True:
        chunk: list[pa.RecordBatch] = []
        try:
            with connection.transaction():
                stored += _copy(connection, target, names, _up_to(size, batches, chunk), "table")
        except UniqueViolation:
            return stored, chain(chunk, batches)
        if not chunk:
            return stored, iter(chunk)
        size = min(2 * sum(batch.nbytes for batch in chunk), _CHUNK)


def _up_to(size: int, batches: Iterator[pa.RecordBatch], kept: list[Any]) -> Iterator[pa.RecordBatch]:
    """Yield and keep batches, up to a number of bytes."""
    for batch in batches:
        kept.append(batch)
        yield batch
        size -= batch.nbytes
        if size <= 0:
            return


def _insert_staged(connection: Any, target: _Target, names: dict[str, Any], copied: int, *, is_plain: bool) -> Upserted:
    """Insert the rows of the temporary table, and compare those whose keys the table has."""
    # If two partitions insert one key at once, the second waits for the first and compares with the stored row.
    if target.latest_by or not is_plain:
        inserted = _run(connection, _REPLACE if target.latest_by else _STORE, names).rowcount
        if inserted == copied and is_plain:
            return Upserted(inserted, 0, 0)  # no row met another one of its key
        is_same = _run(connection, _DIFFERENCES, names).fetchone() == (0, 0)
    else:
        missing, different = _run(connection, _DIFFERENCES, names).fetchone()
        inserted = _store_missing(connection, names) if missing else 0
        is_same = inserted == missing and not different
    if is_same:
        return Upserted(inserted, copied - inserted, 0)
    connection.execute(_WRITTEN_ALIKE)
    conflicts, unchanged, missing = _run(connection, _COMPARE, names).fetchone()
    if not is_plain and (missing or unchanged < inserted):
        raise target.error("a trigger or a policy of the table must not change or drop the rows of an insert")
    return Upserted(inserted, copied - inserted - conflicts, conflicts)


def _store_missing(connection: Any, names: dict[str, Any]) -> int:
    """Insert the rows whose keys the table does not have, one of each key; return their number."""
    from psycopg.errors import UniqueViolation

    try:
        with connection.transaction():
            inserted: int = _run(connection, _STORE_MISSING, names).rowcount
    except UniqueViolation:  # of two rows, or of another transaction
        inserted = _run(connection, _STORE, names).rowcount
    return inserted


def _copy(
    connection: Any, target: _Target, names: dict[str, Any], batches: Iterable[pa.RecordBatch], where: str
) -> int:
    """Copy rows to the table or the temporary table; return their number.

    The batches are awaited within COPY, in which the server does not take the session for idle.
    """
    from psycopg import sql

    copied, form = 0, "binary" if target.is_binary else "csv"
    statement = sql.SQL(f"COPY {{{where}}} ({{columns}}) FROM STDIN (FORMAT {form})").format(**names)
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        if target.is_binary:
            copy.write(_HEADER)
        for batch in batches:
            copy.write(_binary_rows(batch, target) if target.is_binary else _csv_lines(batch, target))
            copied += batch.num_rows
        if target.is_binary:
            copy.write(_END)
    return copied


def _has_binary_form(batch: pa.RecordBatch, target: _Target) -> bool:
    """Return whether each column has the binary form of its type in the table.

    PostgreSQL converts other columns from their text, such as text to ``uuid`` and integers to shorter ones.
    """
    import numpy as np
    import pyarrow as pa

    for column, type in zip(batch.columns, target.types.values(), strict=True):
        if type not in _FIXED and not re.fullmatch(_BYTES, type):
            return False
        if pa.types.is_integer(column.type) and np.dtype(_FIXED[type][0]).itemsize * 8 < column.type.bit_width:
            return False
    return True


def _binary_rows(batch: pa.RecordBatch, target: _Target) -> memoryview:
    """Return a batch as the rows of ``COPY ... (FORMAT binary)``: each value follows its length."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    parts: list[Any] = [pa.scalar(batch.num_columns.to_bytes(2, "big"), pa.large_binary())]
    for column, type in zip(batch.columns, target.types.values(), strict=True):
        if type in _FIXED:
            form, start = _FIXED[type]
            values = column
            if start:
                try:
                    values = pc.subtract_checked(column.cast(pa.int32() if type == "date" else pa.int64()), start)
                except pa.ArrowInvalid:
                    raise target.error(f"{type} out of range") from None
            cells = np.empty(len(column), [("length", ">i4"), ("value", form)])
            cells["length"] = np.dtype(form).itemsize
            cells["value"] = values.fill_null(False if type == "boolean" else 0).to_numpy(zero_copy_only=False)
            parts.append(pc.if_else(column.is_null(), _NULL, _as_bytes(cells)))
            continue
        values = column.cast(pa.binary()).cast(pa.large_binary())
        lengths = pc.binary_length(values).fill_null(-1).to_numpy(zero_copy_only=False)
        if type == "jsonb":  # with the version of its form
            cells = np.empty(len(column), [("length", ">i4"), ("version", "u1")])
            cells["length"], cells["version"] = lengths + 1, 1
            parts.append(pc.if_else(column.is_null(), _NULL, _as_bytes(cells)))
        else:
            parts.append(_as_bytes(lengths.astype(">i4")))
        parts.append(values.fill_null(b""))
    rows = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))
    _, offsets, data = rows.buffers()
    return memoryview(data)[: np.frombuffer(offsets, np.int64)[len(rows)]]


def _as_bytes(values: NDArray[Any]) -> Any:
    """Return the bytes of each value as an Arrow array."""
    import numpy as np
    import pyarrow as pa

    offsets = np.arange(len(values) + 1, dtype=np.int64) * values.itemsize
    return pa.Array.from_buffers(pa.large_binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(values)])


def _csv_lines(batch: pa.RecordBatch, target: _Target) -> bytes:
    """Return a batch as the lines of ``COPY ... (FORMAT csv)``: NULL is an empty field, and empty text is quoted."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    texts = []
    for column, type in zip(batch.columns, target.types.values(), strict=True):
        if type == "bytea":  # Arrow cannot convert bytes to hex digits
            values = [None if value is None else "\\x" + value.hex() for value in column.to_pylist()]
            texts.append(pa.array(values, pa.string()))
        elif type == "timestamp with time zone":
            # Arrow writes a time without a zone several times as fast.
            texts.append(pc.binary_join_element_wise(column.cast(pa.timestamp("us")).cast(pa.string()), "Z", ""))
        else:
            texts.append(column.cast(pa.string()))
    out = io.BytesIO()
    options = csv.WriteOptions(include_header=False, quoting_style="all_valid")
    csv.write_csv(pa.RecordBatch.from_arrays(texts, batch.schema.names), out, options)
    return out.getvalue()
