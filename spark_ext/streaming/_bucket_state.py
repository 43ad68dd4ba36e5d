"""The state of a bucket in Spark's state store: logs, their heads, and the settings of the checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from spark_ext.streaming._plain import dump, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_ext._shipping import State

FORMAT: Final = 5
"""The version of the stored format."""
_META: Final = "meta"


def states(*logs: str) -> list[State]:
    """Return the values that a `BucketState` with some logs has in Spark's state store."""
    value = ("value binary",)
    found: list[State] = [(_META, "getValueState", value)]
    for log in logs:
        found += [(f"{log}_recent", "getListState", value), (f"{log}_values", "getMapState", ("number int", *value))]
    return found


class _LogValues:
    """The values of a log; implements `spark_ext.streaming._log.Values`."""

    def __init__(self, recent: Any, numbered: Any) -> None:
        self._recent = recent
        self._numbered = numbered

    def get(self, number: int) -> bytes | None:
        found = self._numbered.getValue((number,))
        return None if found is None else bytes(found[0])

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
        buckets: The number of buckets of the query, which the checkpoint keeps.
        logs: The names of the logs.
    """

    def __init__(self, handle: Any, buckets: int, *logs: str) -> None:
        self._buckets = buckets
        self._meta, *values = (getattr(handle, method)(name, *types) for name, method, types in states(*logs))
        self.logs = [_LogValues(*values[place : place + 2]) for place in range(0, len(values), 2)]
        """The values of each log."""

    def heads(self) -> list[bytes] | None:
        """Return the heads of the logs, None for a new bucket.

        Raises:
            ValueError: If another version wrote the state, or a query with another number of buckets.
        """
        found = self._meta.get()
        if found is None:
            return None
        heads: list[bytes]
        version, buckets, *heads = load(bytes(found[0]))
        if version != FORMAT:
            raise ValueError(
                f"cannot read the checkpoint: its state has format {version}, this version reads {FORMAT}; "
                "start with a new checkpoint"
            )
        if buckets != self._buckets:
            raise ValueError(
                f"`buckets` must be {buckets}, the number in the checkpoint of the query, got {self._buckets}; "
                "another number needs a new checkpoint"
            )
        return heads

    def set_heads(self, heads: Sequence[bytes]) -> None:
        """Write the heads of the logs; none for a bucket without entries."""
        self._meta.update((dump((FORMAT, self._buckets, *heads)),))
