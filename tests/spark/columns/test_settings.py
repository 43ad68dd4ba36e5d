"""Values are the same under any settings of a session: names of types, casts, time, case, text and arithmetic."""

from functools import reduce

import pytest
from helpers.covering import first_by_default
from helpers.versions import since
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sql_functions import EXAMPLES

import spark_ext
from msgid import iggy
from msgid.danube import MessageID, StreamMessage
from spark_ext._settings import settings
from spark_ext.columns._identity import identity
from spark_ext.columns._moments import micros_column, moment_column, moment_in_utc
from spark_ext.streaming._fingerprint import fingerprint_of

pytestmark = [pytest.mark.spark, since(4, 0)]

V1 = "0156F7E71C361B21BC024CCDBE00000007"
BROKER = "7F0000010000238F000000000001E240"
CLIENT = "C0A8F001103E214D29547ACFD6E30000"
MESSAGE = iggy.Message.new(b"hello", id=7, offset=3, timestamp=1, headers={"n": 1}, layout="m45")
DANUBE = StreamMessage(7, MessageID(9, "/d/t", "b:1", 42), b"5", 1_648_047_038_123, "p", attributes={"a": "1"})
OTHER = {
    "ansi.doubleQuotedIdentifiers": "true",
    "ansi.enabled": "false",
    "ansi.enforceReservedKeywords": "true",
    "ansi.relationPrecedence": "true",
    "binaryOutputStyle": "HEX",
    "caseSensitive": "true",
    "chunkBase64String.enabled": "false",
    "collation.allowInMapKeys": "true",
    "columnNameOfCorruptRecord": "malformed",
    "datetime.java8API.enabled": "true",
    "decimalOperations.allowPrecisionLoss": "false",
    "function.concatBinaryAsString": "true",
    "function.eltOutputAsString": "true",
    "icu.caseMappings.enabled": "false",
    "json.enableExactStringParsing": "false",
    "jsonGenerator.ignoreNullFields": "false",
    "legacy.allowHashOnMapType": "true",
    "legacy.allowNegativeScaleOfDecimal": "true",
    "legacy.allowNullComparisonResultInArraySort": "true",
    "legacy.bangEqualsNot": "true",
    "legacy.castComplexTypesToString.enabled": "true",
    "legacy.charVarcharAsString": "true",
    "legacy.codingErrorAction": "true",
    "legacy.collationAwareHashFunctions": "true",
    "legacy.consecutiveStringLiterals.enabled": "true",
    "legacy.createEmptyCollectionUsingStringType": "true",
    "legacy.decimal.retainFractionDigitsOnTruncate": "true",
    "legacy.disableMapKeyNormalization": "true",
    "legacy.doLooseUpcast": "true",
    "legacy.duplicateBetweenInput": "true",
    "legacy.earlyEvalCurrentTime": "true",
    "legacy.exponentLiteralAsDecimal.enabled": "true",
    "legacy.followThreeValuedLogicInArrayExists": "false",
    "legacy.fromDayTimeString.enabled": "true",
    "legacy.interval.enabled": "true",
    "legacy.javaCharsets": "true",
    "legacy.json.allowEmptyString.enabled": "true",
    "legacy.literal.pickMinimumPrecision": "false",
    "legacy.lpadRpadAlwaysReturnString": "true",
    "legacy.negativeIndexInArrayInsert": "true",
    "legacy.noCharPaddingInPredicate": "true",
    "legacy.nullInEmptyListBehavior": "true",
    "legacy.raiseErrorWithoutErrorClass": "true",
    "legacy.sizeOfNull": "false",
    "legacy.timeParserPolicy": "LEGACY",
    "legacy.truncateForEmptyRegexSplit": "true",
    "legacy.typeCoercion.datetimeToString.enabled": "true",
    "mapKeyDedupPolicy": "LAST_WIN",
    "parser.escapedStringLiterals": "true",
    "parser.quotedRegexColumnNames": "true",
    "preserveCharVarcharTypeInfo": "true",
    "readSideCharPadding": "false",
    "session.timeZone": "America/St_Johns",
    "storeAssignmentPolicy": "LEGACY",
    "timeType.enabled": "true",
    "timestampType": "TIMESTAMP_NTZ",
    "variant.allowDuplicateKeys": "true",
    "variant.validateUnicodeInJsonParsing": "false",
}
"""Settings that change parsing, casts, times, case, text or arithmetic, each with another value than its default."""
ALONE = {"ansi.enabled"}
"""Reserved words are only reserved in ANSI mode."""
TOGETHER = {
    "all with ANSI": {name: value for name, value in OTHER.items() if name not in ALONE},
    "all without ANSI": OTHER,
    **{name: {name: value} for name, value in OTHER.items()},
}
ROW = {
    "text": "'Z\u00fcrich'",
    "empty": "''",
    "bytes": "X'00FF'",
    "exact": "CAST(-1E-18D AS DECIMAL(38, 18))",
    "large": "CAST(12345678901234567890.5 AS DECIMAL(30, 4))",
    "real": "1e23D",
    "small": "CAST(1.1E-23 AS FLOAT)",
    "yes": "TRUE",
    "day": "DATE'2024-03-10'",
    "at": "timestamp_micros(1700000000123456)",
    "local": "TIMESTAMP_NTZ'2024-03-10 02:30:00.5'",
    "list": "array(1.5D, NULL, -0.0D)",
    "map": "map('b', array(X'01'), 'a', NULL)",
    "nested": "named_struct('time', timestamp_micros(0), 'offset', NULL, 'n', 7Y)",
}
"""Values of many types, under the settings of the tests."""
LINES = [
    (V1, 1234, "2024-01-01T00:00:00-05:00"), (BROKER, 1234, "1704085200000"), (CLIENT, 1234, "2024-03-10 02:30:00"),
    ("n/a", 1234, "2024-03-10"),
]  # fmt: skip
HEADERS = "array<struct<key: string, value: binary>>"
RECORDS = {
    "iggy-message": ("value binary", [(iggy.encode(MESSAGE, "m45"),), (b"torn",)]),
    "iggy-json": ("value string", [(iggy.to_json(MESSAGE),), ("{",)]),
    "danube": ("value binary", [(DANUBE.encode(),), (b"?",)]),
    "kafka": (
        f"topic string, partition int, offset bigint, timestamp string, value binary, headers {HEADERS}",
        [
            ("t", 0, 5, "2024-01-01T00:00:00-05:00", b"1", None),
            ("t", 0, 6, "1704085200000", b"\0\0\0\0\1{}", [("message_id", V1.encode()), ("a", b""), ("a", None)]),
            ("t", -1, 7, "2024-03-10 02:30:00", None, []),
        ],
    ),
    "rocketmq": (
        "topic string, flag int, body string, properties string, brokerName string, queueId int, queueOffset bigint, "
        "bornTimestamp string, storeTimestamp string",
        [
            (
                "t",
                0,
                "hi",
                f'{{"UNIQ_KEY": "{CLIENT}", "KEYS": "k"}}',
                "a",
                2,
                7,
                "1704085200000",
                "2024-01-01T00:00:00Z",
            )
        ],
    ),
}
"""Messages of each format; times are text."""


