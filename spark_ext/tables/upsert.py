"""Insert rows keyed by ID into PostgreSQL from the executors; a replay or a retried task changes nothing."""

from __future__ import annotations

import io
import json
import re
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.errors import PythonException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from msgid._retrying import retry
from spark_ext._arguments import check_dataframe
from spark_ext._private import python_error_in, use_own_python
from spark_ext._shipping import shipped
from spark_ext._spill import Limit, Spill, written
from spark_ext.tables._postgres_rows import REASON, column_types, prepared, with_canonical_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import psycopg
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from spark_ext._spill import Place

_DELAYS: Final = (0.4, 0.8, 1.6, 3.2)
"""Seconds before each repetition of a transaction."""
_REFUSALS: Final = ("22", "23", "44", "54", "P0")
"""Classes of PostgreSQL's errors: data, constraints, checks of views, limits such as an index's, and triggers."""
SLICE: Final = Limit(50_000, 16 << 20)
"""The rows of a partition that one statement inserts; the others are on the local disk."""
_COPIED: Final = 10_000
"""The number of rows that are sent at a time."""
_NAME_LENGTH: Final = 63
_COUNTS: Final = "inserted bigint, present bigint, conflicts bigint"
_PLANNED: Final = (
    "INSERT INTO {table} ({columns}) SELECT {columns} FROM {table} WHERE false "
    "ON CONFLICT ({key}) DO NOTHING RETURNING {key}",
    "INSERT INTO {side} (fingerprint, key, row, reason) VALUES ('', '', '', '') ON CONFLICT DO NOTHING",
)
"""Statements that the database plans before a row is sent. It refuses generated columns, rules and missing rights."""
_WRITTEN_AS: Final = {"TimeZone": "UTC", "bytea_output": "hex", "extra_float_digits": "1"}
"""PostgreSQL's settings that decide how a row is written as JSON."""


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
    """Rows in the side table: other content under an existing key, or a value that PostgreSQL cannot store."""


class _Target(NamedTuple):
    """The table and its connection. ``repr`` leaves out the connection string, which may hold a password."""

    conninfo: str
    table: tuple[str, ...]
    key: str
    types: dict[str, str]

    def __repr__(self) -> str:
        return f"_Target({'.'.join(self.table)})"


