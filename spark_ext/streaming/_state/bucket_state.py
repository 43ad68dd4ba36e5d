"""The state of a bucket in Spark's state store: logs, and the settings of the checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from spark_ext._shipping import State

CHECK_BUCKET: Final = 0
"""The key under which an operator stores the number of buckets."""
_BUCKETS: Final = -2
"""The number of the value that holds the number of buckets.

It is not a state of its own: Spark analyzes and compiles an encoder of each state in each task of a micro-batch.
"""


def states(*logs: str) -> list[State]:
    """Return the values that a `BucketState` with some logs has in Spark's state store."""
    value = "value binary"
    listed: list[State] = []
    for log in logs:
        listed += [(f"{log}_recent", "getListState", (value,)), (f"{log}_values", "getMapState", ("number int", value))]
    return listed


class _LogValues:
    """The values of a log; implements `spark_ext.streaming._state.bucket_log.Values`."""

    def __init__(self, recent: Any, numbered: Any) -> None:
        self._recent = recent
        self._numbered = numbered

    def get(self, number: int) -> bytes | None:
        row = self._numbered.getValue((number,))
        return None if row is None else bytes(row[0])

    def put(self, number: int, value: bytes | None) -> None:
        if value is None:
            self._numbered.removeKey((number,))
        else:
            self._numbered.updateValue((number,), (value,))

    def recent(self) -> list[bytes]:
        return [bytes(value) for (value,) in self._recent.get()]

    def append(self, value: bytes | None) -> None:
        if value is None:
            self._recent.clear()
        else:
            self._recent.appendValue((value,))


class BucketState:
    """The values of a bucket.

    Args:
        handle: Spark's handle of the operator's state.
        logs: The names of the logs.
    """

    def __init__(self, handle: Any, *logs: str) -> None:
        values = [getattr(handle, method)(name, *types) for name, method, types in states(*logs)]
        self.logs = [_LogValues(*values[index : index + 2]) for index in range(0, len(values), 2)]
        """The values of each log."""

    def check(self, buckets: int) -> None:
        """Store the number of buckets of the query in the first log of `CHECK_BUCKET`.

        Raises:
            ValueError: If the state has another number.
        """
        stored = self.logs[0].get(_BUCKETS)
        if stored is None:
            self.logs[0].put(_BUCKETS, b"%d" % buckets)
        elif int(stored) != buckets:
            raise ValueError(
                f"`buckets` must be {int(stored)}, the number in the checkpoint of the query, got {buckets}; "
                "another number needs a new checkpoint"
            )
