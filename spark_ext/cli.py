"""The command line: ``python -m spark_ext ids``, ``messages``, ``clean``, ``process``, ``audit``, ``digest``."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

import msgid
from msgid._commands import Grouped, examples
from msgid._known_tables import QUARANTINE
from msgid._moments import duration
from msgid.cli import (
    AUDIT_GROUPS,
    SENT_COLUMN_ALONE,
    AuditOutput,
    Commands,
    audit_options,
    compared_columns,
    digest_options,
    echo_digests,
)
from spark_ext._private import leave_out_logs_of_calls
from spark_ext._session import NoJava, session
from spark_ext.formats.message_formats import format_options, message_formats
from spark_ext.jobs._formats import MAX_BYTES, MOST_BYTES, MOST_FILES, BadInput, BatchLimit
from spark_ext.tables import table_formats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from spark_ext.formats.message_formats import FormatOption
    from spark_ext.jobs._bad_files import BadFile

_LEFT_OUT, _SHOWN_FILES = 3, 10
"""The exit status if files were left out, and the number of such files that are printed."""
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


class _Span(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.1
    """A duration: a number of a unit, or text such as ``7 days``; the result is in the unit."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self.name = f"{unit} or text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return float(value)
        except ValueError:
            pass
        try:
            return duration("it", value) / timedelta(**{self._unit: 1})
        except ValueError:
            self.fail(f"must be a number of {self._unit} or text such as '1 day', got {value!r}", param, ctx)


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


