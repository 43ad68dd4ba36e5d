"""Delete or mark the expired segments of a Delta message table in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from spark_ext.tables._delta import open_table, read_files
from spark_ext.tables._segment_folders import MARKED, TableBusy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

_ATTEMPTS: Final = 5


def clean_rows(
    spark: SparkSession,
    path: str,
    judge: Callable[[DataFrame], list[dict[str, Any]]],
    *,
    dry_run: bool,
    mark: bool,
    storage_options: dict[str, str] | None,
) -> list[dict[str, Any]]:
    """Check the segments of one version of a Delta table, and delete or mark the expired segments in one commit.

    If another commit comes first, the new version is checked.

    Parameters
    ----------
    spark : SparkSession
        the session.
    path : str
        the table's folder.
    judge : function
        returns one row per segment of a DataFrame, with the columns of its key and ``expired``.
    dry_run : bool
        whether to commit nothing.
    mark : bool
        whether to set the state instead of deleting the rows.
    storage_options : dict of str to str, optional
        as for `read_table`.

    Returns
    -------
    list of dict
        the rows of ``judge``.
    """
    from deltalake.exceptions import CommitFailedError

    for _ in range(_ATTEMPTS):
        table = open_table(path, storage_options)
        if table is None:
            raise FileNotFoundError(f"cannot find a Delta table at {path}")
        rows = judge(read_files(spark, path, storage_options))
        expired = [row for row in rows if row["expired"]]
        if dry_run or not expired:
            return rows
        latest = open_table(path, storage_options)
        if latest is None or latest.version() != table.version():
            continue  # the version that was checked is unknown
        predicate = _predicate(expired)
        try:
            if mark:
                unmarked = f"({predicate}) AND (state IS NULL OR state <> {_literal(MARKED)})"
                table.update(updates={"state": _literal(MARKED)}, predicate=unmarked)
            else:
                table.delete(predicate)
        except CommitFailedError:
            continue
        return rows
    raise TableBusy(f"{path} is being written to: {_ATTEMPTS} commits of others came first")


def _predicate(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the condition that a row is in one of these segments; its depth is logarithmic in their number."""
    numbers: dict[tuple[Any, ...], list[int]] = {}
    names = [name for name in ("source", "topic", "partition") if name in rows[0]]
    for row in rows:
        numbers.setdefault(tuple(row[name] for name in names), []).append(int(row["segment"]))
    terms = [
        " AND ".join([*map(_equals, names, key), f"segment IN ({', '.join(map(str, found))})"])
        for key, found in numbers.items()
    ]
    while len(terms) > 1:
        pairs = [terms[place : place + 2] for place in range(0, len(terms), 2)]
        terms = [" OR ".join(f"({term})" for term in pair) for pair in pairs]
    return terms[0]


def _equals(name: str, value: Any) -> str:
    return f"{name} IS NULL" if value is None else f"{name} = {_literal(value)}"


def _literal(value: Any) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
