"""The job ``messages``: write messages of any format to one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F

from msgid.messages import MessageState
from msgid.schemas import SchemaRegistry
from msgid.shared import known_tables
from spark_ext.formats.message_formats import message_format
from spark_ext.formats.message_table import check_policy, messages
from spark_ext.jobs._input import BadInput, JobFiles
from spark_ext.jobs._output import write_table, written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from msgid.schemas.validation import Framing, Policy

MESSAGES: Final = known_tables.MESSAGES.folder
_POISONED = str(MessageState.POISONED)
"""Parquet: one folder per segment of a source, so that two streams with equal topic names have folders of their own."""


class Source:
    """How to read the input: the arguments of `spark_ext.messages`, with the schema registry as a file.

    Args:
        format: name of the message format.
        files: ``parquet`` or ``json``: the format of files of exported rows. Default: by their endings.
        registry: file of a schema registry.
        subject: subject of the schemas.
        policy: check of schemas.
        framing: framing of payloads.
        options: the options of the format; None is the default.
    """

    def __init__(
        self,
        format: str,
        *,
        files: str | None = None,
        registry: str | None = None,
        subject: str | None = None,
        policy: Policy = "none",
        framing: Framing = "none",
        **options: Any,
    ) -> None:
        self.format, self.files, self.registry = format, files, registry
        self.options = {name: value for name, value in options.items() if value is not None}
        self._schemas: dict[str, Any] = {"subject": subject, "policy": policy, "framing": framing}

    def check(self) -> None:
        """Raise BadInput for options that do not fit together, before Spark is asked."""
        if self.registry is not None and not Path(self.registry).exists():
            raise BadInput(f"no schema registry {self.registry}")
        try:
            check_policy(self._schemas["policy"], self.registry)
        except ValueError as error:
            raise BadInput(str(error)) from None

    def read(self, spark: SparkSession, path: str) -> DataFrame:
        """Read the input as a DataFrame for `spark_ext.messages`."""
        format = message_format(self.format)
        try:
            return format.read(JobFiles(spark, path, self.files), format.chosen(self.options))
        except OSError as error:
            raise BadInput(str(error)) from None

    def table(self, df: DataFrame) -> DataFrame:
        """Return the message table of the rows that `read` returned."""
        try:
            self.check()
            registry = None if self.registry is None else SchemaRegistry(self.registry)
            return messages(df, self.format, registry=registry, **self._schemas, **self.options)
        except (ValueError, OSError) as error:
            raise BadInput(str(error)) from None


class Summary(NamedTuple):
    """The numbers of messages in the table."""

    states: list[tuple[str, int]]
    """Number of messages in each state."""
    reasons: list[tuple[str, int]]
    """Number of poisoned rows by cause: decoding, checksum or schema."""
    without_id: int
    """Number of messages that were decoded but do not have an ID."""

    @property
    def rows(self) -> int:
        """The number of all messages."""
        return sum(count for _, count in self.states)

    def lines(self, input: str) -> list[str]:
        """Return the summary of the messages of an input as lines of text."""
        width = len(f"{self.rows:,}")
        lines = [f"{self.rows:>{width},} messages of {input}"]
        for state, rows in self.states:
            why = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons) if state == _POISONED else ""
            lines.append(f"{rows:>{width},} {state}" + (f" ({why})" if why else ""))
        if self.without_id:
            lines.append(f"{self.without_id:>{width},} without an ID")
        return lines


def run(
    spark: SparkSession,
    input: str,
    output: str,
    source: Source,
    *,
    mode: str = "error",
    table_format: str = "parquet",
) -> Summary:
    """Read messages and write their table.

    Args:
        spark: the session.
        input: a file or folder.
        output: the output folder; its folder ``messages`` is written.
        source: how to read the input.
        mode: Spark's save mode, ``error`` or ``overwrite``.
        table_format: ``parquet`` or ``delta``: the format of the tables.

    Raises:
        BadInput: if the options do not fit the input.
    """
    table = source.table(source.read(spark, input))
    write_table(table, f"{output}/{MESSAGES}", mode, table_format)
    written = summary(spark, output)
    if not written.rows:
        raise BadInput(f"found no messages in {input}: check the path, and the names and the format of the files")
    return written


def summary(spark: SparkSession, output: str) -> Summary:
    """Count the messages that a run has written to its output folder."""
    table = written(spark, f"{output}/{MESSAGES}")
    if table is None:
        return Summary([], [], 0)
    why = (
        F.when(F.col("reason").startswith("checksum"), "checksum")
        .when(F.col("reason").startswith("schema"), "schema")
        .otherwise("decoding")
    )
    poisoned = F.col("state") == _POISONED
    why = F.when(poisoned & F.col("reason").isNotNull(), why).alias("why")
    counted = table.groupBy("state", why, F.col("id").isNull().alias("bare")).count().collect()
    states = {str(state): 0 for state in MessageState}
    reasons = dict.fromkeys(("decoding", "checksum", "schema"), 0)
    without_id = 0
    for row in counted:
        rows = row["count"]
        states[row["state"]] += rows
        if row["why"] is not None:
            reasons[row["why"]] += rows
        if row["bare"] and not (row["state"] == _POISONED and row["why"] in (None, "decoding")):
            without_id += rows
    return Summary(
        [(state, rows) for state, rows in states.items() if rows],
        [(reason, rows) for reason, rows in reasons.items() if rows],
        without_id,
    )
