"""The errors of the library as values."""

import copy
import pickle

import msgid


def test_error_pickled_or_copied_keeps_reason_and_offset():
    """Errors are equal after pickling, with reason and offset."""
    error = msgid.TruncatedMessage("half", 7)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(other), str(other), other.offset) == (type(error), str(error), 7)
