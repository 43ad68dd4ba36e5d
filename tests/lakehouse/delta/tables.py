"""Tables of Delta with the features of its JAR, and the rows that the tests write to them."""

import json
import tempfile
from pathlib import Path
from uuid import uuid4

from pyspark.sql.utils import is_remote

import spark_ext as ids

FIELDS = [
    {"name": "id", "type": "long", "nullable": False, "metadata": {}},
    {"name": "at", "type": "timestamp", "nullable": True, "metadata": {}},
    {"name": "k", "type": "integer", "nullable": True, "metadata": {}},
    {
        "name": "day",
        "type": "date",
        "nullable": True,
        "metadata": {"delta.generationExpression": "CAST(at AS DATE)"},
    },
    {
        "name": "n",
        "type": "long",
        "nullable": True,
        "metadata": {
            "delta.identity.start": 1,
            "delta.identity.step": 1,
            "delta.identity.allowExplicitInsert": False,
        },
    },
    {"name": "source", "type": "string", "nullable": True, "metadata": {"CURRENT_DEFAULT": "'shop'"}},
]
"""NOT NULL, a generated column, an identity column and a default."""
WRITER_FEATURES = [
    "appendOnly", "invariants", "checkConstraints", "generatedColumns", "identityColumns", "allowColumnDefaults",
]  # fmt: skip
PROPERTIES = {
    "deletion vectors": "'delta.enableDeletionVectors' = 'true'",
    "change data feed": "'delta.enableChangeDataFeed' = 'true'",
    "row tracking": "'delta.enableRowTracking' = 'true'",
    "in-commit timestamps": "'delta.enableInCommitTimestamps' = 'true'",
    "v2 checkpoints": "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2'",
    "mapped names": "'delta.columnMapping.mode' = 'name'",
    "mapped ids": "'delta.columnMapping.mode' = 'id'",
    "type widening": "'delta.enableTypeWidening' = 'true'",
}
"""The features that a property of a table turns on."""


def new_name():
    """Return the name of a table that is missing."""
    return f"t_{uuid4().hex[:8]}"


def plain_table(spark, columns, more=""):
    """Create a table by a statement, and return its name."""
    name = new_name()
    spark.sql(f"CREATE TABLE {name} ({columns}) USING delta {more}")
    return name


def table_of_many_features(spark, features=tuple(PROPERTIES)):
    """Create a table with `FIELDS` and features, and return its name.

    Spark's statements cannot create generated and identity columns, so the first commit is written here.
    """
    folder, name = Path(tempfile.mkdtemp()), new_name()
    metadata = {
        "id": str(uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": FIELDS}),
        "partitionColumns": [],
        "configuration": {"delta.constraints.positive": "k > 0"},
        "createdTime": 1_700_000_000_000,
    }
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": WRITER_FEATURES}
    (folder / "_delta_log").mkdir()
    lines = [json.dumps({"protocol": protocol}), json.dumps({"metaData": metadata})]
    (folder / "_delta_log" / f"{0:020d}.json").write_text("\n".join(lines) + "\n")
    spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{folder}'")
    wanted = [PROPERTIES[feature] for feature in features if feature != "mapped ids"]
    if wanted:
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({', '.join(wanted)})")
    spark.sql(f"ALTER TABLE {name} CLUSTER BY (id)")
    return name


def location(spark, name):
    """Return the folder of a table."""
    return spark.sql(f"DESCRIBE DETAIL {name}").first()["location"].removeprefix("file:")


def orders(spark, number):
    """Return the three rows of a batch; the table computes the columns that they lack."""
    return spark.range(3 * number, 3 * number + 3).selectExpr("id", "TIMESTAMP'2026-01-02 03:04:05' AS at", "1 AS k")


def write(df, number, **options):
    """Write a batch to a Delta table."""
    return ids.write_once(df, number, format="delta", app_id="a", **options)


def numbers(df):
    """Return the sorted values of the column `id`."""
    return sorted(row.id for row in df.select("id").collect())


def without_catalog(spark):
    """Return a session of the same Spark without Delta's catalog."""
    session = spark.cloneSession() if is_remote() else spark.newSession()
    session.conf.unset("spark.sql.catalog.spark_catalog")
    return session
