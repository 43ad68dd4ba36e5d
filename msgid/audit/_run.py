"""Run an audit: read a table, reduce it to facts, and report them."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from msgid.audit._roles import Roles, check_moments
from msgid.audit._sources import open_file, open_frame, read_error
from msgid.audit.duck import Duck
from msgid.audit.inputs import checked_columns
from msgid.audit.known_columns import ids_inside
from msgid.audit.lists import Lists
from msgid.audit.options import Rules, columns_in, limits_in, rules_in
from msgid.audit.reduction import facts_of
from msgid.audit.report import report_of
from msgid.ids.carriers import check_ids
from msgid.shared.known_tables import Columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    from typing_extensions import Unpack

    from msgid.audit.definitions import Format
    from msgid.audit.facts import Facts
    from msgid.audit.options import AuditOptions
    from msgid.audit.parts import Source
    from msgid.audit.reduction import Reduction, Relations
    from msgid.audit.report import Report


def audit_table(table: Any, **options: Unpack[AuditOptions]) -> Report:
    """Return the report of the lost, repeated and late messages in a table, by their IDs and positions.

    Args:
        table: Arrow table, one row per message; a DataFrame of pandas or polars, a relation of DuckDB, or any other
            table that exports a stream of Arrow; a dict of columns; a list of dicts, one per row; or a list, array or
            series of IDs. Only the columns in use are read.
        **options: The columns and the rules, as `AuditOptions` explains. Known columns need no argument.

    Returns:
        The report.

    Raises:
        TypeError: if ``table`` is not a table, or an option has another name.
        ValueError: if the table does not have a column, or a column has the wrong type.

    >>> import pyarrow as pa
    >>> report = audit_table(pa.table({"offset": [0, 1, 2, 6, 7, 7]}), id=None, offset="offset")
    >>> print(report)  # doctest: +ELLIPSIS
    3 messages lost, 1 duplicated in 6 rows
    re-read these ranges: log 3 to 5
    not checked: conflicting_messages (without content); conflicting_ids and 13 others (without IDs); ...
    severity  check               scope  count  example
    error     missing_offsets     log        3  3 to 5
    error     duplicate_messages  log        1  offset 7
    >>> report.gaps
    [Gap(kind='offset', scope='log', first=3, last=5, count=3)]
    """
    named, rules, limits = columns_in("audit_table", options, is_audit=True), rules_in(options), limits_in(options)
    duck = Duck(limits)
    return _audited(duck, open_frame(duck, table), named, rules)


def audit_ids(ids: Iterable[Any], **options: Unpack[AuditOptions]) -> Report:
    """Return the report of missing, repeated and malformed IDs, without positions of messages.

    Args:
        ids: IDs as `msgid.parse` accepts them, and UUIDs: an iterable, a NumPy or Arrow array as for
            `msgid.parse_batch`, or a series of pandas or polars. NaN and masked values are NULL.
        **options: The rules, as `AuditOptions` explains.

    Raises:
        TypeError: if ``ids`` is a single text or bytes, or a table.

    >>> from msgid import Generator
    >>> generator = Generator(node="56:f7:e7:1c:36:1b", pid=7, clock=lambda: 1_800_000_000, sequence=0)
    >>> ids = generator.generate_batch(10).hex()
    >>> audit_ids(ids[:4] + ids[6:]).gaps
    [Gap(kind='sequence', scope='56:f7:e7:1c:36:1b/7', first=4, last=5, count=2)]
    """
    named, rules, limits = columns_in("audit_ids", options, is_audit=True), rules_in(options), limits_in(options)
    check_ids(ids)
    duck = Duck(limits)
    return _audited(duck, open_frame(duck, {"id": ids}), named, rules)


def audit_file(
    path: str | PathLike[str] | Sequence[str | PathLike[str]] | IO[bytes],
    *,
    format: Format | None = None,
    delimiter: str | None = None,
    header: bool = True,
    **options: Unpack[AuditOptions],
) -> Report:
    r"""Return the report of the lost, repeated and late messages in files.

    Args:
        path: Text with one ID per line, CSV or TSV with a header, JSON lines, Parquet or Arrow, by its ending; several
            such files, a pattern such as ``*.csv``, or a folder of them, which may be the output of a job. Text is
            UTF-8, and may be compressed. A binary file that is open for reading, such as standard input, is read to its
            end; its first bytes tell the format, as those of a file without an ending.
        format: ``csv``, ``tsv``, ``json``, ``parquet``, ``arrow`` or ``text``, for a file of another ending.
        delimiter: The character between two cells of CSV. Default: a comma, or a tab in TSV.
        header: Whether the first line of CSV names the columns. Else they are ``column0``, ``column1`` and so on.
        **options: The columns and the rules, as `AuditOptions` explains. Text with one ID per line needs no column.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if the file does not have a column, or cannot be read as a table.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/ids.txt"
    >>> with open(path, "w") as file:
    ...     print("0156F7E71C361B21BC024CCDBE00000007", "not an ID", sep="\\n", file=file)
    >>> audit_file(path).findings[0].check
    'malformed_ids'
    """
    named, rules, limits = columns_in("audit_file", options, is_audit=True), rules_in(options), limits_in(options)
    duck = Duck(limits)
    return _audited(duck, open_file(duck, path, format=format, delimiter=delimiter, header=header), named, rules)


def audited(duck: Duck, source: Source, named: Mapping[str, Any]) -> tuple[Source, Columns]:
    """Return a table, with its IDs if another column of a known table has them, and its columns.

    Args:
        duck: The connection.
        source: The table.
        named: The arguments that name columns, as `msgid.audit.options.columns_in` returns them.

    Raises:
        ValueError: if the table does not have a column, or has nothing to audit.
    """
    names = [*source.columns]
    inside = ids_inside(names, named)
    if inside is not None:
        table = duck.table(source.scan(source.readable))
        source = open_frame(duck, inside.complete(table))
        names = [*source.columns]
    return source, checked_columns(names, named)


def _audited(duck: Duck, source: Source, named: Mapping[str, Any], rules: Rules) -> Report:
    """Return the report of a table."""
    import duckdb

    try:
        source, columns = audited(duck, source, named)
        roles = Roles(duck, source, columns, rules)
        duck.show_rows_of(roles.base)
        relations = roles.relations()
        facts, reduction = facts_of(duck, relations, rules, columns.given)
        facts = _with_moments(duck, source, columns, facts, relations, reduction)
    except duckdb.Error as error:
        raise read_error(source, error) from None
    report = report_of(facts, rules)
    lists = Lists(roles, relations, reduction, rules, report.findings)
    report._rows, report._copy = lists, lists.write
    return report


def _with_moments(
    duck: Duck, source: Source, columns: Columns, facts: Facts, relations: Relations, reduction: Reduction
) -> Facts:
    """Return the facts with the number of rows without a moment.

    Raises:
        ValueError: if the unit or the zone of a column is wrong.
    """
    numbers = "count(*), count(sent), count(landed), max(sent), max(landed)", relations.base
    if columns.offset is not None:
        numbers = "sum(n), sum(timed), sum(dated), max(last_time), max(last_landed)", reduction.relation("blocks")
    ((rows, timed, landed, *lasts),) = duck.rows("SELECT {} FROM {}".format(*numbers))
    given = (("timestamp", columns.timestamp, timed), ("landed", columns.landed, landed))
    for (argument, name, read), last in zip(given, lasts, strict=True):
        if name is not None and rows:
            check_moments(duck, source, argument, name, last, unread=not read)
    untimed, unlanded = (rows - read if rows and name is not None else 0 for _, name, read in given)
    return facts._replace(untimed=int(untimed), unlanded=int(unlanded))


def ids_and_times(
    path: str | PathLike[str] | IO[bytes], id: str | None, timestamp: str | None, format: Format | None
) -> tuple[list[Any], list[int | None] | None]:
    """Return the IDs of a file as it has them, and the messages' own times in milliseconds since 1970, or None.

    Args:
        path: The file, as for `audit_file`.
        id: Column of IDs. Default: that of a known table, or the lines of a text file.
        timestamp: Column of the messages' own times. Default: that of a known table.
        format: The format of the file, as for `audit_file`.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if the file cannot be read, or does not have a column.
    """
    duck = Duck()
    source = open_file(duck, path, format=format)
    source, columns = audited(duck, source, columns_in("doctor", {"id": id or "id", "timestamp": timestamp}))
    if columns.id is None:
        held = [*source.columns]
        raise ValueError(f"cannot tell who made the IDs: the table must have a column of IDs, got {held}")
    roles = Roles(duck, source, Columns(columns.id, timestamp=columns.timestamp), Rules())
    rows = duck.rows(f"SELECT id, sent FROM {roles.base}")
    times = None if columns.timestamp is None else [None if sent is None else sent // 1000 for _, sent in rows]
    return [id for id, _ in rows], times
