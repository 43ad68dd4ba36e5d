"""Sizes at which the audit of a small table on Spark goes each way that a large one goes."""

from msgid.audit._files import names_in_sent
from msgid.audit._options import columns_in
from msgid.audit.definitions import MAX_MESSAGES
from spark_ext.auditing._values import Sizes
from spark_ext.auditing.comparison import report_of, side_of

SIZES = {"driver": Sizes(table=10**9), "summaries": Sizes(table=0), "spread": Sizes(table=0, driver=0, task=50)}
"""The rows on the driver, summaries on the driver, and Spark alone."""


def compared(sides, sizes, sent_columns=None, max_messages=MAX_MESSAGES, **columns):
    """Return the report of `spark_ext.compare` with some sizes."""
    sent, table = sides
    named = columns_in("compare", columns)
    queued = side_of("sent", sent, names_in_sent(sent.columns, named, sent_columns))
    return report_of(queued, side_of("table", table, named), max_messages, sizes)
