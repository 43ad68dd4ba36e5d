"""Check payloads against their schemas: the column form of `msgid.schemas.check_schema`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgid.schemas.validation import Framing, Policy, SchemaSource, checked_framing, checked_policy
from msgid.schemas.validation import check_schema as check
from spark_ext.columns._udfs import arrow_column

if TYPE_CHECKING:
    from pyspark.sql import Column

    from spark_ext.columns._expressions import ColumnOrName


def check_schema(
    payload: ColumnOrName,
    subject: ColumnOrName,
    schema_id: ColumnOrName,
    schema_version: ColumnOrName,
    registry: SchemaSource,
    policy: Policy = "enforce",
    framing: Framing = "none",
) -> Column:
    """Check payloads against the schemas that their messages name, as `msgid.schemas.check_schema` does.

    An Arrow UDF: it needs a Python worker. Each worker gets a copy of the registry as it is at the call.

    Parameters
    ----------
    payload : Column or str
        Binary.
    subject : Column or str
        Text: the subject that the schema must belong to.
    schema_id : Column or str
        Integers; NULL where a message does not name a schema.
    schema_version : Column or str
        Integers; NULL where a message does not name a version.
    registry : msgid.schemas.SchemaSource
        Schemas by ID: a `msgid.schemas.SchemaRegistry`, or the result of `msgid.schemas.from_lookup` or
        `msgid.schemas.from_confluent`.
    policy : str
        ``none``, ``warn`` or ``enforce``.
    framing : str
        ``confluent`` if each payload begins with a zero byte and the schema ID (u32, big-endian). Default: ``none``.

    Returns
    -------
    Column
        A struct of ``verdict`` (``accept``, ``warn`` or ``reject``) and ``reason``; NULL where the payload is NULL.

    Examples
    --------
    >>> from msgid.schemas import SchemaRegistry
    >>> registry = SchemaRegistry()
    >>> schema = registry.register("events", '{"type": "integer"}')
    >>> df = spark.createDataFrame([(b"1", "events", 1, 1), (b"{}", "events", 1, 1)], ["p", "t", "i", "v"])
    >>> df.select(check_schema("p", "t", "i", "v", registry).alias("c")).select("c.*").show(truncate=False)
    +-------+------------------------------------------+
    |verdict|reason                                    |
    +-------+------------------------------------------+
    |accept |NULL                                      |
    |reject |payload b'{}': {} is not of type "integer"|
    +-------+------------------------------------------+
    """
    import pyarrow as pa

    checked_policy(policy)
    checked_framing(framing)
    type = pa.struct([pa.field("verdict", pa.string()), pa.field("reason", pa.string())])

    def judged(*columns: Any) -> Any:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        verdicts = [
            None if held is None else check(held, registry, name, id, version, policy=policy, framing=framing)._asdict()
            for held, name, id, version in rows
        ]
        return pa.array(verdicts, type)

    return arrow_column(judged, type, payload, subject, schema_id, schema_version).alias("check_schema")
