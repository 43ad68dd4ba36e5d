"""Create SQL functions in the catalog of a session, without a statement for each.

Spark parses and analyzes the body of each function when a statement creates it. A query that uses the function does
the same again. So these functions go to the catalog as they are, with types that are known here.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from spark_ext.sql.functions import Definition

    Under = Callable[[Callable[[str], "str | None"]], Mapping[str, str]]
    """Returns settings. The argument is a function that returns the value of a setting."""

__all__ = ["create_like", "stored_like"]

_SQL_FUNCTION: Final = "sqlFunction."
"""The class that Spark names for a function in SQL, and the prefix of its properties."""
_PARAMETERS: Final = f"{_SQL_FUNCTION}inputParam"
_CALL: Final = re.compile(r"\b(msgid_\w+)\(")
_ONLY_PART: Final = "000"
"""The number that Spark puts before each part of the stored form. Here the form has one part."""


def create_like(spark: SparkSession, model: Definition, wanted: Sequence[Definition], under: Under) -> bool:
    """Create temporary functions as copies of a function that a statement has created.

    The statement runs in a session of its own, so the settings of ``spark`` stay as they are for its other queries.
    The classes belong to Spark's JVM and not to its public interface. Where they differ, or Spark Connect hides them,
    statements must create the functions.

    Args:
        spark: The session that gets the functions.
        model: A function with a short body.
        wanted: The functions.
        under: Gives the settings for the statement, which Spark stores with the functions.

    Returns:
        Whether the functions were created.
    """
    if not hasattr(spark, "_jsparkSession"):  # Spark Connect, whose client can do without Py4J
        return False
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        _create(spark, model, wanted, under)
    except (Py4JError, PySparkException, AttributeError, TypeError, ValueError):
        return False
    return True


def _create(spark: SparkSession, model: Definition, wanted: Sequence[Definition], under: Under) -> None:
    internal: Any = spark  # the stubs know nothing of the JVM
    session, jvm = internal._jsparkSession, internal._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    classes, identifier = catalyst.catalog, catalyst.FunctionIdentifier
    stored, file = classes.CatalogFunction, classes.FunctionResourceType.fromString("file")
    resource, read = classes.FunctionResource, classes.SQLFunction.fromCatalogFunction
    sequence, parser = jvm.org.apache.spark.api.python.PythonUtils.toSeq, session.sessionState().sqlParser()

    private = session.newSession()
    for key, value in under(private.conf().get).items():
        private.conf().set(key, value)
    private.sql(model.statement)
    form = private.sessionState().catalog().lookupFunctionInfo(identifier(model.name)).getUsage()
    made = []
    for one in wanted:
        parts = sequence([resource(file, _ONLY_PART + stored_like(form, one))])
        made.append(read(stored(identifier(one.name), _SQL_FUNCTION, parts), parser))
    for function in made:
        session.sessionState().catalog().registerSQLScalarFunction(function, True)


def stored_like(model: str, wanted: Definition) -> str:
    """Return the form in which Spark stores a function: everything but its definition is that of a model.

    Args:
        model: Stored form of the model, JSON. It has settings of the session, which Spark stores with a function.
        wanted: The definition.

    Raises:
        ValueError: if the form of the model is not JSON, or has other properties than are known here.
    """
    properties = json.loads(model)
    own = {
        _PARAMETERS: wanted.parameters,
        f"{_SQL_FUNCTION}returnType": wanted.returns,
        f"{_SQL_FUNCTION}expression": wanted.body,
        f"{_SQL_FUNCTION}deterministic": str(wanted.deterministic).lower(),
        "referredTempFunctionsNames": json.dumps(sorted(set(_CALL.findall(wanted.body)))),
    }
    if not own.keys() <= properties.keys():
        raise ValueError(f"cannot store {wanted.name}: this Spark has other properties, got {model!r}")
    form = {**properties, **own}
    if not wanted.parameters:
        del form[_PARAMETERS]
    return json.dumps(form)
