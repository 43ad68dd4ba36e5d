"""Message formats with one message per row: what `messages` and the job need of a format, and the known formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from msgid.kafka import CLUSTER, ID_HEADER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from msgid.messages import Encoding


class FormatOptions(NamedTuple):
    """The options of `messages` that a format may use.

    Examples
    --------
    >>> FormatOptions(cluster="eu").cluster
    'eu'
    """

    cluster: str = CLUSTER
    """Name of the cluster, which is part of each source name."""
    id_header: str = ID_HEADER
    """Name of the header that may hold a message's own ID."""
    encoding: Encoding = "utf-8"
    """How text stands for the bytes of keys and payloads: ``utf-8`` or ``base64``."""


class MessageFormat(ABC):
    """A format with one message per row. A subclass is one file; `register_message_format` makes it known.

    Examples
    --------
    >>> message_format("kafka").columns
    ('key', 'value', 'topic', 'partition', 'offset', 'timestamp', 'headers')
    """

    name: str
    """The name, as in ``messages(df, format)`` and ``--format``."""
    columns: tuple[str, ...]
    """The columns of the rows. The names of a DataFrame, or of JSON lines, may differ in case."""
    time: str
    """The column of the messages' times."""
    pairs: tuple[str, ...] = ()
    """The columns that are lists of pairs of ``key`` and ``value`` in JSON lines; all other columns are text there."""

    @abstractmethod
    def rows(self, df: DataFrame, options: FormatOptions) -> dict[str, Column]:
        """Return the columns of the message table by their names.

        Required: ``id`` (text), ``source``, ``topic``, ``partition`` (int), ``offset`` (bigint), ``timestamp``,
        ``payload`` (binary), and ``malformed``: the reason why a row is malformed, or NULL. Optional: ``note`` (a
        reason that does not make the row malformed), ``original`` (bytes of a malformed row), ``key``, ``headers``,
        ``attributes`` and ``segment``.
        """


DANUBE: Final = ("danube", "danube-json")
ENCODED: Final = ("iggy", "iggy-message", "iggy-poll", "iggy-json", *DANUBE)
"""The formats of Iggy and Danube, whose messages are bytes or JSON in files or in one column."""
_HOMES: Final = {"kafka": "spark_ext.formats.kafka", "rocketmq": "spark_ext.formats.rocketmq"}
"""The modules of the formats of this package, which are imported when they are first used."""
_known: Final[dict[str, MessageFormat]] = {}


def register_message_format(format: MessageFormat) -> None:
    """Make a message format known to `messages` and the job ``messages`` of this process.

    Parameters
    ----------
    format : MessageFormat
        the format. It replaces a format of the same name.

    Returns
    -------
    None
        the format is known in this process.

    Raises
    ------
    TypeError
        if the argument is not a `MessageFormat`.
    ValueError
        if its ``name``, ``columns`` or ``time`` is missing, or if the name is one of Iggy's and Danube's formats.

    Examples
    --------
    >>> register_message_format(message_format("kafka"))
    """
    if not isinstance(format, MessageFormat):
        raise TypeError(f"format must be a MessageFormat, got {format!r}")
    for attribute, kind in (("name", str), ("columns", tuple), ("time", str)):
        value = getattr(format, attribute, None)
        if not isinstance(value, kind) or not value:
            raise ValueError(f"`{attribute}` of a message format must be a {kind.__name__}, got {value!r}")
    if format.name in ENCODED:
        raise ValueError(f"`name` of a message format must be another than {', '.join(ENCODED)}, got {format.name!r}")
    _known[format.name] = format


def format_names() -> tuple[str, ...]:
    """Return the names of all message formats."""
    return tuple(dict.fromkeys([*ENCODED, *_HOMES, *_known]))


def message_format(name: str) -> MessageFormat:
    """Return the format of a name; KeyError if it is unknown."""
    if name not in _known:
        _known.setdefault(name, import_module(_HOMES[name]).FORMAT)
    return _known[name]
