"""User code on handlers and Spark columns that mypy checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import spark_ext
from msgid.kafka import Record
from msgid.processing import Context, MemoryStore, Message, Output, Processor

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def count(state: Any, message: Message, context: Context) -> Any:
    """Count the messages of a key."""
    seen: int = (state or 0) + 1
    context.publish({"seen": seen, "id": str(message.id)})
    return seen


published: list[Output] = []


def publish(outputs: Sequence[Output]) -> None:
    """Collect the outputs of a handler."""
    published.extend(outputs)


counting = Processor(MemoryStore(), count, publish)
kind: str = counting.handle(Message("0156F7E71C361B21BC024CCDBE00000000", "customer 7", {"amount": 3})).kind
Processor(MemoryStore(), "count", publish)  # type: ignore[arg-type]  # a handler is a function


def total(state: Any, message: Message, context: Context) -> Any:
    """Add up the messages of a key."""
    return (state or 0) + message.body


totals = Processor(MemoryStore(), total, publish, attempts=5)
Processor(MemoryStore(), total, publish, attemps=5)  # type: ignore[call-arg]  # attempts


def handle(record: Record) -> str:
    """Handle a record of Kafka."""
    return totals.handle(record.message(key="customer 7")).kind


def read(orders: DataFrame) -> DataFrame:
    """Return the orders with their time, without duplicates."""
    time: Column = spark_ext.id_time("id")
    fields: Column = spark_ext.try_parse_id(orders["id"])
    return orders.select(time, fields, spark_ext.position_id("topic", "offset", "at"))