def upsert_postgres(
    batch_df: DataFrame, conninfo: str, table: str | tuple[str, str], key: str = "id", *, key_is_id: bool = True
) -> Upserted:
    """Insert rows into a PostgreSQL table, each key once; a row with an existing key is not changed.

    Each partition is one transaction of an executor: the rows are copied to a temporary table and inserted with ``ON
    CONFLICT DO NOTHING``, in slices of up to 50,000 rows or 16 MB. Rows of more than a slice wait on the executor's
    local disk, so an executor needs the memory of a slice. A replayed batch, a retried task or a second driver changes
    nothing.

    A row with an existing key and other content is a conflict. It is stored in the table ``<table>_conflicts`` once,
    with its key, the row as JSON, the reason and the time. So is a row that PostgreSQL cannot store: a NULL key, text
    with a NUL character or invalid UTF-8, a time outside the years 1 to 9999 in UTC, or a value that the table rejects
    by a constraint, a trigger, an index or its encoding. Such a row does not stop the others.

    A missing table is created, with the key as its primary key; nested columns become ``jsonb``. An existing table
    must have these columns, of these types, and a unique index on the key that is not deferrable. If a trigger changes
    a row, later deliveries of the row are conflicts.

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
        if the database cannot be reached or the table does not fit.
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
    if len(f"{parts[-1]}_conflicts".encode()) > _NAME_LENGTH:
        raise ValueError(f"table must leave room for '_conflicts' in {_NAME_LENGTH} bytes, got {parts[-1]!r}")
    if key not in batch_df.columns:
        raise ValueError(f"key must be one of the columns {', '.join(batch_df.columns)}, got {key!r}")
    if key_is_id:
        batch_df = with_canonical_key(batch_df, key)
    use_own_python(batch_df.sparkSession)
    target = _Target(conninfo, parts, key, column_types(batch_df.schema))
    _with_retries(target, lambda connection: _prepare(connection, target))

    def insert(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        counts = _insert(target, batches)
        yield pa.RecordBatch.from_pylist([counts._asdict()], pa.schema([(name, pa.int64()) for name in counts._fields]))

    try:
        found = _in_order(prepared(batch_df, key), batch_df.columns.index(key)).mapInArrow(shipped(insert), _COUNTS)
        counts = found.collect()
    except PythonException as error:
        said = python_error_in(error, _SAID)
        if said is None:
            raise
        raise PostgresError(said) from error
    return Upserted(*(sum(row[place] for row in counts) for place in range(3)))


def _in_order(rows: DataFrame, key: int) -> DataFrame:
    """Return rows with those of each partition in the order of the key, by the bytes of text, as the database has it.

    All transactions insert keys in this order, slice after slice, so none waits for another in a circle.
    """
    column = F.col(rows.columns[key])
    is_text = isinstance(rows.schema[key].dataType, T.StringType)
    return rows.sortWithinPartitions(column.cast("binary") if is_text else column)


def _connect(target: _Target) -> Any:
    """Open a connection; errors show neither the connection string nor its password."""
    try:
        import psycopg
    except ImportError:
        message = "upsert_postgres needs psycopg: pip install 'msgid[postgres]', on the executors too"
        raise ImportError(message, name="psycopg") from None
    try:
        secret = psycopg.conninfo.conninfo_to_dict(target.conninfo).get("password")
    except psycopg.ProgrammingError:
        raise ValueError(
            "conninfo must be a connection string of PostgreSQL (not shown: it may hold a password)"
        ) from None
    try:
        return psycopg.connect(target.conninfo, client_encoding="utf8")  # SQL_ASCII would give bytes for text
    except psycopg.OperationalError as error:
        said = str(error).strip()
        raise _Unreachable(said.replace(str(secret), "***") if secret else said) from None


class _Unreachable(Exception):
    """A connection could not be opened, or was lost, or the database ended the transaction because of another one."""


def _with_retries(target: _Target, work: Any) -> Any:
    """Run one transaction; repeat it if the connection broke, or if the database ended it because of another one."""

    def transact() -> Any:
        connection = _connect(target)
        import psycopg

        try:
            with connection:
                return work(connection)
        except _passing() as error:
            raise _Unreachable(error.diag.message_primary or type(error).__name__) from None
        except psycopg.Error as error:
            said = error.diag.message_primary or type(error).__name__
            raise PostgresError(f"cannot write to table {'.'.join(target.table)}: {said}") from None

    try:
        return retry(transact, lambda error: isinstance(error, _Unreachable), _DELAYS)
    except _Unreachable as error:
        attempts, said = len(_DELAYS) + 1, " ".join(str(error).split())  # one line
        raise PostgresError(
            f"cannot write to table {'.'.join(target.table)} after {attempts} attempts: {said}"
        ) from None


def _passing() -> tuple[type[psycopg.Error], ...]:
    """Return the errors after which a transaction is repeated.

    A deadlock is an `OperationalError`. Two drivers that create one table at once get one of the others, by the moment
    at which they meet.
    """
    from psycopg import OperationalError, errors

    return OperationalError, errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateObject


def _names(target: _Target) -> dict[str, Any]:
    from psycopg import sql

    *schema, name = target.table
    columns = [sql.Identifier(column) for column in target.types]
    return {
        "table": sql.Identifier(*target.table),
        "side": sql.Identifier(*schema, f"{name}_conflicts"),
        "staged": sql.Identifier("pg_temp", "msgid_staged"),
        "fresh": sql.Identifier("pg_temp", "msgid_fresh"),
        "key": sql.Identifier(target.key),
        "order": sql.SQL('{} COLLATE "C"' if target.types[target.key] == "text" else "{}").format(
            sql.Identifier(target.key)
        ),
        "columns": sql.SQL(", ").join(columns),
        "ours": sql.SQL(", ").join(sql.SQL("msgid_new.{}").format(column) for column in columns),
        "theirs": sql.SQL(", ").join(sql.SQL("msgid_held.{}").format(column) for column in columns),
    }


def _run(connection: Any, statement: str, names: dict[str, Any], values: Any = ()) -> Any:
    """Run a statement with names in ``{}`` and values at ``%s``; a name may have a ``%``."""
    from psycopg import sql

    quoted = {name: sql.SQL(part.as_string(connection).replace("%", "%%")) for name, part in names.items()}
    return connection.execute(sql.SQL(statement).format(**quoted), values)


def _prepare(connection: Any, target: _Target) -> None:
    """Create missing tables, and check an existing table."""
    from psycopg import sql

    names = _names(target)
    if connection.execute("SELECT to_regclass(%s)", [names["table"].as_string(connection)]).fetchone()[0] is None:
        names["definitions"] = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(type))  # a type from `column_types`
            for name, type in target.types.items()
        )
        _run(connection, "CREATE TABLE {table} ({definitions}, PRIMARY KEY ({key}))", names)
    else:
        _check_table(connection, target, names)
    if connection.execute("SELECT to_regclass(%s)", [names["side"].as_string(connection)]).fetchone()[0] is None:
        columns = "fingerprint text PRIMARY KEY, key text, row text NOT NULL, reason text NOT NULL"
        _run(connection, f"CREATE TABLE {{side}} ({columns}, at timestamptz NOT NULL DEFAULT now())", names)
    for statement in _PLANNED:
        _run(connection, f"EXPLAIN {statement}", names)


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
            raise PostgresError(
                f"cannot write to table {'.'.join(target.table)}: column {name!r} must be {type}, and {found}"
            )
    unique = connection.execute(
        "SELECT 1 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] WHERE "
        "i.indrelid = %s AND i.indisunique AND i.indnkeyatts = 1 AND i.indpred IS NULL "
        "AND i.indisvalid AND i.indimmediate AND a.attname = %s",
        [oid, target.key],
    ).fetchone()
    if unique is None:
        raise PostgresError(
            f"cannot write to table {'.'.join(target.table)}: it must have a unique index on {target.key!r}"
        )


def _insert(target: _Target, batches: Iterable[pa.RecordBatch]) -> Upserted:
    """Insert a partition's rows in one transaction.

    The rows are kept until the commit: if the connection breaks, it is opened again, and the rows are sent again. More
    rows than a slice are on the local disk.
    """
    with closing(_Slices(batches)) as slices:
        if not slices:
            return Upserted(0, 0, 0)
        counts: Upserted = _with_retries(target, lambda connection: _insert_slices(connection, target, slices))
    return counts


class _Slices:
    """The rows of a partition in slices: the only one is in memory, several are on the local disk."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._spill: Spill | None = None
        self._places: list[list[Place]] = []
        self._last: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            for first in range(0, batch.num_rows, SLICE.rows):
                part = batch.slice(first, SLICE.rows)
                if self._last and SLICE.share(rows + part.num_rows, size + part.nbytes) > 1:
                    self._put()
                    rows = size = 0
                self._last.append(part)
                rows += part.num_rows
                size += part.nbytes

    def __bool__(self) -> bool:
        return bool(self._last)

    def __iter__(self) -> Iterator[pa.Table]:
        import pyarrow as pa

        if self._spill is not None:
            yield from map(self._spill.table, self._places)
        yield pa.Table.from_batches(self._last)

    def close(self) -> None:
        """Delete the file."""
        if self._spill is not None:
            self._spill.close()

    def _put(self) -> None:
        self._spill = self._spill or Spill()
        self._places.append([self._spill.write(written(batch)) for batch in self._last])
        self._last = []


