"""Audits of DataFrames: the rules of `msgid.audit` on digests that Spark makes.

`spark_ext.auditing.summaries` reduces rows to words: 32 offsets or sequence numbers are one row with a mask. The
modules `_generators` and `_log_blocks` reduce words to blocks, and pass both to the rules. `_id_facts` counts IDs.
"""

from msgid._validate import check_installed

check_installed("an audit on Spark", "spark", "numpy", "pyarrow")
