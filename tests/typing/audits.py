"""User code on audits, which mypy checks: each annotation is the type that the user must get."""

from __future__ import annotations

from datetime import datetime, timezone

from pyspark.sql import DataFrame, SparkSession

import msgid.audit
import spark_ext
from msgid.audit.definitions import Severity
from msgid.audit.facts import Finding
from spark_ext.auditing.spark_report import AuditReport

report: msgid.audit.Report = msgid.audit.audit_ids(["0156F7E71C361B21BC024CCDBE00000000"], clock_jump="1 minute")
of_file: msgid.audit.Report = msgid.audit.audit_file("messages.parquet", source=("topic", "partition"), offset="offset")
findings: list[Finding] = report.findings
lost: int = report.gaps[0].count
severity: Severity = findings[0].severity
failure: str | None = report.failure("warning")
page: str = report.to_html()

spark: SparkSession = SparkSession.builder.getOrCreate()
df: DataFrame = spark.range(3)
audited: AuditReport = spark_ext.audit(df, id=None, offset="id", not_before=datetime.now(timezone.utc))
gaps: DataFrame = audited.gaps
local: msgid.audit.Report = audited.local

# Each misspelt argument is an error.
msgid.audit.audit_table(None, sorce="topic")  # type: ignore[call-arg]
msgid.audit.audit_file("messages.parquet", sorce="topic")  # type: ignore[call-arg]
msgid.audit.audit_ids([], max_gap=3)  # type: ignore[call-arg]
spark_ext.audit(df, sorce="topic")  # type: ignore[call-arg]
