"""Message formats: what `messages` and the job ``messages`` need of a format, and the known formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol, get_args

from msgid.messages import Encoding
from msgid.shared import known_tables
from msgid.shared.validate import one_of
from spark_ext._registry import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.datasource import DataSource


class FormatOption(NamedTuple):
    """An option of a message format: an argument of `messages`, and an option of the command ``messages``.

    Examples
    --------
    >>> cluster = FormatOption("cluster", "pulsar", "Pulsar: the name of the cluster, part of each ID.")
    >>> cluster.checked(None)
    'pulsar'
    """

    name: str
    """The name of the argument. Formats may share an option."""
    default: Any
    """The value if none is passed."""
    help: str
    """The description of the option, in one line for ``--help``."""
    choices: tuple[str, ...] = ()
    """The allowed values. Default: any text."""
    type: type = str
    """``str``, ``bool``, or ``int`` for a number of 0 or more."""
    flags: tuple[str, ...] = ()
    """The words on the command line. Default: ``--name``."""
    nullable: bool = False
    """Whether None is a value of its own. Default: None stands for the default."""

    def checked(self, value: Any) -> Any:
        """Return a value that was passed, or the default for None; ValueError if it is not one of the choices."""
        value = self.default if value is None and not self.nullable else value
        if self.choices:
            one_of(self.name, value, self.choices)
        return value


ENCODING: Final = FormatOption(
    "encoding",
    "utf-8",
    "Exported rows: how text encodes bytes. Spark writes bytes to JSON as base64.",
    get_args(Encoding),
)
COLUMN: Final = FormatOption(
    "column",
    None,
    "Parquet: the column of encoded messages.  [default: value]",
    flags=("-c", "--column"),
)


class MessageFiles(Protocol):
    """The input of the job ``messages``. A format reads it by one of the methods."""

    @property
    def path(self) -> str:
        """The file or folder that the job was given."""

    def rows(self, columns: tuple[str, ...], pairs: tuple[str, ...] = ()) -> DataFrame:
        """Read exported rows: Parquet files, or JSON lines with these columns."""

    def lines(self) -> DataFrame:
        """Read text files: each line is a ``value``."""

    def values(self, column: str | None) -> DataFrame:
        """Read Parquet files with a column of encoded messages, or other files as one ``value`` each."""

    def source(self, source: type[DataSource], **options: str) -> DataFrame:
        """Read with a data source in Python."""


class MessageFormat(ABC):
    """A format of messages. A subclass is one file; `register_message_format` makes it known.

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
    options: tuple[FormatOption, ...] = ()
    """The format's own options."""
    log: Mapping[str, Any] | None = None
    """The arguments of `audit` for the rows, ``source`` and ``offset`` at least, and the ``prefix`` of the log's name.

    An audit then needs no argument for such rows.
    """
    required: ClassVar[dict[str, type]] = {"name": str, "columns": tuple, "time": str}
    """The attributes that a format must have."""

    @abstractmethod
    def rows(self, df: DataFrame, options: SimpleNamespace) -> dict[str, Column]:
        """Return the columns of the message table by their names.

        Required: ``id`` (text), ``source``, ``topic``, ``offset`` (bigint), ``timestamp``, ``payload`` (binary), and
        ``malformed``: the reason why a row is malformed, or NULL. Optional: ``note`` (a reason that does not make the
        row malformed), ``original`` (bytes of a malformed row), and each other column of the table. A format that
        judges its rows itself returns ``state`` and ``reason`` instead of ``malformed``.
        """

    def decode(self, df: DataFrame, options: SimpleNamespace) -> DataFrame:
        """Return a DataFrame with one message per row, for `rows`. Default: the rows, with times in place of text."""
        from spark_ext.columns.moment_columns import with_moment
        from spark_ext.formats._row_columns import by_name

        return with_moment(by_name(df, *self.columns), self.time)

    def read(self, files: MessageFiles, options: SimpleNamespace) -> DataFrame:
        """Read the input of the job ``messages``. Default: exported rows."""
        return files.rows(self.columns, self.pairs)

    def audited_rows(self, df: DataFrame) -> DataFrame:
        """Return rows for an audit, with the column ``id``, the columns of `log` and all others. Default: the rows."""
        return df

    def chosen(self, given: Mapping[str, Any]) -> SimpleNamespace:
        """Return the values of the format's options; options of other formats are ignored."""
        return SimpleNamespace(
            **{option.name: option.checked(given.get(option.name, option.default)) for option in self.options}
        )


class EncodedFormat(MessageFormat):
    """A format whose messages are bytes, or JSON text, in one column or in files."""

    required: ClassVar[dict[str, type]] = {"name": str}
    options: tuple[FormatOption, ...] = (COLUMN,)
    is_text: bool = False
    """Whether the messages are lines of text."""

    def read(self, files: MessageFiles, options: SimpleNamespace) -> DataFrame:
        """Read lines of text, or a column or files of encoded messages."""
        return files.lines() if self.is_text else files.values(options.column)


_FORMATS: Final = Registry(
    MessageFormat,  # type: ignore[type-abstract]
    "message format",
    {
        **dict.fromkeys(("iggy", "iggy-message", "iggy-poll", "iggy-json"), "spark_ext.formats.iggy"),
        **dict.fromkeys(("danube", "danube-json"), "spark_ext.formats.danube"),
        "kafka": "spark_ext.formats.kafka",
        "rocketmq": "spark_ext.formats.rocketmq",
    },
)


def register_message_format(format: MessageFormat) -> None:
    """Make a message format known to `messages`, the job ``messages`` and the audits of this process.

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
        if its ``name``, ``columns`` or ``time`` is missing.

    Examples
    --------
    >>> register_message_format(message_format("kafka"))
    """
    _FORMATS.register(format)
    if format.log is not None:
        columns = known_tables.Columns(**{"id": None, **format.log})
        known_tables.register(format.name, known_tables.KnownTable(columns, tuple(columns.names.values())))


def message_format_names() -> tuple[str, ...]:
    """Return the names of all message formats."""
    return _FORMATS.names


def message_format(name: str) -> MessageFormat:
    """Return the message format of a name.

    Raises
    ------
    ValueError
        if the name is unknown.
    """
    return _FORMATS[name]


def format_options() -> dict[str, FormatOption]:
    """Return the options of all message formats by their names; of several, the first one of a name."""
    options: dict[str, FormatOption] = {}
    for option in (option for name in message_format_names() for option in message_format(name).options):
        options.setdefault(option.name, option)
    return options