def _insert_slices(connection: Any, target: _Target, slices: Iterable[pa.Table]) -> Upserted:
    names = _names(target)
    connection.execute("SET CONSTRAINTS ALL IMMEDIATE")  # a row that breaks one is refused, and not the whole commit
    for copied in ("{staged} ON COMMIT DROP AS SELECT {columns}", "{fresh} ON COMMIT DROP AS SELECT {key}"):
        _run(connection, f"CREATE TEMPORARY TABLE {copied} FROM {{table}} WITH NO DATA", names)
    return _sum(_insert_slice(connection, target, names, rows) for rows in slices)


def _insert_slice(connection: Any, target: _Target, names: dict[str, Any], rows: pa.Table) -> Upserted:
    reasons = rows.column(REASON)
    bad = reasons.drop_null().to_pylist()
    for text in bad:
        reason, _, row = text.partition("\n")
        _keep_aside(connection, names, None, row, reason)
    good = rows.filter(reasons.is_null()).select(list(range(len(target.types))))
    counts = _insert_rows(connection, target, names, good) if good.num_rows else Upserted(0, 0, 0)
    return counts._replace(conflicts=counts.conflicts + len(bad))


def _sum(counts: Iterable[Upserted]) -> Upserted:
    return Upserted(*map(sum, zip(*counts, strict=True)))


