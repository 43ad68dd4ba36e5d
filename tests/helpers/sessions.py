"""Sessions with settings that must not change a value, and queries that need no Python worker."""

from spark_ext import _compat

OTHER = {
    "ansi.doubleQuotedIdentifiers": "true",
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


def other_settings():
    """Return these settings; Spark 3.5 lacks most of them."""
    return {f"spark.sql.{name}": value for name, value in OTHER.items()} if _compat.version() >= (4, 0) else {}


def collected(df, connect):
    """Return the rows of a query, and check that no Python worker computes them."""
    rows = df.collect()
    assert connect or "Python" not in df._jdf.queryExecution().executedPlan().toString()
    return rows
