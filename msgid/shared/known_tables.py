"""Known tables: the folders and columns that the jobs write and the audits read, and the rows of queues' connectors.

A job takes its names from here, and so does an audit. A format whose rows are known has a `KnownTable` in its own
module; `msgid.audit.known_columns` finds the one that a table is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa


class Columns(NamedTuple):
    """The columns of a table that an audit reads, by name; None if the table does not have one.

    Attributes:
        id: IDs.
        source: Columns whose values, joined by ``/``, name the log; empty if the table is one log.
        prefix: Text in front of the name of the log.
        offset: Offsets in the log.
        timestamp: The messages' own times.
        landed: Times at which the rows were written.
        content: Columns by which rows of one ID or offset are compared.
        parent: IDs of the messages from which derived IDs were made.
        incarnation: The column that names the incarnation of a log.
    """

    id: str | None = "id"
    source: tuple[str, ...] = ()
    prefix: str = ""
    offset: str | None = None
    timestamp: str | None = None
    landed: str | None = None
    content: tuple[str, ...] = ()
    parent: str | None = None
    incarnation: str | None = None

    @property
    def names(self) -> dict[str, str]:
        """The columns by the argument that names them."""
        single = {"id": self.id, "offset": self.offset, "timestamp": self.timestamp, "landed": self.landed}
        named = {
            key: name
            for key, name in {**single, "parent": self.parent, "incarnation": self.incarnation}.items()
            if name is not None
        }
        several = {"source": self.source, "content": self.content}
        return named | {f"{key} {n}": name for key, names in several.items() for n, name in enumerate(names)}

    @property
    def given(self) -> dict[str, bool]:
        """Whether the ID, offset, timestamp, landed, content and parent are given."""
        names = ("id", "offset", "timestamp", "landed", "content", "parent")
        return {name: getattr(self, name) not in (None, ()) for name in names}


class Inside(NamedTuple):
    """Where the rows of a known table keep their IDs, if not in a column of IDs, and what completes the rows."""

    column: str
    format: str
    """The message format on Spark, which completes the rows there."""
    complete: Callable[[pa.Table], pa.Table]
    """Completes the rows in Python."""


class Named(NamedTuple):
    """The names of the message of a row, by the rules of its format."""

    id: str | None
    """None if the format refuses the row."""
    log: str | None
    """The log in which the offset of the row counts; None if the row does not tell."""


class KnownTable(NamedTuple):
    """A table that an audit knows by its columns."""

    columns: Columns
    """The columns that the audit reads. A time or content that is missing is left out; ``id`` None is any ID column."""
    needs: tuple[str, ...]
    """The columns that show this table. Of several tables that fit, the one that needs most is meant."""
    inside: Inside | None = None
    """None for rows with a column of IDs, or without IDs."""
    named: Callable[[Mapping[str, Any]], Named] | None = None
    """Returns the ID and the log of a row that does not have a column of IDs; None if the columns tell all."""


class JobTable(NamedTuple):
    """A table that a job writes to its output folder, and an audit reads."""

    folder: str
    """The name of the table's folder in the output folder."""
    types: dict[str, str]
    """The columns and their types on Spark; empty if the input decides."""
    known: KnownTable | None = None
    aside: str | None = None
    """The folder with further rows of the input, which belong to the table in an audit."""
    only: tuple[str, str] | None = None
    """The column and the value of the rows that an audit reads. Default: all rows."""


KIND, CANONICAL = "kind", "canonical"
"""The job ``ids`` adds columns such as ``id_kind`` and ``id_canonical`` to the column ``id``."""
NEW: Final = "new"
"""The kind of the outputs that the job ``process`` has written for the first time."""

QUARANTINE: Final = "quarantine"
"""The folder of the rows without a valid ID."""
IDS: Final = JobTable("ids", {}, aside=QUARANTINE)
MESSAGES: Final = JobTable(
    "messages",
    {
        "id": "string",
        "source": "string",
        "topic": "string",
        "partition": "int",
        "segment": "bigint",
        "offset": "bigint",
        "state": "string",
        "timestamp": "timestamp",
        "checksum": "bigint",
        "headers": "map<string, struct<kind: string, value: binary>>",
        "attributes": "map<string, string>",
        "schema": "struct<id: bigint, version: bigint>",
        "key": "binary",
        "payload": "binary",
        "reason": "string",
        "original": "binary",
        "layout": "string",
    },
    KnownTable(
        Columns("id", ("source",), offset="offset", timestamp="timestamp", content=("payload",)),
        ("id", "source", "offset", "state", "timestamp", "payload"),
    ),
)
OUTPUTS: Final = JobTable(
    "outputs",
    {
        "id": "string",
        "number": "int",
        "input_id": "string",
        "key": "string",
        "topic": "string",
        "body": "string",
        KIND: "string",
        "reason": "string",
    },
    KnownTable(Columns("id", content=("body",)), ("id", "number", "input_id", "body", KIND)),
    only=(KIND, NEW),
)
JOB_TABLES: Final = (IDS, MESSAGES, OUTPUTS)
"""The tables of the jobs, in the order in which an audit looks for them."""


_HIDDEN: Final = re.compile(r"_[^=]*|\..*|.*\._COPYING_")


def is_hidden(*names: str) -> bool:
    """Return whether one of the folders and files of a path is hidden: Spark skips it."""
    return any(_HIDDEN.fullmatch(name) for name in names)


def beside_job_tables(files: Iterable[str]) -> str | None:
    """Return the first file of a job's output folder that is not part of its tables; None without one.

    Args:
        files: The paths of the files in the folder, with ``/`` between the parts. Hidden ones do not count.
    """
    own = {name for known in JOB_TABLES for name in (known.folder, known.aside)}
    for file in files:
        parts = file.split("/")
        if parts[0] not in own and not is_hidden(*parts):
            return file
    return None


registered: Final[dict[str, KnownTable]] = {}
"""The tables of other message formats, by the name of the format."""


def register(name: str, table: KnownTable) -> None:
    """Make the rows of a message format known to the audits of this process."""
    registered[name] = table