def _insert_rows(connection: Any, target: _Target, names: dict[str, Any], rows: pa.Table) -> Upserted:
    """Insert rows; if the table does not take one of them, each half is inserted by itself."""
    import psycopg

    try:
        with connection.transaction():
            return _insert_staged(connection, target, names, rows)
    except psycopg.Error as error:
        if not _is_refusal(error):
            raise
        reason = error.diag.message_primary or type(error).__name__
    if rows.num_rows > 1:
        half = rows.num_rows // 2
        return _sum(_insert_rows(connection, target, names, part) for part in (rows[:half], rows[half:]))
    _refuse(connection, target, names, rows, reason)
    return Upserted(0, 0, 1)


def _refuse(connection: Any, target: _Target, names: dict[str, Any], rows: pa.Table, reason: str) -> None:
    """Store a row that the table does not take in the side table.

    The row has the form of a row with another content, so a row that is kept for both reasons is stored once.
    """
    import psycopg

    try:
        with connection.transaction(), _written_alike(connection):
            _stage(connection, target, names, rows)
            _run(
                connection,
                "INSERT INTO {side} (fingerprint, key, row, reason) SELECT md5(row), key, row, %s FROM "
                "(SELECT {key}::text AS key, to_jsonb(msgid_new)::text AS row FROM {staged} msgid_new) other "
                "ON CONFLICT DO NOTHING",
                names,
                [reason],
            )
    except psycopg.Error as error:
        if not _is_refusal(error):
            raise
        # The temporary table does not take the row either: the database's encoding lacks one of its characters.
        row = {name: texts[0].as_py() for name, texts in zip(target.types, _texts(rows, target), strict=True)}
        _keep_aside(connection, names, row[target.key], json.dumps(row, ensure_ascii=False), reason)


def _is_refusal(error: psycopg.Error) -> bool:
    """Return whether the table does not take a row: by a constraint, a limit, a trigger, or its encoding."""
    return (error.sqlstate or "")[:2] in _REFUSALS


def _stage(connection: Any, target: _Target, names: dict[str, Any], rows: pa.Table) -> None:
    """Copy rows to the temporary table."""
    from psycopg import sql

    _run(connection, "TRUNCATE {staged}, {fresh}", names)
    with connection.cursor() as cursor:
        statement = sql.SQL("COPY {staged} ({columns}) FROM STDIN (FORMAT csv)").format(**names)
        with cursor.copy(statement) as copy:
            for part in rows.to_batches(_COPIED):
                copy.write(_csv_lines(part, target))


