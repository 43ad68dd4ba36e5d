"""Carriers of IDs on Spark: the types of a column, and what a function or a table makes of each of them."""

from __future__ import annotations

from contextlib import contextmanager

from helpers.carriers import DIGITS, NO_ID, REFUSED, SAME, UUID, V0, V1, is_refusal
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

import spark_ext

SECTION_OF_TABLES = "Tables on Spark"

IDS = (V1, V0, UUID, V1.lower(), f"00{V0}", "order 7")
RAW = (V1, V0, V1)
NUMBERS = (DIGITS, DIGITS[:-1] + "8")

TYPES = {
    "string": (IDS, "id"),
    "varchar(60)": (IDS, "varchar"),
    "char(60)": (IDS, "char"),
    "string COLLATE UTF8_LCASE": (IDS, "id COLLATE UTF8_LCASE"),
    "string COLLATE UTF8_BINARY_RTRIM": (IDS, "concat(id, repeat(' ', n + 1)) COLLATE UTF8_BINARY_RTRIM"),
    "binary": (RAW, "unhex(id)"),
    "binary of the text": (IDS[:4], "CAST(id AS binary)"),
    "decimal(38,0)": (NUMBERS, "CAST(id AS decimal(38,0))"),
    "double": (NUMBERS, "CAST(id AS double)"),
    "bigint": (NUMBERS, "CAST(n AS bigint)"),
    "variant": (IDS, "CAST(id AS variant)"),
    "array<string>": (IDS, "array(id)"),
    "map<string,string>": (IDS, "map('id', id)"),
    "struct<id: string>": (IDS, "named_struct('id', id)"),
    "timestamp": (IDS, "timestamp_seconds(n)"),
    "boolean": (IDS, "n > 1"),
}
"""A carrier is one line: the IDs, and the column in SQL."""


@contextmanager
def carried(spark, folder):
    """Yield a function that returns the rows of a carrier, or of the same IDs as text.

    Args:
        spark: The session.
        folder: A missing folder for a table, because Spark knows CHAR and VARCHAR in tables alone.
    """
    columns = "n int, id string, char char(60), varchar varchar(60)"
    spark.sql(f"CREATE TABLE msgid_chars ({columns}) USING parquet LOCATION '{folder}'")
    values = ", ".join(f"({n}, '{id}', '{id}', '{id}')" for n, id in enumerate(IDS))
    spark.sql(f"INSERT INTO msgid_chars VALUES {values}")

    def made(name, as_text=False):
        ids, expression = TYPES[name]
        if "char(" in name and not as_text:
            return spark.table("msgid_chars").select("n", F.col(expression).alias("id"))
        texts = spark.createDataFrame([*enumerate(ids)], "n int, id string")
        return texts if as_text else texts.selectExpr("n", f"{expression} AS id")

    try:
        yield made
    finally:
        spark.sql("DROP TABLE msgid_chars")


def cell(entry, name, rows_of, known, expect=None):
    """Return the cell of a pair, from the function itself.

    Args:
        entry: The entry point.
        name: The carrier.
        rows_of: The function that `carried` yields.
        known: The results for text, which several carriers have.
        expect: The function that gives the result for text. Default: the entry point itself.
    """
    expect = expect or entry
    try:
        found = entry(rows_of(name))
    except (TypeError, ValueError, RuntimeError, AnalysisException) as error:
        return REFUSED if is_refusal(error, "id") else f"{name} has an error without a cure: {error}"
    ids = TYPES[name][0]
    if (expect, ids) not in known:
        known[expect, ids] = expect(rows_of(name, as_text=True))
    if found == NO_ID or (found and isinstance(found[0], tuple) and all(row[0] == "false" for row in found)):
        return NO_ID
    return SAME if found == known[expect, ids] else f"{name} has other IDs: {found} and not {known[expect, ids]}"


def audited(df):
    """Return the findings of an audit."""
    report = spark_ext.audit(df, id="id")
    return sorted((row.check, row["count"], str(row.example)) for row in report.findings.collect())


def compared(df, ids):
    """Return the findings of a comparison with IDs."""
    sent = df.sparkSession.createDataFrame([(one,) for one in ids], "id string")
    return sorted((row.check, row["count"]) for row in spark_ext.compare(sent, df, id="id").findings.collect())


def stored(format, place):
    """Return an entry point: the rows are written to a table and read again, and then audited and compared.

    Args:
        format: The name of the table format.
        place: Returns the arguments of a new table.
    """

    def entry(df):
        where = place()
        assert spark_ext.write_once(df, 0, **where, format=format, app_id="carriers")
        return in_memory(spark_ext.read_table(df.sparkSession, **where, format=format))

    return entry


def in_memory(df):
    """Return what the audit of rows says, and their comparison with two of the IDs."""
    return [audited(df), compared(df, (V1, UUID))]
