"""The command line: ``python -m spark_ext ids``, ``messages`` and ``audit``."""

from __future__ import annotations

import signal
import sys
import warnings
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

import msgid
from msgid.cli import (
    AUDIT_GROUPS,
    INTERRUPTED,
    SENT_COLUMN_ALONE,
    AuditOutput,
    Commands,
    audit_options,
    compared_columns,
)
from msgid.shared.command_line import Grouped, examples
from msgid.shared.known_tables import QUARANTINE
from spark_ext._private import leave_out_logs_of_calls
from spark_ext._session import NoJava, session
from spark_ext.formats.message_formats import format_options, message_format_names
from spark_ext.jobs._input import FORMATS, BadInput
from spark_ext.tables import table_formats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from spark_ext.formats.message_formats import FormatOption

_MISSING_ROWS = r"MissingRows: (.*)"


class _Registered(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.1
    """The name of a registered format. The names are read late, after modules with more formats are imported."""

    name = "format"

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    def get_metavar(self, *_: Any, **__: Any) -> str:
        return f"[{'|'.join(self._names())}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self._names():
            self.fail(f"must be one of {', '.join(self._names())}, got {value!r}", param, ctx)
        return value


class _Messages(Grouped):
    """A command with the options of all message formats. They are read late, as the names of the formats."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.groups = {**self.groups, "Message formats": format_options().keys()}
        super().format_options(ctx, formatter)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        *own, helping = super().get_params(ctx)
        return [*own, *map(_option_of, format_options().values()), helping]


@cache
def _option_of(option: FormatOption) -> click.Option:
    flags = option.flags or (f"--{option.name.replace('_', '-')}",)
    default = "" if option.default is None else f"  [default: {option.default}]"
    type: Any = click.Choice(option.choices) if option.choices else option.type
    if option.type is int:
        type = click.IntRange(min=0)
    return click.Option([option.name, *flags], type=type, default=None, help=option.help + default)


_table_format = click.option(
    "--table-format",
    type=_Registered(table_formats.table_format_names),
    default="parquet",
    show_default=True,
    help="The format of the tables: Parquet for one writer, Delta for several writers or readers.",
)


def _pairs(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return options of the form NAME=VALUE as a dictionary."""
    pairs = [value.partition("=") for value in values]
    if not all(equals for _, equals, _ in pairs):
        raise click.BadParameter(f"must be NAME=VALUE, got {' '.join(values)}")
    return {name: value for name, _, value in pairs}


_options = click.option(
    "--option",
    "options",
    multiple=True,
    callback=_pairs,
    metavar="NAME=VALUE",
    help="An option of Spark's reader of CSV: sep, escape, nullValue or multiLine. May be repeated.",
)


def _mode(overwrite: bool) -> str:
    return "overwrite" if overwrite else "error"


def _in_utf8(context: click.Context, parameter: click.Parameter, path: str) -> str:
    """Return a path, or end before Spark starts, which cannot name one that is not UTF-8."""
    from spark_ext._filesystem import PathError, check_utf8

    try:
        check_utf8(path)
    except PathError as error:
        raise click.BadParameter(str(error)) from None
    return path


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(msgid.__version__)
@click.option(
    "--import",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="Import a module first, such as one that registers a message format or a table format. May be repeated.",
)
def spark_ext(modules: tuple[str, ...]) -> None:
    """Work on message IDs with Spark."""
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            raise click.BadParameter(f"cannot import {module}: {error}", param_hint="--import") from None


_IDS_GROUPS = {
    "Input": ("column", "format", "options"),
    "Output": ("output", "table_format", "overwrite", "show", "quiet"),
    "New IDs": ("source", "offset", "at", "timezone"),
}
_MESSAGES_GROUPS = {
    "Input": ("format", "files"),
    "Output": ("output", "table_format", "overwrite", "show", "quiet"),
    "Schemas": ("registry", "subject", "policy", "framing"),
}


_quiet = click.option("-q", "--quiet", is_flag=True, help="Do not show Spark's progress, and no notes about workers.")


@spark_ext.command(
    cls=Grouped, groups=_IDS_GROUPS,
    epilog=examples("python -m spark_ext ids ids.txt --output ids-table --show 10",
             "python -m spark_ext ids orders.csv --column order_id --output orders-table",
             "python -m spark_ext ids orders.csv --source topic --offset place --at time -o with-ids")
)  # fmt: skip
@click.argument("input", callback=_in_utf8)
@click.option("-o", "--output", required=True, help="The output folder; 'ids' and 'quarantine' in it are written.")
@_table_format
@click.option("-c", "--column", help="The column of IDs.  [default: id; value for text]")
@click.option(
    "-f",
    "--format",
    type=click.Choice(FORMATS),
    help="The input's format.  [default: by the endings of the files; text for others]",
)
@_options
@click.option("--overwrite", is_flag=True, help="Replace the tables in the output folder.")
@click.option("--show", type=click.IntRange(min=0), default=0, help="Number of written rows to print.")
@_quiet
@click.option(
    "--source",
    multiple=True,
    help="Add position IDs: the column of the log's name. Several are joined by '/', so at most one may contain a '/'.",
)
@click.option("--offset", help="With --source: the column of the offset in the log.")
@click.option("--at", help="With --source: the column of the row's time: Unix seconds, or text with a UTC offset.")
@click.option("--timezone", help="With --source: the zone of times without one.  [default: such times are malformed]")
def ids(input: str, output: str, overwrite: bool, show: int, quiet: bool, **named: Any) -> None:
    """Parse the IDs in files of messages, or add IDs to their rows.

    INPUT is a file or folder of text, CSV, TSV, JSON or Parquet. Its columns are kept, and one column is added for each
    field of the IDs. Rows without a valid ID are written to the folder 'quarantine', with the reason. A file that
    cannot be read ends the job.
    """
    from spark_ext.jobs import ids_job as job
    from spark_ext.jobs._input import format_of

    columns = job.Position(*(named.pop(name) for name in ("source", "offset", "at", "timezone")))
    position = columns if any(columns) else None
    with _one_line_errors(output, quiet=quiet):
        if position is not None:
            position.check()
        spark = session(quiet=quiet)
        format = named.pop("format") or format_of(input)
        column = named.pop("column") or ("value" if format == "text" and position is None else "id")
        result = job.run(
            spark, input, output, column=column, format=format, mode=_mode(overwrite), position=position, **named
        )
        shown = job.examples(spark, output, column, show) if show else None
        if shown is not None:
            shown.show(show, truncate=False)
    width = len(f"{result.rows:,}")
    click.echo(f"{result.rows:>{width},} rows of {input}")
    for count in result.counts:
        click.echo(f"{count.rows:>{width},} {count.kind}" + (f" {count.origin}" if count.origin else ""))
    click.echo(f"{result.malformed:>{width},} malformed" + (", in quarantine" if result.malformed else ""))
    click.echo(f"written to {output}/{job.IDS}" + (f" and {output}/{QUARANTINE}" if result.malformed else ""))


@spark_ext.command(
    cls=_Messages, groups=_MESSAGES_GROUPS,
    epilog=examples("python -m spark_ext messages /iggy/streams --format iggy --output /data/orders",
                    "python -m spark_ext messages kafka-rows.parquet --format kafka --output /data/orders")
)  # fmt: skip
@click.argument("input", callback=_in_utf8)
@click.option("-o", "--output", required=True, help="The output folder; its folder 'messages' is written.")
@_table_format
@click.option("--format", type=_Registered(message_format_names), required=True, help="The format of the messages.")
@click.option(
    "-f",
    "--files",
    type=click.Choice(["parquet", "json"]),
    help="Exported rows: the format of the files.  [default: by their endings]",
)
@click.option("--registry", help="The file of a schema registry, written by msgid.schemas.SchemaRegistry.")
@click.option("--subject", help="The subject that the messages' schemas must have.  [default: the topic]")
@click.option(
    "--policy",
    type=click.Choice(["none", "warn", "enforce"]),
    default="none",
    help="Messages that do not fit their schema: accept them, note the reason, or mark them as poisoned.",
)
@click.option(
    "--framing",
    type=click.Choice(["none", "confluent"]),
    default="none",
    help="The bytes before a payload; confluent: a zero byte and the schema ID.  [default: none]",
)
@click.option("--overwrite", is_flag=True, help="Replace the table in the output folder.")
@click.option("--show", type=click.IntRange(min=0), default=0, help="Number of messages to print.")
@_quiet
def messages(
    input: str, output: str, overwrite: bool, show: int, quiet: bool, table_format: str, **options: Any
) -> None:
    """Write messages to one table: their IDs, offsets, states, checksums and payloads.

    INPUT is a file or folder: Iggy's .log segments, text files with one JSON message per line, Parquet files with a
    column of encoded messages, or files with one message each. Exported rows are in Parquet or JSON files.
    A message that is malformed, or fails its checksum or its schema, is in the table as 'poisoned', with the reason and
    its bytes. A file that cannot be read ends the job.
    """
    from spark_ext.jobs import messages_job as job
    from spark_ext.jobs._output import written

    source = job.Source(**options)
    with _one_line_errors(output, quiet=quiet):
        source.check()
        spark = session(quiet=quiet)
        result = job.run(spark, input, output, source, mode=_mode(overwrite), table_format=table_format)
        table = written(spark, f"{output}/{job.MESSAGES}") if show else None
        if table is not None:
            table.select("id", "topic", "offset", "state", "timestamp", "payload", "reason").show(show, truncate=36)
    click.echo("\n".join(result.lines(input)))
    click.echo(f"written to {output}/{job.MESSAGES}")


_audit_format = click.option(
    "-f",
    "--format",
    type=_Registered(lambda: ["csv", "tsv", "json", "text", *table_formats.table_format_names()]),
    help="The input's format.  [default: found by the input]",
)


@spark_ext.command(
    cls=Grouped, groups={**AUDIT_GROUPS, "Input": ("format", "options")},
    epilog=examples("python -m spark_ext audit /data/messages --fail-on error --report audit.html")
)  # fmt: skip
@click.argument("input", callback=_in_utf8)
@audit_options
@_audit_format
@_options
@_quiet
def audit(
    input: str,
    sent: str | None,
    sent_columns: tuple[str, ...],
    digests: tuple[str, str] | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Find the lost, duplicated and late messages of a table by their IDs and offsets.

    INPUT is a file or folder of text, CSV, TSV, JSON, Parquet or Delta, or the output folder of 'ids' or 'messages'.
    The columns of such outputs, and of tables of Kafka and RocketMQ, are known, and so are columns named id, source,
    offset, timestamp, landed and content. With --sent, INPUT is compared with another table: the messages that a
    producer had acknowledged, or all messages of a queue.
    """
    from msgid.audit.options import rules_in
    from spark_ext.jobs import audit_job as job

    output = AuditOutput.taken_from(options)
    output.check_inputs(input, sent, *(digests or ()))
    if digests and sent is None:
        raise click.UsageError("--digests needs --sent")
    if sent_columns and sent is None:
        raise click.UsageError(SENT_COLUMN_ALONE)
    job_options = {name: options.pop(name) for name in ("format", "options")}
    named = {**options, "source": options["source"] or None, "content": options["content"] or None}
    if sent is not None:
        named = compared_columns(named, sent_columns)
    else:
        rules_in(named)
    with _one_line_errors(input, quiet=quiet):
        result = job.run(session(quiet=quiet), input, sent, digests=digests, **job_options, **named)
    output.finish(result)


@contextmanager
def _one_line_errors(output: str, *, quiet: bool = False) -> Iterator[None]:
    """Print errors that a user can correct as one line, without a traceback; print warnings of the jobs too."""
    from pyspark.errors import AnalysisException, PySparkException

    from spark_ext._filesystem import PathError
    from spark_ext._private import cause_of, is_java_error, python_error_in, unreadable_file
    from spark_ext._shipping import CoreNote, WorkerError, worker_error_in
    from spark_ext.jobs._input import InputWarning

    others = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> None:
        if issubclass(category, (InputWarning, CoreNote)):
            click.echo(f"Warning: {message}", err=True)
        else:
            others(message, category, *more, **named)

    try:
        with warnings.catch_warnings():
            warnings.showwarning = show
            warnings.simplefilter("default", InputWarning)
            warnings.simplefilter("ignore" if quiet else "default", CoreNote)
            yield
    except (NoJava, NotImplementedError, BadInput, PathError, ImportError, OSError, WorkerError) as error:
        raise click.ClickException(str(error)) from None
    except AnalysisException as error:
        if error.getCondition() == "PATH_ALREADY_EXISTS":
            raise click.ClickException(f"{output} holds results already; --overwrite replaces them") from None
        raise click.ClickException(cause_of(error)) from None
    except Exception as error:
        if _is_interrupt(error) or not (is_java_error(error) or isinstance(error, PySparkException)):
            raise
        file = unreadable_file(error)
        if file is not None:
            raise click.ClickException(f"cannot read {file}: {cause_of(error)}") from None
        said = worker_error_in(error) or python_error_in(error, _MISSING_ROWS) or cause_of(error)
        raise click.ClickException(f"Spark failed: {said}") from None


def _is_interrupt(error: BaseException | None) -> bool:
    """Return whether an interrupt is behind an error: Py4J raises its own error for some."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def main(name: str = "python -m spark_ext") -> None:
    """Run the command line; ``name`` is the program's name in the help. SIGTERM ends a job as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    leave_out_logs_of_calls()
    try:
        sys.exit(spark_ext(prog_name=name))
    except Exception as error:
        if not _is_interrupt(error):
            raise
        click.echo("Aborted!", err=True)
        sys.exit(INTERRUPTED)
