"""Read: the columns of a table that an audit reads, by their names or by the arguments that name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgid.shared import known_tables
from msgid.shared.known_tables import CANONICAL, JOB_TABLES, KIND, Columns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from msgid.shared.known_tables import Inside, KnownTable


def known_columns(names: Iterable[str]) -> Columns | None:
    """Return the columns of a table that this library or a connector has written, or that have telling names.

    These are ``source``, ``offset``, ``timestamp``, ``landed`` and ``content``. Any other table has None.

    >>> known_columns(["id", "source", "offset", "state", "timestamp", "payload"]).content
    ('payload',)
    >>> known_columns(["offset", "landed"])._replace(id=None).names
    {'offset': 'offset', 'landed': 'landed'}
    >>> known_columns(["a", "b"])
    """
    present = set(names)
    bases = (name.removesuffix(f"_{CANONICAL}") for name in sorted(present) if name.endswith(f"_{CANONICAL}"))
    id = next((base for base in bases if {base, f"{base}_{KIND}"} <= present), "id" if "id" in present else None)
    table = known_table(present)
    offset, timestamp, landed = (name if name in present else None for name in ("offset", "timestamp", "landed"))
    if table is None:
        if id is None and offset is None:
            return None
        # A source without offsets does not name a log.
        source = ("source",) if "source" in present and offset else ()
        content = ("content",) if "content" in present else ()
        return Columns(id, source, "", offset, timestamp, landed, content)
    columns = table.columns
    return columns._replace(
        id=columns.id or id,
        timestamp=columns.timestamp if columns.timestamp in present else None,
        landed=landed,
        content=tuple(name for name in (*columns.content, "content") if name in present),
    )


_OF_LOGS: Final = {"cluster", "stream", "topic", "partition", "queue", "queueid", "queue_id", "shard"}
"""Names of columns in lower case that tell one log from another."""


def chosen_columns(names: Collection[str], named: Mapping[str, Any]) -> Columns:
    """Return the columns that a caller names. Each column that is not named is found by its name, if it is known.

    An empty name, or an empty list, stands for no column. So does None for the IDs, if another column is named.

    Raises:
        ValueError: if the table has offsets and columns of logs, but the caller does not say which name the log.

    >>> chosen_columns(["id", "offset", "content", "made"], {"id": "id", "timestamp": "made"}).names
    {'id': 'id', 'offset': 'offset', 'timestamp': 'made', 'content 0': 'content'}
    >>> chosen_columns(["id", "offset", "content"], {"id": None, "offset": "offset", "content": ()}).names
    {'offset': 'offset'}
    """
    known = known_columns(names) or Columns(None)
    id, source, content = (named.get(name) for name in ("id", "source", "content"))
    is_named = any(named.get(name) is not None for name in ("source", "offset", "timestamp", "content"))

    def chosen(name: str) -> str | None:
        return getattr(known, name) if named.get(name) is None else named[name] or None

    columns = Columns(
        known.id if id == "id" or (id is None and not is_named) else id or None,
        offset=chosen("offset"),
        timestamp=chosen("timestamp"),
        landed=chosen("landed"),
        content=known.content if content is None else tuple(content),
        parent=named.get("parent"),
        incarnation=named.get("incarnation"),
    )
    if source is not None:
        columns = columns._replace(source=tuple(source))
    elif columns.offset is not None:
        telling = known.source or (("source",) if "source" in names else ())
        of_logs = [] if telling else [name for name in names if name.lower() in _OF_LOGS]
        if of_logs:
            unclear = f"the offsets are of one log or of several: pass `source`, such as {', '.join(of_logs)}"
            raise ValueError(f"{unclear}, or an empty one for one log")
        columns = columns._replace(source=telling, prefix=known.prefix)
    is_empty = columns.id is None and columns.offset is None
    return columns._replace(id="id") if is_empty and id == "id" else columns  # the error names this column


def known_table(names: Collection[str]) -> KnownTable | None:
    """Return the known table with these columns; None for any other table."""
    fitting = (table for table in _known_tables() if set(names).issuperset(table.needs))
    return max(fitting, key=lambda table: len(table.needs), default=None)


def ids_inside(names: Collection[str], named: Mapping[str, Any]) -> Inside | None:
    """Return where a table keeps its IDs, if an audit must complete its rows first.

    Args:
        names: The columns of the table.
        named: The arguments of the audit that name columns; None for those that are not passed.

    Returns:
        None if the table has a column of IDs, or if the caller names one or turns it off.
    """
    known = known_table(names)
    inside = None if known is None else known.inside
    is_named = any(named[name] is not None for name in ("id", "source", "offset", "timestamp", "content"))
    by_default = (named["id"] == "id" or not is_named) and "id" not in names
    return inside if inside is not None and inside.column in names and by_default else None


def _known_tables() -> Iterator[KnownTable]:
    from msgid import kafka, rocketmq
    from msgid.iggy import table

    yield from (job.known for job in JOB_TABLES if job.known is not None)
    yield from (kafka.ROWS, rocketmq.ROWS, table.ROWS)
    yield from known_tables.registered.values()
