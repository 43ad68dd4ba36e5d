"""The verdict on payloads by their schemas, a column at a time, as `msgid.schemas.check` gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgid.schemas import Policy, SchemaRegistry, check, checked_policy
from spark_ext.udfs import arrow_column

if TYPE_CHECKING:
    from pyspark.sql import Column

    from spark_ext.expressions import ColumnOrName

__all__ = ["check_schema"]


def check_schema(
    payload: ColumnOrName,
    subject: ColumnOrName,
    schema_id: ColumnOrName,
    schema_version: ColumnOrName,
    registry: SchemaRegistry,
    policy: Policy = "enforce",
) -> Column:
    """Judge payloads by the schemas that their messages name, as `msgid.schemas.check` does.

    An Arrow UDF: it needs a Python worker. The registry is sent along as it is now.

    Parameters
    ----------
    payload : Column or str
        binary.
    subject : Column or str
        text: the subject that the messages' schemas must have.
    schema_id : Column or str
        integers, NULL where a message names no schema.
    schema_version : Column or str
        integers, NULL where a message names no version.
    registry : msgid.schemas.SchemaRegistry
        the schemas.
    policy : str
        ``none``, ``warn`` or ``enforce``.

    Returns
    -------
    Column
        a struct of ``verdict`` (``accept``, ``warn`` or ``reject``) and ``reason``; NULL where the payload is.

    Examples
    --------
    >>> from msgid.schemas import SchemaRegistry
    >>> registry = SchemaRegistry()
    >>> schema = registry.register("events", '{"type": "integer"}')
    >>> df = spark.createDataFrame([(b"1", "events", 1, 1), (b"{}", "events", 1, 1)], ["p", "t", "i", "v"])
    >>> df.select(check_schema("p", "t", "i", "v", registry).alias("c")).select("c.*").show(truncate=False)
    +-------+-----------------------------------+
    |verdict|reason                             |
    +-------+-----------------------------------+
    |accept |NULL                               |
    |reject |payload b'{}': data must be integer|
    +-------+-----------------------------------+
    """
    import pyarrow as pa

    checked_policy(policy)
    type = pa.struct([pa.field("verdict", pa.string()), pa.field("reason", pa.string())])

    def judged(*columns: Any) -> Any:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        verdicts = [
            None if held is None else check(held, registry, name, id, version, policy=policy)._asdict()
            for held, name, id, version in rows
        ]
        return pa.array(verdicts, type)

    return arrow_column(judged, type, payload, subject, schema_id, schema_version).alias("check_schema")