def _batch_limit(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that limit a micro-batch of a stream."""
    command = click.option(
        "--max-bytes-per-trigger",
        type=click.IntRange(1, MOST_BYTES),
        help="The bytes of new files in a micro-batch, about. A larger file is a micro-batch of its own.  "
        f"[default: {MAX_BYTES} ({MAX_BYTES >> 20} MB); no limit with --max-files-per-trigger]",
    )(command)
    return click.option(
        "--max-files-per-trigger",
        type=click.IntRange(1, MOST_FILES),
        help="The number of new files in a micro-batch.",
    )(command)


def _stream_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of ``--stream``."""
    return click.option(
        "--interval",
        type=_Span("seconds"),
        help="With --stream: time between looks for new files: seconds, or '5 minutes'.",
    )(_batch_limit(command))


def _limit(files: int | None, bytes: int | None) -> BatchLimit:
    """Return the limit of the options, or end before Spark starts."""
    if files is not None and bytes is not None:
        raise click.UsageError("--max-files-per-trigger and --max-bytes-per-trigger cannot be used together")
    return BatchLimit(files, bytes)


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


_LIMITS = ("max_files_per_trigger", "max_bytes_per_trigger")
_STREAM = ("stream", "interval", *_LIMITS)
_IDS_GROUPS = {
    "Input": ("column", "format"),
    "Output": ("output", "table_format", "overwrite", "show"),
    "New IDs": ("assign", "source", "offset", "at", "timezone", "order_by"),
    "Stream": _STREAM,
}
_MESSAGES_GROUPS = {
    "Input": ("format", "files"),
    "Output": ("output", "table_format", "by_segment", "overwrite", "show"),
    "Schemas": ("registry", "subject", "policy", "framing"),
    "Stream": _STREAM,
}
_PROCESS_GROUPS = {
    "Input": ("format", "id", "key", "timestamp"),
    "Handler": ("handler", "attempts", "keep_outputs", "retention", "buckets"),
    "Output": ("output", "table_format", "checkpoint"),
    "Stream": ("interval", *_LIMITS),
}


@spark_ext.command(
    cls=Grouped, groups=_IDS_GROUPS,
    epilog=examples("python -m spark_ext ids ids.txt --output ids-table --show 10",
             "python -m spark_ext ids orders.csv --column order_id --output orders-table",
             "python -m spark_ext ids orders.csv --assign position --source topic --offset place --at time -o with-ids")
)  # fmt: skip
@click.argument("input", callback=_in_utf8)
@click.option("-o", "--output", required=True, help="The output folder; 'ids' and 'quarantine' in it are written.")
@_table_format
@click.option("-c", "--column", help="The column of IDs.  [default: id; value for text]")
@click.option(
    "-f",
    "--format",
    type=click.Choice(["csv", "tsv", "json", "parquet", "text"]),
    help="The input's format.  [default: by the endings of the files; text for others]",
)
@click.option("--overwrite", is_flag=True, help="Replace the tables in the output folder.")
@click.option("--show", type=click.IntRange(min=0), default=0, help="Number of written rows to print.")
@click.option(
    "--assign",
    type=click.Choice(["position", "generate", "assign"]),
    help="Add IDs in a new column: position IDs, new IDs of the generator, or IDs by row number.",
)
@click.option(
    "--source",
    multiple=True,
    help="With position: the column of the log's name. Several are joined by '/', so at most one may contain a '/'.",
)
@click.option("--offset", help="With position: the column of the offset in the log.")
@click.option("--at", help="With position: the column of the row's time: Unix seconds, or text with a UTC offset.")
@click.option("--timezone", help="With position: the zone of times without one.  [default: such times are malformed]")
@click.option("--order-by", multiple=True, help="With assign: columns of a unique key, for equal IDs after a retry.")
@click.option("--stream", is_flag=True, help="Read only new files, and keep the progress in a checkpoint.")
@_stream_options
def ids(
    input: str,
    output: str,
    column: str | None,
    format: str | None,
    overwrite: bool,
    show: int,
    assign: str | None,
    source: tuple[str, ...],
    offset: str | None,
    at: str | None,
    timezone: str | None,
    order_by: tuple[str, ...],
    stream: bool,
    interval: float | None,
    max_files_per_trigger: int | None,
    max_bytes_per_trigger: int | None,
    table_format: str,
) -> None:
    """Parse the IDs in files of messages, or add IDs to their rows.

    INPUT is a file or folder of text, CSV, TSV, JSON or Parquet. Its columns are kept, and one column is added for each
    field of the IDs. Rows without a valid ID are written to the folder 'quarantine', with the reason. Files that cannot
    be read are listed in 'unreadable', and the exit status is 3. With --stream, a later run reads them after a repair.
    """
    from spark_ext.jobs import ids_job as job
    from spark_ext.jobs._formats import format_of
    from spark_ext.jobs._shared_paths import check_shared

    limit = _limit(max_files_per_trigger, max_bytes_per_trigger)
    _check_stream_options(stream, overwrite, interval, limit)
    assignment = job.Assignment(assign, source, offset, at, order_by, timezone) if assign else None
    given = {"--source": source, "--offset": offset, "--at": at, "--timezone": timezone, "--order-by": order_by}
    unused = [name for name, value in given.items() if value and assign is None]
    if unused:
        raise click.UsageError(f"{unused[0]} needs --assign")
    with _one_line_errors(output):
        if assignment is not None:
            assignment.check(stream=stream)
        spark = session()
        check_shared(spark, input, output)
        format = format or format_of(input)
        column = column or ("value" if format == "text" and not assign else "id")
        if stream:
            result = job.run_stream(
                spark,
                input,
                output,
                column=column,
                format=format,
                assign=assignment,
                interval=interval,
                table_format=table_format,
                limit=limit,
            )
        else:
            mode = "overwrite" if overwrite else "error"
            result = job.run(
                spark,
                input,
                output,
                column=column,
                format=format,
                mode=mode,
                assign=assignment,
                table_format=table_format,
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
    _report_unreadable(result.unreadable, output)


@spark_ext.command(
    cls=_Messages, groups=_MESSAGES_GROUPS,
    epilog=examples("python -m spark_ext messages /iggy/streams --format iggy --output /data/orders --by-segment",
                    "python -m spark_ext messages kafka-rows.parquet --format kafka --output /data/orders")
)  # fmt: skip
@click.argument("input", callback=_in_utf8)
@click.option("-o", "--output", required=True, help="The output folder; its folder 'messages' is written.")
@_table_format
@click.option(
    "-f",
    "--format",
    type=_Registered(message_formats),
    required=True,
    help="The input's message format.",
)
@click.option(
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
@click.option("--by-segment", is_flag=True, help="Partition the table by segment, for 'clean'.")
@click.option("--overwrite", is_flag=True, help="Replace the table in the output folder.")
@click.option("--show", type=click.IntRange(min=0), default=0, help="Number of messages to print.")
@click.option("--stream", is_flag=True, help="Read only new messages, and keep the progress in a checkpoint.")
@_stream_options
def messages(
    input: str,
    output: str,
    by_segment: bool,
    overwrite: bool,
    show: int,
    stream: bool,
    interval: float | None,
    max_files_per_trigger: int | None,
    max_bytes_per_trigger: int | None,
    table_format: str,
    **options: Any,
) -> None:
    """Write messages to one table: their IDs, offsets, states, checksums and payloads.

    INPUT is a file or folder: Iggy's .log segments, text files with one JSON message per line, Parquet files with a
    column of encoded messages, or files with one message each. Exported rows are in Parquet or JSON files.
    A message that is malformed, or fails its checksum or its schema, is in the table as 'poisoned', with the reason and
    its bytes. Files that cannot be read are listed in 'unreadable', and the exit status is 3. With --stream, a later
    run reads them after a repair.
    """
    from spark_ext.jobs import _files as files
    from spark_ext.jobs import messages_job as job
    from spark_ext.jobs._shared_paths import check_shared

    limit = _limit(max_files_per_trigger, max_bytes_per_trigger)
    _check_stream_options(stream, overwrite, interval, limit)
    if by_segment and stream and not table_formats.table_format(table_format).batches_share_segments:
        raise click.UsageError(
            "--by-segment with --stream needs --table-format delta: in Parquet, each batch is a folder"
        )
    source = job.Source(**options)
    with _one_line_errors(output):
        source.check()
        spark = session()
        check_shared(spark, input, output)
        if stream:
            result = job.run_stream(
                spark,
                input,
                output,
                source,
                interval=interval,
                by_segment=by_segment,
                table_format=table_format,
                limit=limit,
            )
        else:
            mode = "overwrite" if overwrite else "error"
            result = job.run(spark, input, output, source, mode=mode, by_segment=by_segment, table_format=table_format)
        table = files.written(spark, f"{output}/{job.MESSAGES}") if show else None
        if table is not None:
            table.select("id", "topic", "offset", "state", "timestamp", "payload", "reason").show(show, truncate=36)
    click.echo("\n".join(result.lines(input)))
    click.echo(f"written to {output}/{job.MESSAGES}")
    _report_unreadable(result.unreadable, output)


@spark_ext.command(
    epilog=examples("python -m spark_ext clean /data/orders --policy policy.toml",
             "python -m spark_ext clean /data/orders --policy policy.toml --apply")
)  # fmt: skip
@click.argument("table", callback=_in_utf8)
@click.option(
    "--policy", required=True, type=click.Path(exists=True, dir_okay=False), help="The retention policy, a TOML file."
)
@click.option("--apply", is_flag=True, help="Delete the expired segments. Default: only report them (dry run).")
@click.option("--mark", is_flag=True, help="Mark the messages of expired segments, and do not delete them.")
@click.option("--allow-gaps", is_flag=True, help="Close a segment also if offsets before the next segment are missing.")
@_table_format
def clean(table: str, policy: str, apply: bool, mark: bool, allow_gaps: bool, table_format: str) -> None:
    """Report the expired segments of a message TABLE, and delete them with --apply.

    TABLE is written by 'messages --by-segment': Parquet, partitioned by source, topic, partition and segment, or Delta.
    The policy has a default_expiry, in seconds or as text such as "7 days" (0: never), and the expiries of single
    topics under [topics]. While the table lacks a topic of the policy, topics without an entry are kept at least as
    long as that topic.
    """
    from datetime import datetime, timezone

    from msgid.retention import InvalidPolicy, RetentionPolicy
    from spark_ext.tables import segments
    from spark_ext.tables.table_formats import TableBusy

    now = datetime.now(timezone.utc)
    with _one_line_errors(table):
        try:
            rules = RetentionPolicy.load(policy)
            report = segments.clean(
                table,
                rules,
                now,
                apply=apply,
                mark=mark,
                spark=session(),
                format=table_format,
                allow_gaps=allow_gaps,
            )
        except (InvalidPolicy, TableBusy, ValueError, OSError) as error:
            raise click.ClickException(str(error)) from None
    for found in report:
        latest = "" if found.latest is None else f"{found.latest:%F %T}"
        verdict = "expired" if found.expired else ("kept" if found.closed else "open")
        why = "" if found.reason is None else f" (kept: {found.reason})"
        click.echo(
            f"{verdict:8} {found.messages:>12,} messages {found.bytes:>15,} bytes {latest:20} {found.folder}{why}"
        )
    done = "marked" if mark else "removed"
    gone = [found for found in report if found.action == done]
    said = done if apply else f"would be {done}; --apply {'marks' if mark else 'removes'} them"
    messages, bytes = sum(found.messages for found in gone), sum(found.bytes for found in gone)
    click.echo(f"{len(gone):,} of {len(report):,} segments, {messages:,} messages, {bytes:,} bytes: {said}")


@spark_ext.command(
    cls=Grouped, groups=_PROCESS_GROUPS,
    epilog=examples("python -m spark_ext process /data --handler jobs:ship --key order --checkpoint state -o parcels")
)  # fmt: skip
@click.argument("input", callback=_in_utf8)
@click.option("--handler", required=True, help="The handler, as module:function; also from the working folder.")
@click.option("--key", required=True, help="The column of the business key. The handler keeps one state per key.")
@click.option("--checkpoint", required=True, help="The checkpoint folder, with the progress and the states.")
@click.option("-o", "--output", required=True, help="The output folder; its folder 'outputs' is written.")
@_table_format
@click.option("--id", default="id", show_default=True, help="The column of message IDs.")
@click.option("--timestamp", help="The column of the messages' times.  [default: the times in their IDs]")
@click.option(
    "--retention",
    type=_Span("days"),
    default="7 days",
    show_default=True,
    help="How long a redelivered message is recognized: days, or '12 hours'.",
)
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Maximum number of calls of a handler that raises; then its message is written with kind=failed.",
)
@click.option("--keep-outputs", is_flag=True, help="Store the outputs, and return them for a redelivered message.")
@click.option(
    "--buckets",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    help="Number of groups of keys, at least the number of cores. It cannot change for a checkpoint.",
)
@click.option(
    "-f",
    "--format",
    type=click.Choice(["csv", "tsv", "json", "parquet"]),
    help="The input's format.  [default: by the endings of the files]",
)
@click.option("--interval", type=_Span("seconds"), help="Time between two looks for new files.")
@_batch_limit
def process(
    input: str, handler: str, max_files_per_trigger: int | None, max_bytes_per_trigger: int | None, **options: Any
) -> None:
    """Pass each message in the files of a folder to a handler once, also if it is redelivered or the job is restarted.

    INPUT is a folder; files must be moved into it whole. The handler keeps one state per key, and the IDs of its
    outputs are derived from the ID of the message. Files that cannot be read to their end are listed in 'unreadable',
    and the exit status is 3. Put the repaired file into the folder under another name.
    """
    from spark_ext.jobs import process_job as job
    from spark_ext.jobs._shared_paths import check_shared

    limit = _limit(max_files_per_trigger, max_bytes_per_trigger)
    with _one_line_errors(options["output"]):
        job.check(options["retention"], options["interval"], options["buckets"])
        function = job.load_handler(handler)
        spark = session(bar=False)
        check_shared(spark, input, options["output"])
        result = job.run(spark, input, function, limit=limit, **options)
    width = len(f"{max(result[:5]):,}")
    click.echo(f"{result.outputs:>{width},} outputs, written to {options['output']}/{job.OUTPUTS}/*/kind=new")
    for kind in ("too late", "malformed", "failed", "changed"):
        count = getattr(result, kind.replace(" ", "_"))
        click.echo(f"{count:>{width},} messages {kind}" + (f", written with kind={kind}" if count else ""))
    _report_unreadable(result.unreadable, options["output"])


def _report_unreadable(files: Sequence[BadFile], output: str) -> None:
    """Print the files that were left out, and exit with status 3 if there are any."""
    if not files:
        return
    from spark_ext.jobs._bad_files import UNREADABLE

    for file in files[:_SHOWN_FILES]:
        click.echo(f"cannot read {file.path}: {file.reason}", err=True)
    click.echo(f"Files left out: {len(files):,}, listed in {output}/{UNREADABLE}", err=True)
    sys.exit(_LEFT_OUT)


_audit_format = click.option(
    "-f",
    "--format",
    type=_Registered(lambda: ["csv", "tsv", "json", "text", *table_formats.table_format_names()]),
    help="The input's format.  [default: found by the input]",
)


@spark_ext.command(
    cls=Grouped, groups=AUDIT_GROUPS,
    epilog=examples("python -m spark_ext audit /data/messages --fail-on error --report audit.html")
)  # fmt: skip
@click.argument("input", callback=_in_utf8)
@audit_options
@_audit_format
def audit(
    input: str,
    source: tuple[str, ...],
    content: tuple[str, ...],
    sent: str | None,
    sent_column: tuple[str, ...],
    format: str | None,
    digests: tuple[str, str] | None,
    **options: Any,
) -> None:
    """Find the lost, duplicated and late messages of a table by their IDs and offsets.

    INPUT is a file or folder of text, CSV, TSV, JSON, Parquet or Delta, or the output folder of 'ids', 'messages' or
    'process'. The columns of such outputs, and of tables of Kafka and RocketMQ, are known, and so are columns named id,
    source, offset, timestamp, landed and content. With --sent, INPUT is compared with another table: the messages that
    a producer had acknowledged, or all messages of a queue.
    """
    from msgid.audit.definitions import rules_of
    from spark_ext.jobs import audit_job as job

    output = AuditOutput.taken_from(options)
    if digests and sent is None:
        raise click.UsageError("--digests needs --sent")
    if sent_column and sent is None:
        raise click.UsageError(SENT_COLUMN_ALONE)
    named = {**options, "source": source or None, "content": content or None}
    if sent is not None:
        named = compared_columns(named, sent_column)
    else:
        try:
            rules_of(named["holes"], named["without"])
        except ValueError as error:
            raise click.ClickException(str(error)) from None
    with _one_line_errors(input):
        for path in (input, sent, *(digests or ())):
            check_exists(path)
        found = job.run(session(), input, sent, format=format, digests=digests, **named)
    output.finish(found)


@spark_ext.command(
    epilog=examples("python -m spark_ext digest /data/landed --part day --to /data/digests/landed")
)  # fmt: skip
@click.argument("input", callback=_in_utf8)
@click.option("--part", required=True, help="The column of the parts, such as the day by which INPUT is partitioned.")
@click.option("--to", required=True, help="The folder of the digests.")
@digest_options
@_audit_format
def digest(
    input: str,
    part: str,
    to: str,
    source: tuple[str, ...],
    content: tuple[str, ...],
    format: str | None,
    **columns: Any,
) -> None:
    """Make the digests of the parts of a table, such as its days, that are missing.

    INPUT is as for audit. The digest of a part is made once, and 'audit --digests' compares two folders of digests.
    """
    from spark_ext.jobs import audit_job as job

    named = {**columns, "source": source or None, "content": content or None}
    with _one_line_errors(to):
        made = job.run_digests(session(), input, to, part, format=format, **named)
    echo_digests(made)


def _check_stream_options(stream: bool, overwrite: bool, interval: float | None, limit: BatchLimit) -> None:
    from spark_ext.jobs._files import check_interval

    if stream and overwrite:
        raise click.UsageError(
            "cannot use --overwrite with --stream: a stream adds rows to the output folder from its checkpoint"
        )
    if interval is not None and not stream:
        raise click.UsageError("--interval needs --stream")
    try:
        check_interval(interval)
    except BadInput as error:
        raise click.UsageError(str(error)) from None
    for name, number in limit._asdict().items():
        if number is not None and not stream:
            raise click.UsageError(f"--{name.replace('_', '-')}-per-trigger needs --stream")


def check_exists(path: str | None) -> None:
    """Raise BadInput for a local file or folder that is missing, which Spark would find out only after its start."""
    from spark_ext._filesystem import IN_PATTERNS, resolve

    if path is None or IN_PATTERNS.search(path) or os.environ.keys() & {"SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"}:
        return
    resolved = resolve(path)
    if resolved.startswith("/") and not os.path.exists(resolved):
        raise BadInput(f"cannot read {path}: it does not exist")


@contextmanager
def _one_line_errors(output: str) -> Iterator[None]:
    """Print errors that a user can correct as one line, without a traceback; print warnings of the jobs too."""
    from pyspark.errors import AnalysisException, PySparkException

    from spark_ext._filesystem import PathError
    from spark_ext._private import cause_of, is_java_error, python_error_in
    from spark_ext._shipping import CoreNote, WorkerError, worker_error_in
    from spark_ext.jobs._bad_files import reason_of
    from spark_ext.jobs._formats import InputWarning, warnings_to

    try:
        with warnings_to(lambda text: click.echo(f"Warning: {text}", err=True), InputWarning, CoreNote):
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
        said = worker_error_in(error) or python_error_in(error, _MISSING_ROWS) or reason_of(error)
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
        sys.exit("Aborted!")
