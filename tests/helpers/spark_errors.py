"""The error of a query that fails: its class differs between the versions of Spark."""

from contextlib import contextmanager

import pytest

USER_ERROR = "USER_RAISED_EXCEPTION"


def query_errors():
    """Return the classes of the error of a query that fails while it runs.

    Before Spark 4.0, PySpark does not convert the error of a failed job.
    """
    from pyspark.errors import PySparkException

    from spark_ext import _compat

    if _compat.version() >= _compat.WHOLE:
        return (PySparkException,)
    from py4j.protocol import Py4JJavaError

    return (PySparkException, Py4JJavaError)


@contextmanager
def query_fails(match=None, *, by_user=False):
    """Check that the query in the context fails; ``by_user``: with an error that the query itself raises.

    Spark gives such an error a condition of its own since version 4.0.
    """
    from spark_ext import _compat

    with pytest.raises(query_errors(), match=match) as caught:
        yield caught
    if by_user and _compat.version() >= _compat.WHOLE:
        assert caught.value.getCondition() == USER_ERROR