def columns(df):
    """Return each public column, and the parts of the tables, for the rows of `LINES`."""
    only = {name: F.col("id") == id for name, id in (("v1", V1), ("v0", BROKER))}
    made = {
        name: getattr(spark_ext, name)("id")
        for name in (
            "id_kind",
            "id_origin",
            "id_time",
            "id_to_binary",
            "id_to_uuid",
            "is_valid_id",
            "time_key",
            "try_parse_id",
            "try_parse_v0",
            "try_translate_v0",
        )
    }
    return made | {
        "parse_id": F.when(only["v1"], spark_ext.parse_id("id")),
        "parse_v0": F.when(only["v0"], spark_ext.parse_v0("id")),
        "translate_v0": F.when(only["v0"], spark_ext.translate_v0("id")),
        "id_from_binary": spark_ext.id_from_binary(F.unhex("id")),
        "id_from_uuid": spark_ext.id_from_uuid(spark_ext.id_to_uuid("id")),
        "id_from_iggy_id": spark_ext.id_from_iggy_id(F.unhex("id")),
        "position_id": spark_ext.position_id(F.lit("kafka://orders/3"), "offset", "at"),
        "position_id of seconds": spark_ext.position_id("said", "offset", F.lit(1648047038.5)),
        "derive_id": spark_ext.derive_id(F.lit(V1), "id", at="at"),
        "derive_id of a number": spark_ext.derive_id(F.lit(V1), "offset"),
        "assign_id": spark_ext.assign_id("run", at=1795219200),
        "generate_id": F.length(spark_ext.generate_id()),
        "v0_time": spark_ext.v0_time("id", "at", F.lit("Asia/Shanghai")),
        "is_expired": spark_ext.is_expired("at", 10, F.timestamp_seconds(F.lit(1648047038) + F.col("offset") + 9)),
        "identity": identity("id"),
        "moment": moment_column(df, "said"),
        "moment of offsets": moment_column(df, "offset"),
        "moment in UTC": moment_in_utc(F.col("said"), df.schema["said"].dataType),
        "micros": micros_column(df, "said"),
    }


