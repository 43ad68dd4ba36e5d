"""The records of `write_once` in an Iceberg table: the rules of names and records, without Spark.

The properties of a table have the records. Their text stands in the key, because Spark hides values whose key looks
like a password:

- ``msgid.batch/WRITER/FIRST-LAST`` has the last batch of a writer, and the first batch of the series without a gap that
  ends with it.
- ``msgid.publishing/WRITER/BATCH/SNAPSHOT`` is set before a batch is published, with the table's snapshot at that time.
  So a batch that was published, and not recorded because its process ended, is found.
- ``msgid.query/WRITER/QUERY`` has the query of a chosen name.

A branch ``msgid-WRITER-BATCH-TOKEN`` stages the rows of a batch. Spark asks a REST catalog for its name as part of a
URL, and servers refuse a name with a slash.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from spark_ext.tables._writers import TableConflict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from spark_ext.tables._writers import Writer

_PART: Final = r"(?:\w+|`[^`'\"\\/\x00-\x1f\x7f]+`)"
_NAME: Final = re.compile(rf"{_PART}(?:\.{_PART})+")
_SELECTORS: Final = ("branch_", "tag_", "at_timestamp_", "snapshot_id_", "changelog")
"""Iceberg takes a last part of such a name for a version of the table that the other parts name."""
_BATCH, _PUBLISHING, _QUERY, _BRANCH = "msgid.batch/", "msgid.publishing/", "msgid.query/", "msgid-"
NO_SNAPSHOT: Final = "none"
"""The value of the property ``current-snapshot-id`` of a table that has never had rows."""


class Series(NamedTuple):
    """Batches of a writer without a gap in their numbers; ``last`` is the last batch that was recorded."""

    first: int
    last: int


class Snapshot(NamedTuple):
    """A snapshot of a table."""

    parent: int | None
    id: str | None
    """The ID of the batch whose rows it adds: as it was staged, or as it was published."""
    source: int | None
    """The staged snapshot from which it was published."""


def parts_of(name: str) -> list[str]:
    """Return the parts of a table's name, without their quotes.

    Raises
    ------
    ValueError
        if it is not a name of at least two parts, or if it names a branch, a tag or a version of a table.

    Examples
    --------
    >>> parts_of("lake.db.`a b`")
    ['lake', 'db', 'a b']
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"an Iceberg table must have a name such as 'catalog.db.table', got {name!r}; put a part with other signs "
            "than letters, digits and '_' between '`'"
        )
    parts = [part.strip("`") for part in re.findall(_PART, name)]
    if parts[-1].lower().startswith(_SELECTORS):
        raise ValueError(f"the name of an Iceberg table must not select a version of the table, got {name!r}")
    return parts


def partitions_of(description: list[tuple[str, str]]) -> tuple[str, ...]:
    """Return the columns and functions by which a table is partitioned, from the rows of ``DESCRIBE TABLE``.

    Examples
    --------
    >>> partitions_of([("k", "string"), ("# Partition Information", ""), ("# col_name", "data_type"), ("k", "string")])
    ('k',)
    >>> partitions_of([("k", "string"), ("# Partitioning", ""), ("Part 0", "k"), ("Part 1", "days(at)")])
    ('k', 'days(at)')
    """
    heads = [name for name, _ in description]
    if "# Partition Information" in heads:  # columns alone
        found = heads[heads.index("# Partition Information") + 2 :]
    elif "# Partitioning" in heads:
        found = [type for name, type in description[heads.index("# Partitioning") + 1 :] if name.startswith("Part ")]
    else:
        found = []
    return tuple(name.removeprefix("`").removesuffix("`") for name in found if name)


def quoted(parts: Iterable[str]) -> str:
    """Return a name for SQL.

    Examples
    --------
    >>> quoted(["lake", "db", "a b"])
    '`lake`.`db`.`a b`'
    """
    return ".".join(f"`{part}`" for part in parts)


def batch_of(writer: Writer, batch_id: int) -> str:
    """Return the ID of a batch, which Iceberg publishes once."""
    return f"msgid/{writer.name}/{batch_id}"


def branch_of(writer: Writer, batch_id: int, token: str) -> str:
    """Return the name of the branch that stages the rows of a batch.

    Examples
    --------
    >>> from spark_ext.tables._writers import Writer
    >>> writer = Writer("orders", query=None, chosen=True)
    >>> staged_batch(branch_of(writer, 7, "f00d"), writer), staged_batch("main", writer)
    (7, None)
    """
    return f"{_BRANCH}{writer.name}-{batch_id}-{token}"


def staged_batch(branch: str, writer: Writer) -> int | None:
    """Return the number of the batch that a branch stages for a writer; None for other branches."""
    found = re.fullmatch(rf"{_BRANCH}{re.escape(writer.name)}-(\d+)-\w+", branch)
    return None if found is None else int(found[1])


