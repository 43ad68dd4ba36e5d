"""`register` creates the SQL functions as temporary functions of a session, and registers ``format("iggy")``."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import TYPE_CHECKING, Final, NamedTuple

from spark_ext._private import create_like, use_own_python
from spark_ext._settings import settings
from spark_ext.columns import making
from spark_ext.formats.iggy_source import IggyDataSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

# Spark stores these settings with a function, so those of the session do not change its results.
_STORED: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
# How Spark reads the text of a function. It warns of a change of the second one.
_BY_DEFAULT: Final = {
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
}

_MODEL: Final = "msgid_from_iggy_id"
"""A function with a short body, from which the others are copied."""
_ENTRY: Final = re.compile(
    r"-- returns (?P<returns>[^\n]+?)(?P<random>, not deterministic)?\n"
    r"CREATE OR REPLACE TEMPORARY FUNCTION (?P<name>\w+)\((?P<parameters>[^\n]*)\)\n"
    r"COMMENT '(?P<comment>[^\n]*)'\nRETURN\n(?P<body>.*?)\n;\n",
    re.DOTALL,
)
_changing: Final = threading.Lock()  # the settings of a session, which threads would restore in the wrong order


def register(spark: SparkSession) -> list[str]:
    """Create the SQL functions ``msgid_parse``, ``msgid_position`` and so on in a session, and register ``iggy``.

    The functions are temporary: they belong to this session, and not to one that ``newSession()`` returns. All but
    ``msgid_generate`` are inlined into the query that uses them. Each call of ``msgid_assign()`` in each query has a
    random node of its own. ``msgid_generate()`` returns a new ID for each row. Afterwards
    ``spark.read.format("iggy")`` works.

    A time is a timestamp or Unix seconds. A date or a ``timestamp_ntz`` is rejected before the query runs, the text of
    a timestamp when it is read. A time that is NaN or infinite counts as NULL, because Spark casts it to NULL; the
    column functions fail. An ID is text or binary. A binary value of 16 or 28 characters is read as text if all its
    control characters are tabs and line ends. Convert such version-0 IDs with ``hex``. Text of 16, 17, 28 or 29 bytes
    is read as a binary value if it has another ASCII control character or U+FFFD. A VARIANT is read as its text;
    the column functions need a cast to ``string``.

    Parameters
    ----------
    spark : SparkSession
        classic session, or session of Spark Connect.

    Returns
    -------
    list of str
        names of the functions.

    Raises
    ------
    NotImplementedError
        If PySpark is older than 4.0, whose SQL cannot create such functions.

    Examples
    --------
    >>> names = register(spark)
    >>> spark.sql("SELECT msgid_kind('7F0000010000238F000000000001E240') AS kind").show()
    +----------------+
    |            kind|
    +----------------+
    |v0-broker-offset|
    +----------------+
    """
    use_own_python(spark)
    # Spark starts a Python process to register the first source, which takes as long as the functions.
    with ThreadPoolExecutor(1) as pool:
        source = pool.submit(_register_source, spark)
        create_functions(spark)
        source.result()
    return [one.name for one in definitions() if not one.name.startswith("_")]


class Definition(NamedTuple):
    """The parts from which Spark creates one function.

    Attributes:
        name: Name of the function.
        parameters: Names and types, as in SQL.
        body: An SQL expression of the parameters.
        comment: The text that ``DESCRIBE FUNCTION`` shows.
        returns: Type of the result, which Spark finds in the body too.
        deterministic: Whether the same arguments always give the same result. Spark finds that in the body too.
    """

    name: str
    parameters: str
    body: str
    returns: str
    deterministic: bool = True
    comment: str = ""

    @property
    def statement(self) -> str:
        """The SQL statement that creates the function."""
        comment = self.comment.replace("\\", r"\\").replace("'", r"\'")
        head = f"CREATE OR REPLACE TEMPORARY FUNCTION {self.name}({self.parameters})"
        return f"{head} COMMENT '{comment}' RETURN {self.body}"


def definitions() -> list[Definition]:
    """Return the functions in ``functions.sql``, each after those that it calls."""
    text = resources.files(__package__).joinpath("functions.sql").read_text(encoding="ascii")
    return [
        Definition(
            one["name"],
            one["parameters"],
            one["body"].strip(),
            one["returns"],
            deterministic=not one["random"],
            comment=re.sub(r"\\(.)", r"\1", one["comment"]),
        )
        for one in _ENTRY.finditer(text)
    ]


def create_functions(spark: SparkSession) -> None:
    """Create the functions of ``functions.sql``."""
    spark.udf.register("_msgid_generate", making.generator_udf())  # which the SQL function msgid_generate calls
    by_name = {one.name: one for one in definitions()}
    if create_like(spark, by_name[_MODEL], list(by_name.values()), _created_under):
        return
    with _changing, settings(spark, _created_under(spark.conf.get)):
        for one in by_name.values():
            spark.sql(one.statement)


def _created_under(get: Callable[[str], str | None]) -> dict[str, str]:
    return _STORED | {key: value for key, value in _BY_DEFAULT.items() if get(key) != value}


def _register_source(spark: SparkSession) -> None:
    """Register ``format("iggy")``. The sessions of an application share it, and Spark rejects a second registration."""
    from pyspark.errors import AnalysisException

    try:
        spark.dataSource.register(IggyDataSource)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
