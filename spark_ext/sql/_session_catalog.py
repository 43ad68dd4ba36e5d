"""Create SQL functions in the catalog of a session, without a statement for each.

Spark parses and analyzes the body of each function when a statement creates it. A query that uses the function does
the same again. So these functions go to the catalog as they are, with types that are known here.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from spark_ext.sql.functions import Definition

__all__ = ["create_like"]

_CALLED: Final = "referredTempFunctionsNames"
"""The property of a function in which Spark lists the temporary functions that its body may call."""
_CALL: Final = re.compile(r"\b(msgid_\w+)\(")


def create_like(spark: SparkSession, model: str, wanted: Sequence[Definition]) -> bool:
    """Create deterministic temporary functions as copies of a function that a statement has created.

    From the model they take everything but their own definition, such as the settings that Spark stores with a
    function. The classes belong to Spark's JVM and not to its public interface: where one of them differs, or Spark
    Connect hides them, nothing is created.

    Returns:
        Whether the functions were created. If not, statements must create them.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        _create(spark, model, wanted)
    except (Py4JError, PySparkException, AttributeError, TypeError):
        return False
    return True


def _create(spark: SparkSession, model: str, wanted: Sequence[Definition]) -> None:
    internal: Any = spark  # the stubs know nothing of the JVM
    state, jvm = internal._jsparkSession.sessionState(), internal._jvm
    catalog, catalyst = state.catalog(), jvm.org.apache.spark.sql.catalyst
    some, left, identifier = jvm.scala.Some, jvm.scala.util.Left, catalyst.FunctionIdentifier
    from_ddl = jvm.org.apache.spark.sql.types.DataType.fromDDL

    @cache
    def type_of(ddl: str) -> Any:
        return from_ddl(ddl)

    found = catalog.lookupFunctionInfo(identifier(model))
    like = catalyst.catalog.SQLFunction.fromExpressionInfo(found, state.sqlParser())
    names = like.productElementNames()
    fields = {names.next(): like.productElement(place) for place in range(like.productArity())}
    made = []
    for one in wanted:
        changed = {
            "name": identifier(one.name),
            "inputParam": some(type_of(one.parameters)),
            "returnType": left(type_of(one.returns)),
            "exprText": some(one.body),
            "properties": fields["properties"].updated(_CALLED, json.dumps(sorted(set(_CALL.findall(one.body))))),
        }
        if not changed.keys() <= fields.keys():
            raise TypeError(f"SQLFunction of this Spark has other fields: {list(fields)}")
        made.append(like.copy(*{**fields, **changed}.values()))
    for function in made:
        catalog.registerSQLScalarFunction(function, True)
