"""The command line: ``python -m spark_ext ids``, ``messages``, ``expire``, ``process``, ``audit``."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

import msgid
from msgid.cli import audit_options, finish_audit
from msgid.iggy._wire import ALIASES, LAYOUTS
from msgid.kafka import CLUSTER, ID_HEADER
from spark_ext._session import NoJava, session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from msgid.audit import Severity
    from spark_ext.jobs._bad_files import BadFile

_LEFT_OUT, _SHOWN_FILES = 3, 10
"""The exit status if files were left out, and how many of them are shown."""

_table_format = click.option(
    "--table-format",
    type=click.Choice(["parquet", "delta"]),
    default="parquet",
    show_default=True,
    help="The format of the tables: Parquet for one writer, Delta for several writers or readers.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(msgid.__version__)
def spark_ext() -> None:
    """Work on message ids with Spark."""


@spark_ext.command()
@click.argument("input")
@click.option("-o", "--output", required=True, help="The folder to write: 'ids' and 'quarantine' in it.")
@_table_format
@click.option("-c", "--column", help="The column of ids.  [default: id; value for text]")
@click.option(
    "-f",
    "--format",
    type=click.Choice(["csv", "tsv", "json", "parquet", "text"]),
    help="The input's format.  [default: by its ending]",
)
@click.option("--overwrite", is_flag=True, help="Replace what is in the output folder.")
@click.option("--show", type=click.IntRange(min=0), default=0, help="Print so many of the rows written, of each kind.")
@click.option(
    "--assign",
    type=click.Choice(["position", "generate", "assign"]),
    help="Give the rows ids in a new column: by their position, by the generator, or numbered.",
)
@click.option("--source", multiple=True, help="For a position: the column of the log's name; more are joined by '/'.")
@click.option("--offset", help="For a position: the column of the place in the log.")
@click.option("--at", help="For a position: the column of the row's own time: Unix seconds, or with offset.")
@click.option("--zone", help="For a position: the time zone of times that name none.  [default: they are refused]")
@click.option("--order-by", multiple=True, help="To number rows alike each time: the columns of a unique key.")
@click.option("--stream", is_flag=True, help="Do what files are new since the last time, from a checkpoint.")
@click.option("--interval", type=click.FloatRange(min=0), help="With --stream: go on, looking every so many seconds.")
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
    zone: str | None,
    order_by: tuple[str, ...],
    stream: bool,
    interval: float | None,
    table_format: str,
) -> None:
    """Take the ids in a file of messages apart, or give its rows ids.

    INPUT is a file or folder of text, CSV, TSV, JSON or Parquet. Its columns are kept, and one is added for each field
    of the ids. Rows without a good id go to a folder of their own, 'quarantine', with the reason. Files that cannot be
    read are listed in 'unreadable', and the exit status is 3; with --stream, a later run reads them once repaired.
    """
    from spark_ext.jobs import _files as files
    from spark_ext.jobs import ids_job as job

    _check_stream_options(stream, overwrite, interval)
    format = format or files.guess_format(input)
    column = column or ("value" if format == "text" and not assign else "id")
    assignment = job.Assignment(assign, source, offset, at, order_by, zone) if assign else None
    with _one_line_errors(output):
        spark = session()
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
    click.echo(f"{result.malformed:>{width},} malformed" + (", kept aside" if result.malformed else ""))
    click.echo(f"written to {output}/{job.IDS}" + (f" and {output}/{job.QUARANTINE}" if result.malformed else ""))
    _report_unreadable(result.unreadable, output)


@spark_ext.command()
@click.argument("input")
@click.option("-o", "--output", required=True, help="The folder to write: 'messages' in it.")
@_table_format
@click.option(
    "-f",
    "--format",
    type=click.Choice(["iggy", "iggy-message", "iggy-poll", "iggy-json", "danube", "danube-json", "kafka", "rocketmq"]),
    required=True,
    help="Segment files, one encoded message, poll response or JSON text each, or rows of Kafka or RocketMQ.",
)
@click.option(
    "--files",
    type=click.Choice(["parquet", "json"]),
    help="Kafka and RocketMQ: the format of the files.  [default: by their endings]",
)
@click.option("--layout", type=click.Choice(["auto", *ALIASES, *LAYOUTS]), default="auto", help="Of Iggy's bytes.")
@click.option("-c", "--column", help="Parquet: the column of encoded messages.  [default: value]")
@click.option("--topic", help="Iggy: the topic, where the path does not say it.")
@click.option("--partition", type=click.IntRange(min=0), help="Iggy: the partition, where the path does not say it.")
@click.option(
    "--logged/--unlogged", default=None, help="Danube: whether topics have a log.  [default: seen by offsets]"
)
@click.option("--registry", help="A schema registry: a file of msgid.schemas.SchemaRegistry.")
@click.option("--subject", help="The subject that the messages' schemas must have.  [default: the topic]")
@click.option(
    "--policy",
    type=click.Choice(["none", "warn", "enforce"]),
    default="none",
    help="What is done with messages that do not fit their schema.",
)
@click.option(
    "--framing",
    type=click.Choice(["none", "confluent"]),
    default="none",
    help="What begins a payload; confluent: a zero byte and the schema ID.  [default: none]",
)
@click.option("--cluster", default=CLUSTER, show_default=True, help="Kafka: the name of the cluster, part of each ID.")
@click.option("--id-header", default=ID_HEADER, show_default=True, help="Kafka: the header with a message's own ID.")
@click.option(
    "--encoding",
    type=click.Choice(["utf-8", "base64"]),
    default="utf-8",
    help="Kafka and RocketMQ: how text stands for bytes. Spark writes bytes to JSON as base64.  [default: utf-8]",
)
@click.option("--by-segment", is_flag=True, help="Part the table by segment, for 'expire'.")
@click.option("--overwrite", is_flag=True, help="Replace what is in the output folder.")
@click.option("--show", type=click.IntRange(min=0), default=0, help="Print so many of the messages.")
@click.option("--stream", is_flag=True, help="Do what is new since the last time, from a checkpoint.")
@click.option("--interval", type=click.FloatRange(min=0), help="With --stream: go on, looking every so many seconds.")
def messages(
    input: str,
    output: str,
    by_segment: bool,
    overwrite: bool,
    show: int,
    stream: bool,
    interval: float | None,
    table_format: str,
    **options: Any,
) -> None:
    """Make one table of messages: their ids, places, states, checksums and payloads.

    INPUT is a file or folder: of Iggy's .log segments, of text files of JSON, of Parquet files with a column of encoded
    messages, or of files that hold one each. Rows of Kafka and RocketMQ are in Parquet or JSON files. A message that
    does not decode, or fails its checksum or its schema, is in the table as 'poisoned', with the reason and its bytes.
    Files that cannot be read are listed in 'unreadable', and the exit status is 3; with --stream, a later run reads
    them once repaired.
    """
    from spark_ext.jobs import _files as files
    from spark_ext.jobs import messages_job as job

    _check_stream_options(stream, overwrite, interval)
    if by_segment and stream and table_format == "parquet":
        raise click.UsageError(
            "--by-segment with --stream needs --table-format delta: in Parquet, each batch is a folder"
        )
    source = job.Source(**options)
    with _one_line_errors(output):
        spark = session()
        if stream:
            result = job.run_stream(
                spark, input, output, source, interval=interval, by_segment=by_segment, table_format=table_format
            )
        else:
            mode = "overwrite" if overwrite else "error"
            result = job.run(spark, input, output, source, mode=mode, by_segment=by_segment, table_format=table_format)
        table = files.written(spark, f"{output}/{job.MESSAGES}") if show else None
        if table is not None:
            table.select("id", "topic", "offset", "state", "timestamp", "payload", "reason").show(show, truncate=36)
    width = len(f"{result.rows:,}")
    click.echo(f"{result.rows:>{width},} messages of {input}")
    for state, rows in result.states:
        why = ", ".join(f"{count:,} {reason}" for reason, count in result.reasons) if state == "poisoned" else ""
        click.echo(f"{rows:>{width},} {state}" + (f" ({why})" if why else ""))
    for layout, rows in result.layouts:
        click.echo(f"{rows:>{width},} in Iggy's layout {layout}")
    if result.without_id:
        click.echo(f"{result.without_id:>{width},} without identity")
    click.echo(f"written to {output}/{job.MESSAGES}")
    _report_unreadable(result.unreadable, output)


@spark_ext.command()
@click.argument("table")
@click.option(
    "--policy", required=True, type=click.Path(exists=True, dir_okay=False), help="A TOML file: what expires."
)
@click.option("--apply", is_flag=True, help="Remove the expired segments. Default: only report them.")
@click.option("--mark", is_flag=True, help="Mark the messages for deletion, and keep them.")
@_table_format
def expire(table: str, policy: str, apply: bool, mark: bool, table_format: str) -> None:
    """Report which segments of a message TABLE have expired, and with --apply remove them.

    TABLE is written by 'messages --by-segment': Parquet, partitioned by source, topic, partition and segment, or Delta.
    The policy has default_expiry in seconds (0: never), and expiries by topic under [topics].
    """
    from datetime import datetime, timezone

    from msgid.retention import InvalidPolicy, RetentionPolicy
    from spark_ext.tables.segments import TableBusy, clean

    now = datetime.now(timezone.utc)
    with _one_line_errors(table):
        try:
            rules = RetentionPolicy.load(policy)
            report = clean(table, rules, now, not apply, mark=mark, spark=session(), format=table_format)
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
    said = done if apply else f"would be {done}; --apply does it"
    messages, bytes = sum(found.messages for found in gone), sum(found.bytes for found in gone)
    click.echo(f"{len(gone):,} of {len(report):,} segments, {messages:,} messages, {bytes:,} bytes: {said}")


@spark_ext.command()
@click.argument("input")
@click.option("--handler", required=True, help="The handler: module:function, found from here.")
@click.option("--key", required=True, help="The column of the business key, whose state a message changes.")
@click.option("--checkpoint", required=True, help="The folder that knows what is done, and the states.")
@click.option("-o", "--output", required=True, help="The folder to write: 'outputs' in it.")
@_table_format
@click.option("--id", default="id", show_default=True, help="The column of message ids.")
@click.option("--timestamp", help="The column of the messages' own times.  [default: those of their ids]")
@click.option("--retention", default=7.0, show_default=True, help="Days that a redelivered message is recognized.")
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="How often a handler that raises is run before its message is written with kind=failed.",
)
@click.option("--keep-outputs", is_flag=True, help="Store the outputs, and answer a redelivered message from them.")
@click.option(
    "--buckets",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    help="Number of groups of keys, at least the number of cores. It is part of the checkpoint.",
)
@click.option(
    "-f",
    "--format",
    type=click.Choice(["csv", "tsv", "json", "parquet"]),
    help="The input's format.  [default: by its ending]",
)
@click.option("--interval", type=click.FloatRange(min=0), help="Go on, looking for more every so many seconds.")
def process(input: str, handler: str, **options: Any) -> None:
    """Handle the messages in the files of a folder so that handling one again changes nothing.

    INPUT is a folder, into which files are moved whole. Each message is handled once, on the state of its key, whenever
    it comes again and whatever ends in between: the outputs' ids are derived from its own. Files that cannot be read to
    their end are listed in 'unreadable', and the exit status is 3: repair such a file and put it in under another name.
    """
    from spark_ext.jobs import process_job as job

    with _one_line_errors(options["output"]):
        function = job.load_handler(handler)
        result = job.run(session(bar=False), input, function, **options)
    width = len(f"{max(result[:5]):,}")
    click.echo(f"{result.outputs:>{width},} outputs, written to {options['output']}/{job.OUTPUTS}/*/kind=new")
    for kind in ("too late", "malformed", "failed", "changed"):
        count = getattr(result, kind.replace(" ", "_"))
        click.echo(f"{count:>{width},} messages {kind}" + (f", there as kind={kind}" if count else ""))
    _report_unreadable(result.unreadable, options["output"])


def _report_unreadable(files: Sequence[BadFile], output: str) -> None:
    """Print the files whose rows are missing, and end with the status that says so."""
    if not files:
        return
    from spark_ext.jobs._bad_files import UNREADABLE

    for file in files[:_SHOWN_FILES]:
        click.echo(f"cannot read {file.path}: {file.reason}", err=True)
    click.echo(f"Files left out: {len(files):,}, listed in {output}/{UNREADABLE}", err=True)
    sys.exit(_LEFT_OUT)


@spark_ext.command()
@click.argument("input")
@audit_options
@click.option(
    "-f",
    "--format",
    type=click.Choice(["csv", "tsv", "json", "parquet", "text", "delta"]),
    help="The input's format.  [default: found by the input]",
)
def audit(
    input: str,
    source: tuple[str, ...],
    content: tuple[str, ...],
    format: str | None,
    report: str | None,
    as_json: bool,
    fail_on: Severity | None,
    **columns: str | None,
) -> None:
    """Find the lost, duplicated and late messages of a table by their IDs and offsets.

    INPUT is a file or folder of text, CSV, TSV, JSON, Parquet or Delta, or the output folder of 'ids', 'messages' or
    'process'. The columns of such outputs, and of tables of Kafka and RocketMQ, are known.
    """
    from spark_ext.jobs import audit_job as job

    with _one_line_errors(input):
        found = job.run(session(), input, format=format, source=source or None, content=content or None, **columns)
    finish_audit(found, report, as_json, fail_on)


def _check_stream_options(stream: bool, overwrite: bool, interval: float | None) -> None:
    if stream and overwrite:
        raise click.UsageError(
            "--stream adds to the output folder, from its checkpoint: --overwrite does not go with it"
        )
    if interval is not None and not stream:
        raise click.UsageError("--interval goes with --stream")


@contextmanager
def _one_line_errors(output: str) -> Iterator[None]:
    """Say what a user can mend in a line, without a traceback."""
    from pyspark.errors import AnalysisException

    from spark_ext._filesystem import PathError
    from spark_ext.jobs._files import BadInput

    try:
        yield
    except (NoJava, NotImplementedError, BadInput, PathError, ImportError) as error:
        raise click.ClickException(str(error)) from None
    except AnalysisException as error:
        if error.getCondition() == "PATH_ALREADY_EXISTS":
            raise click.ClickException(f"{output} holds results already; --overwrite replaces them") from None
        raise click.ClickException(str(error).split("\n")[0]) from None


def main(name: str = "python -m spark_ext") -> None:
    """Run the command line under the name that it was called by."""
    sys.exit(spark_ext(prog_name=name))
