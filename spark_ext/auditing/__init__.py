"""Audits of DataFrames: the rules of `msgid.audit` on digests that Spark makes.

`_reductions` reduces rows to words: 32 offsets or sequence numbers are one row with a mask. It counts IDs, reduces
words to blocks, and passes both to the rules.
"""

from msgid._validate import check_installed

check_installed("an audit on Spark", "spark", "numpy", "pyarrow")