def _insert_staged(connection: Any, target: _Target, names: dict[str, Any], rows: pa.Table) -> Upserted:
    _stage(connection, target, names, rows)
    # In the order of the key, as the slices are, so that two transactions rarely wait for each other in a circle.
    inserted = _run(
        connection,
        "WITH made AS (INSERT INTO {table} ({columns}) SELECT {columns} FROM {staged} ORDER BY {order} "
        "ON CONFLICT ({key}) DO NOTHING RETURNING {key}) INSERT INTO {fresh} SELECT {key} FROM made",
        names,
    ).rowcount
    differs = (
        "SELECT EXISTS (SELECT FROM {staged} msgid_new LEFT JOIN {table} msgid_held "
        "ON msgid_held.{key} = msgid_new.{key} WHERE ROW({ours}) IS DISTINCT FROM ROW({theirs}))"
    )
    if not _run(connection, differs, names).fetchone()[0]:
        return Upserted(inserted, rows.num_rows - inserted, 0)
    # If two partitions insert one key at once, the second waits for the first and compares with the stored row. Of the
    # rows of a fresh key, the one that is most like the stored row was inserted: a trigger may have changed it.
    statement = (
        "WITH compared AS (SELECT msgid_new, msgid_held.{key} IS NULL AS missing, "
        "ROW({ours}) IS DISTINCT FROM ROW({theirs}) AS differs, msgid_fresh.{key} IS NOT NULL AS fresh "
        "FROM {staged} msgid_new LEFT JOIN {table} msgid_held ON msgid_held.{key} = msgid_new.{key} "
        "LEFT JOIN {fresh} msgid_fresh ON msgid_fresh.{key} = msgid_new.{key}), "
        "judged AS (SELECT *, fresh AND row_number() OVER (PARTITION BY (msgid_new).{key} ORDER BY differs) = 1 "
        "AS made FROM compared), "
        "other AS (SELECT (msgid_new).{key}::text AS key, to_jsonb(msgid_new)::text AS row, CASE WHEN missing "
        "THEN 'the database did not store it' ELSE 'another content under this key' END AS reason "
        "FROM judged WHERE differs AND NOT made), "
        "kept AS (INSERT INTO {side} (fingerprint, key, row, reason) "
        "SELECT DISTINCT ON (1) md5(row), key, row, reason FROM other ORDER BY 1 ON CONFLICT DO NOTHING) "
        "SELECT count(*) FILTER (WHERE made), count(*) FILTER (WHERE NOT made AND NOT differs), "
        "count(*) FILTER (WHERE NOT made AND differs) FROM judged"
    )
    with _written_alike(connection):
        counts = _run(connection, statement, names).fetchone()
    return Upserted(*counts)


@contextmanager
def _written_alike(connection: Any) -> Iterator[None]:
    """Let the database write a row as the same JSON for any settings of the server and the role.

    The settings are restored, because triggers and defaults of the table may depend on them. An error restores them,
    too: it ends the transaction.
    """
    change = "SELECT set_config(key, value, true) FROM json_each_text(%s::json)"
    held = "SELECT json_object_agg(name, current_setting(name)) FROM unnest(%s::text[]) AS name"
    earlier = connection.execute(held, [list(_WRITTEN_AS)]).fetchone()[0]
    connection.execute(change, [json.dumps(_WRITTEN_AS)])
    yield
    connection.execute(change, [json.dumps(earlier)])


def _keep_aside(connection: Any, names: dict[str, Any], key: str | None, row: str, reason: str) -> None:
    """Store a row in the side table, once; characters that the database's encoding may lack are JSON escapes."""
    texts: list[str | None] = [key, row, reason]
    if connection.info.parameter_status("server_encoding") not in ("UTF8", "SQL_ASCII"):
        texts = [text and re.sub(r"[^\x00-\x7f]", lambda found: json.dumps(found[0])[1:-1], text) for text in texts]
    statement = (
        "INSERT INTO {side} (fingerprint, key, row, reason) VALUES (md5(%s || %s), %s, %s, %s) ON CONFLICT DO NOTHING"
    )
    _run(connection, statement, names, [texts[1], texts[2], *texts])


def _texts(rows: pa.Table | pa.RecordBatch, target: _Target) -> list[pa.Array]:
    """Return the columns as the text that PostgreSQL reads."""
    import pyarrow as pa

    texts = []
    for column, type in zip(rows.columns, target.types.values(), strict=True):
        if type == "bytea":  # Arrow cannot convert bytes to hex digits
            values = [None if value is None else "\\x" + value.hex() for value in column.to_pylist()]
            texts.append(pa.array(values, pa.string()))
        elif type == "timestamp with time zone":
            texts.append(column.cast(pa.timestamp("us", "UTC")).cast(pa.string()))
        else:
            texts.append(column.cast(pa.string()))
    return texts


def _csv_lines(batch: pa.RecordBatch, target: _Target) -> bytes:
    """Return a batch as the lines of ``COPY ... (FORMAT csv)``: NULL is an empty field, and empty text is quoted."""
    import pyarrow as pa
    from pyarrow import csv

    out = io.BytesIO()
    options = csv.WriteOptions(include_header=False, quoting_style="all_valid")
    csv.write_csv(pa.RecordBatch.from_arrays(_texts(batch, target), batch.schema.names), out, options)
    return out.getvalue()