@pytest.fixture(scope="module")
def frames(spark):
    """Rows without expressions: IDs and times, values of many types, and the messages of each format."""
    ids = spark.createDataFrame(LINES, "id string, offset bigint, said string")
    ids = ids.withColumn("at", F.timestamp_seconds(F.lit(1648047038) + F.col("offset")))
    row = spark.range(1).select(*(F.expr(text).alias(name) for name, text in ROW.items()))
    records = {name: spark.createDataFrame(rows, schema) for name, (schema, rows) in RECORDS.items()}
    return [spark.createDataFrame(df.collect(), df.schema) for df in (ids, row)], records


def values(spark, frames):
    """Return the values of columns, of SQL functions, of a fingerprint, of the tables of messages, and of a digest."""
    spark_ext.register(spark)
    (df, row), records = frames
    sql = {name: F.expr(call) for name, (call, _) in EXAMPLES.items()}
    sql["fingerprint"] = fingerprint_of([(F.col(field.name), field) for field in row.schema])
    tables = [spark_ext.messages(df, name) for name, df in records.items()]
    return (
        df.select(*(column.alias(name) for name, column in columns(df).items())).collect(),
        row.select(*(column.alias(name) for name, column in sql.items())).collect(),
        sorted(map(str, reduce(DataFrame.unionByName, tables).collect())),
        spark_ext.digest(df, offset="offset", timestamp="at").collect(),
    )


@pytest.fixture(scope="module")
def usual(spark, frames):
    """The values under the settings of the tests."""
    found = values(spark, frames)
    assert [row["v0_time"] is None for row in found[0]] == [True, True, False, True]
    return found


def test_every_public_column_is_among_the_values(frames):
    """A new column function gets its place here."""
    public = {name for name, home in spark_ext._HOMES.items() if home.startswith("spark_ext.columns.")}
    assert public - columns(frames[0][0]).keys() == {"assign_ids"}  # which calls assign_id


# Each run plans a hundred expressions, which takes longer than any other test. `ansi` has the other mode everywhere.
@pytest.mark.parametrize("changed", first_by_default(TOGETHER, 1))
def test_values_are_the_same_under_other_settings(spark, frames, usual, changed):
    """The session reads no name of a type or of a field, and no cast, text or sum depends on it."""
    with settings(spark, {f"spark.sql.{name}": value for name, value in TOGETHER[changed].items()}):
        found = values(spark, frames)
    assert found == usual
