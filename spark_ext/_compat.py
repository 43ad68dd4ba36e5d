"""The differences between the versions of Spark, in one place: what each version lacks, and what replaces it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NoReturn

from spark_ext._shipping import shipped

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

WHOLE: Final = (4, 0)
"""The first version that runs every function but the stream of ``format("iggy")``."""
STREAM_SOURCE: Final = (4, 2)
"""The first version in which a Python source of a stream learns where the query stands."""
_ARROW_UDF: Final = (4, 1)


def version() -> tuple[int, int]:
    """Return the major and minor version of PySpark."""
    import pyspark

    major, minor = re.findall(r"\d+", pyspark.__version__)[:2]
    return int(major), int(minor)


def needs(what: str, since: tuple[int, int]) -> None:
    """Check that PySpark has at least a version.

    Raises
    ------
    NotImplementedError
        If PySpark is older.
    """
    import pyspark

    if version() < since:
        raise NotImplementedError(f"{what} needs Spark {since[0]}.{since[1]} or later, got {pyspark.__version__}")


def unsupported(name: str, since: tuple[int, int]) -> Callable[..., NoReturn]:
    """Return a function that raises NotImplementedError when it is called, in place of one that PySpark cannot run."""

    def refuse(*arguments: object, **named: object) -> NoReturn:
        needs(name, since)
        raise AssertionError(name)

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def type_named(type: DataType, name: str) -> bool:
    """Return whether a type has a name; older versions lack the classes of some types."""
    return type.typeName() == name


def try_cast(column: Column, type: str) -> Column:
    """Cast a column; NULL for a value that is not of the type.

    Spark 3.5 does not have this cast for columns. Its plain cast does the same, but in ANSI mode it fails the query.
    """
    return column.try_cast(type) if version() >= WHOLE else column.cast(type)


def arrow_udf(function: Callable[..., Any], returns: DataType | str) -> Any:
    """Return a UDF of a function of Arrow arrays; before Spark 4.1, a pandas UDF that converts them.

    Parameters
    ----------
    function : callable
        Takes Arrow arrays and returns one.
    returns : DataType or str
        Type of the result. Before Spark 4.1: text or a number.
    """
    function = shipped(function)

    def applied(*values: Any) -> Any:
        return function(*values)

    # Spark reads the annotations to see what the function takes. It cannot resolve them as text.
    if version() >= _ARROW_UDF:
        import pyarrow
        from pyspark.sql.pandas import functions

        applied.__annotations__ = {"values": pyarrow.Array, "return": pyarrow.Array}
        return functions.arrow_udf(applied, returns)  # type: ignore[call-overload]

    import pandas as pd
    from pyspark.sql.pandas.functions import pandas_udf

    def converted(*values: Any) -> Any:
        import pandas as pd
        import pyarrow

        result = function(*(pyarrow.array(one, from_pandas=True) for one in values))
        return pd.Series(result.to_pylist(), dtype=object)

    converted.__annotations__ = {"values": pd.Series, "return": pd.Series}
    make_udf: Any = pandas_udf
    return make_udf(converted, returns)


def arrow_column(function: Callable[..., Any], type: pyarrow.DataType, *columns: Column) -> Column:
    """Apply a function of Arrow arrays to columns."""
    from pyspark.sql.pandas.types import from_arrow_type

    if version() >= _ARROW_UDF:
        result: Column = arrow_udf(function, from_arrow_type(type))(*columns)
        return result
    return _pandas_column(function, type, *columns)


def _pandas_column(function: Callable[..., Any], type: pyarrow.DataType, *columns: Column) -> Column:
    """Apply a function of Arrow arrays with a pandas UDF.

    In pandas an integer cannot be NULL, and a struct that such a UDF returns is never NULL. So each argument travels
    in an array, which is empty for NULL, and the result in a struct of one field.
    """
    import pandas as pd
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.functions import pandas_udf
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    def applied(*values: Any) -> Any:
        import pandas as pd
        import pyarrow

        arrays = ([cells[0] if len(cells) else None for cells in one] for one in values)
        result = function(*(pyarrow.array(one) for one in arrays))
        return pd.DataFrame({"value": pd.Series([_plain(one, type) for one in result.to_pylist()], dtype=object)})

    applied.__annotations__ = {"values": pd.Series, "return": pd.DataFrame}
    returns = StructType([StructField("value", from_arrow_type(type))])
    make_udf: Any = pandas_udf  # its stubs know no structs
    compacted = (F.array_compact(F.array(column)) for column in columns)
    result: Column = make_udf(applied, returns)(*compacted).getField("value")
    return result


def _plain(value: Any, type: pyarrow.DataType) -> Any:
    """Return a value with maps as dictionaries, as pandas UDFs return them."""
    import pyarrow

    if value is None:
        return None
    if pyarrow.types.is_map(type):
        return {key: _plain(item, type.item_type) for key, item in value}
    if pyarrow.types.is_struct(type):
        return {field.name: _plain(value[field.name], field.type) for field in type}
    if pyarrow.types.is_list(type):
        return [_plain(item, type.value_type) for item in value]
    return value
