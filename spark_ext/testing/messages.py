"""Tests that each message format must pass, for a `spark_ext.MessageFormat` of your own."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pytest

from msgid.shared import known_tables
from spark_ext.formats.message_formats import register_message_format
from spark_ext.formats.message_table import messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.formats.message_formats import MessageFormat

_COMPARED: Final = dict.fromkeys(("source", "topic", "partition", "offset", "timestamp", "payload"))
"""The columns that are compared in each message; they are NULL where it lacks them."""


class MessageFormatTests:
    """Tests of one message format. Set the attributes in a subclass whose name starts with ``Test``.

    The fixture ``spark`` is your session. A row is a tuple of the columns of ``schema``. If a queue has rows of several
    types, give each a subclass.
    """

    format: MessageFormat
    """The format. It is registered for each test."""
    schema: str
    """The columns of the rows, as Spark names their types."""
    good: Sequence[tuple[tuple[Any, ...], Sequence[dict[str, Any]]]]
    """Rows, and the messages of each: columns of the message table by name, computed in Python without Spark.

    ``source``, ``topic``, ``partition``, ``offset``, ``timestamp`` and ``payload`` are NULL where a message here lacks
    them. Other columns that it lacks are not compared. Times are microseconds since 1970.
    """
    malformed: Sequence[tuple[tuple[Any, ...], bytes]]
    """Rows that are not messages, and their bytes in the column ``original``."""
    options: ClassVar[dict[str, Any]] = {}
    """The options that are passed to `spark_ext.messages`."""

    @pytest.fixture(autouse=True)
    def _registered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from spark_ext.formats import message_formats

        monkeypatch.setattr(message_formats._FORMATS, "loaded", dict(message_formats._FORMATS.loaded))
        monkeypatch.setattr(known_tables, "registered", dict(known_tables.registered))
        register_message_format(self.format)

    def test_each_message_of_a_row_has_the_values_of_python(self, spark: SparkSession) -> None:
        """ID, place, time, payload and all other values that are given are equal; the message is available."""
        expected = [{**_COMPARED, "state": "available", **message} for _, several in self.good for message in several]
        assert expected, "give good rows"
        names = sorted({name for message in expected for name in message})
        rows = self._table(spark, [row for row, _ in self.good]).collect()
        messages = [{name: _plain(row[name]) for name in names} for row in rows]
        wanted = [{name: message.get(name) for name in names} for message in expected]
        partial = [
            {name: value if name in message else None for name, value in one.items()}
            for one, message in zip(sorted(messages, key=_order), sorted(expected, key=_order), strict=True)
        ]
        for one, other in zip(partial, sorted(wanted, key=_order), strict=True):
            assert one == other, f"{one} is not {other}"

    def test_a_malformed_row_is_a_row_with_its_reason_and_bytes(self, spark: SparkSession) -> None:
        """It is poisoned, its ID is NULL, and it does not change the rows beside it; so is a row of NULLs."""
        assert self.malformed, "give malformed rows"
        good, nulls = [row for row, _ in self.good], (None,) * len(self.good[0][0])
        rows = self._table(spark, [*good, *(row for row, _ in self.malformed), nulls]).collect()
        poisoned = [row for row in rows if row["state"] == "poisoned"]
        assert len(poisoned) == len(self.malformed) + 1
        originals = Counter(bytes(row["original"] or b"") for row in poisoned)
        assert not Counter(raw for _, raw in self.malformed) - originals
        assert all(row["reason"] and row["id"] is None for row in poisoned)
        assert len(rows) - len(poisoned) == sum(len(several) for _, several in self.good)

    def test_an_id_depends_on_the_row_alone(self, spark: SparkSession) -> None:
        """Order, tasks and repetitions of rows do not matter."""
        rows = [row for row, _ in self.good]
        once = [message.get("id") for _, several in self.good for message in several]
        if None in once:
            once = [row["id"] for row in self._table(spark, rows).collect()]
        again = messages(self._df(spark, [*reversed(rows), *rows]).repartition(3), self.format.name, **self.options)
        assert sorted(str(row["id"]) for row in again.collect()) == sorted(map(str, [*once, *once]))

    def test_the_table_has_the_columns_of_all_formats(self, spark: SparkSession) -> None:
        """Their names and types are the same, also of a table without rows."""
        table = self._table(spark, [])
        types = {field.name: field.dataType.simpleString() for field in table.schema.fields}
        expected = self._df(spark, []).selectExpr(
            *(f"CAST(NULL AS {type}) AS `{name}`" for name, type in known_tables.MESSAGES.types.items())
        )
        assert types == {field.name: field.dataType.simpleString() for field in expected.schema.fields}
        assert table.count() == 0

    def _df(self, spark: SparkSession, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
        return spark.createDataFrame(list(rows), self.schema)

    def _table(self, spark: SparkSession, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
        return messages(self._df(spark, rows), self.format.name, **self.options)


def _plain(value: Any) -> Any:
    """Return a value of a row: bytes, microseconds in place of a time, and dicts in place of rows."""
    from datetime import datetime, timezone

    from pyspark.sql import Row

    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, datetime):
        from msgid.shared.moments import unix_micros

        return unix_micros(value.astimezone(timezone.utc))
    if isinstance(value, Row):
        return {name: _plain(item) for name, item in value.asDict().items()}
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def _order(message: dict[str, Any]) -> str:
    return repr((message.get("id"), message.get("source"), message.get("offset"), message.get("payload")))
