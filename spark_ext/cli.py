"""The command line: ``python -m spark_ext ids``."""

from __future__ import annotations

import sys

import click

import msgid
from spark_ext.session import NoJava, session


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(msgid.__version__)
def spark_ext() -> None:
    """Work on message ids with Spark."""


@spark_ext.command()
@click.argument("input")
@click.option("-o", "--output", required=True, help="The folder to write: 'ids' and 'malformed' in it, as Parquet.")
@click.option("-c", "--column", help="The column of ids.  [default: id; value for text]")
@click.option(
    "-f",
    "--format",
    type=click.Choice(["csv", "tsv", "json", "parquet", "text"]),
    help="The input's format.  [default: by its ending]",
)
@click.option("--overwrite", is_flag=True, help="Replace what is in the output folder.")
@click.option("--show", type=click.IntRange(min=0), default=0, help="Print so many of the rows written.")
def ids(input: str, output: str, column: str | None, format: str | None, overwrite: bool, show: int) -> None:
    """Take the ids in a file of messages apart.

    INPUT is a file or folder of text, CSV, TSV, JSON or Parquet. Its columns are kept, and one is added for each field
    of the ids. Rows without a good id go to a folder of their own, with the reason.
    """
    from pyspark.errors import AnalysisException

    from spark_ext.jobs import ids as job

    format = format or job.guess_format(input)
    column = column or ("value" if format == "text" else "id")
    try:
        spark = session()
        summary = job.run(
            spark, input, output, column=column, format=format, mode="overwrite" if overwrite else "error"
        )
    except (NoJava, job.BadInput) as error:
        raise click.ClickException(str(error)) from None
    except AnalysisException as error:
        if error.getCondition() == "PATH_ALREADY_EXISTS":
            raise click.ClickException(f"{output} holds results already; --overwrite replaces them") from None
        raise click.ClickException(str(error).split("\n")[0]) from None
    if show:
        names = [column, *(f"{column}_{name}" for name in ("kind", "time", "mac", "host", "pid", "offset", "sequence"))]
        rows = spark.read.parquet(f"{output}/ids").select(*(job.quoted(name) for name in names))
        rows.show(show, truncate=False)
    width = len(f"{summary.rows:,}")
    click.echo(f"{summary.rows:>{width},} rows of {input}")
    for kind, count in summary.kinds.items():
        click.echo(f"{count:>{width},} {kind}")
    click.echo(f"{summary.malformed:>{width},} malformed" + (", kept aside" if summary.malformed else ""))
    click.echo(f"written to {output}/ids" + (f" and {output}/malformed" if summary.malformed else ""))


def main() -> None:
    """Run the command line."""
    sys.exit(spark_ext(prog_name="python -m spark_ext"))
