"""Make Arrow UDFs from Python functions: `InvalidMessage` becomes NULL, a reason, or an error of the query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgid.errors import InvalidMessage
from spark_ext import _compat
from spark_ext._private import use_own_python
from spark_ext.columns.column_types import column

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow
    from pyspark.sql import Column

    from spark_ext.columns.column_types import ColumnOrName


def arrow_column(function: Callable[..., Any], type: pyarrow.DataType, *cols: ColumnOrName) -> Column:
    """Apply a function of Arrow arrays to columns."""
    from pyspark.sql import SparkSession

    use_own_python(SparkSession.getActiveSession())
    return _compat.arrow_column(function, type, *(column(col) for col in cols))


def outcomes(function: Callable[[Any], Any], type: pyarrow.DataType, col: ColumnOrName) -> Column:
    """Call a function on each value, for a struct of ``value`` and, if it is missing, the ``reason``."""
    import pyarrow as pa

    outcome = pa.struct([pa.field("value", type), pa.field("reason", pa.string())])

    def applied(values: Any) -> Any:
        def call(value: Any) -> dict[str, Any]:
            if value is None:
                return {"value": None, "reason": "no message"}
            try:
                return {"value": function(value), "reason": None}
            except InvalidMessage as error:
                return {"value": None, "reason": str(error)}

        return pa.array([call(value) for value in values.to_pylist()], outcome)

    return arrow_column(applied, outcome, col)