def series_of(properties: Iterable[str], writer: Writer) -> list[Series]:
    """Return the records of a writer in the properties of a table, the last one first.

    Examples
    --------
    >>> from spark_ext.tables._writers import Writer
    >>> series_of(["msgid.batch/a/0-7", "msgid.batch/a/0-8", "msgid.batch/b/3-9"], Writer("a", None, True))
    [Series(first=0, last=8), Series(first=0, last=7)]
    """
    pattern = re.compile(rf"{_BATCH}{re.escape(writer.name)}/(\d+)-(\d+)")
    found = [match for key in properties if (match := pattern.fullmatch(key))]
    return sorted((Series(int(match[1]), int(match[2])) for match in found), key=lambda one: one.last, reverse=True)


def publishing_key(writer: Writer, batch_id: int, snapshot: str) -> str:
    """Return the key that says that a batch will be published after a snapshot of the table."""
    return f"{_PUBLISHING}{writer.name}/{batch_id}/{snapshot}"


def publishing_keys(properties: Iterable[str], writer: Writer) -> dict[str, tuple[int, str]]:
    """Return the keys of `publishing_key` in the properties of a table, with the batch and the snapshot of each.

    Examples
    --------
    >>> from spark_ext.tables._writers import Writer
    >>> publishing_keys(["msgid.publishing/a/7/123", "msgid.publishing/b/8/none"], Writer("a", None, True))
    {'msgid.publishing/a/7/123': (7, '123')}
    """
    pattern = re.compile(rf"{_PUBLISHING}{re.escape(writer.name)}/(\d+)/(\d+|{NO_SNAPSHOT})")
    return {key: (int(match[1]), match[2]) for key in properties if (match := pattern.fullmatch(key))}


def key_of(series: Series, writer: Writer) -> str:
    """Return the key of the property that records a series."""
    return f"{_BATCH}{writer.name}/{series.first}-{series.last}"


def extended(recorded: list[Series], batch_id: int) -> Series:
    """Return the series that ends with a batch that has just been published."""
    last = recorded[0] if recorded else None
    return Series(last.first if last is not None and batch_id == last.last + 1 else batch_id, batch_id)


def is_recorded(recorded: list[Series], batch_id: int, writer: Writer, table: str) -> bool:
    """Return whether a batch is recorded as written.

    Raises
    ------
    TableConflict
        if the batch is before the last series: two numbers do not tell which of those batches were written.
    """
    if not recorded or batch_id > recorded[0].last:
        return False
    if batch_id < recorded[0].first:
        raise TableConflict(
            f"cannot tell whether batch {batch_id} of {writer.name!r} is in {table}: the table knows the batches "
            f"{recorded[0].first} to {recorded[0].last}. If its rows are missing, write it with another app_id; "
            "otherwise skip it"
        )
    return True


def publication(
    snapshots: Mapping[int, Snapshot], head: int | None, id: str, bases: Iterable[str]
) -> tuple[bool, int | None]:
    """Return whether the history of a table tells if a batch is published, and the staged snapshot with its rows.

    The history goes from the last snapshot back to the first one, or to one that has expired. A batch is published
    after the snapshot that its `publishing_key` names, so a history that goes back to that snapshot is long enough.

    Parameters
    ----------
    snapshots : dict of int to Snapshot
        the snapshots that have not expired.
    head : int, optional
        the last snapshot of the table; None if it is empty.
    id : str
        the ID of the batch.
    bases : iterable of str
        the snapshots that the `publishing_key` of each attempt names.
    """
    missing = set(bases)
    while head is not None:
        missing.discard(str(head))
        snapshot = snapshots.get(head)
        if snapshot is None:
            return not missing, None
        if snapshot.id == id:
            return True, head if snapshot.source is None else snapshot.source
        head = snapshot.parent
    return True, None


def query_keys(writer: Writer) -> list[str]:
    """Return the key that names the query of a chosen name."""
    return [f"{_QUERY}{writer.name}/{writer.query}"] if writer.query is not None and writer.chosen else []


def check_queries(properties: Iterable[str], writer: Writer, table: str) -> None:
    """Check that a table does not have a record of another query.

    Raises
    ------
    TableConflict
        if it has one.
    """
    held = list(properties)
    for key in query_keys(writer):
        prefix = key.rpartition("/")[0] + "/"
        if all(other == key for other in held if other.startswith(prefix)):
            continue
        raise TableConflict(
            f"cannot write to {table}: its writer {writer.name!r} is another query than {writer.query}. "
            "Restore that query's checkpoint, or choose another app_id"
        )


def unknown_batch(recorded: list[Series], writer: Writer, batch_id: int, table: str) -> TableConflict:
    """Return the error for a batch that may have been published in a part of the history that has expired."""
    written = key_of(extended(recorded, batch_id), writer)
    return TableConflict(
        f"cannot tell whether batch {batch_id} of {writer.name!r} is in {table}: an attempt ended before it recorded "
        "the batch, and the table's snapshots since then have expired. If its rows are missing, unset the table "
        f"properties that begin with {publishing_key(writer, batch_id, '')!r}; otherwise set {written!r} = ''"
    )
