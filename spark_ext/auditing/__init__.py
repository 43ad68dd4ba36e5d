"""Audits of DataFrames: the facts of `msgid.audit`, computed without bringing a log or a generator to one task.

`spark_ext.auditing.summaries` reduces rows to words: 32 offsets or sequence numbers are one row with a mask.
The other modules compute facts from these rows, and `spark_ext.auditing.table_audit` collects the report.
"""
