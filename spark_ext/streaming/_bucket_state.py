"""The state of a bucket in Spark's state store: pages, their directory, and the settings of the checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from spark_ext.streaming._plain import dump, load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_ext._shipping import State

FORMAT: Final = 4
"""The version of the stored format. Version 0.2 of the library wrote format 3 and earlier ones."""
OTHER_FORMAT: Final = "cannot read the checkpoint: its state has format "
"""The start of the error about another format."""

_VALUES: Final = (
    ("meta", "getValueState", ("value binary",)),
    ("pages", "getMapState", ("number int", "value binary")),
)
_PARTS: Final = ("parts", "getMapState", ("name string, number int", "value binary"))


def states(*, has_parts: bool = False) -> list[State]:
    """Return the values that a `BucketState` has in Spark's state store."""
    return [*_VALUES, *([_PARTS] if has_parts else [])]


class BucketState:
    """The values of a bucket; implements `spark_ext.streaming._pages.Values`.

    Args:
        handle: Spark's handle of the operator's state.
        buckets: The number of buckets of the query, which the checkpoint keeps.
        has_parts: Whether there are values besides the pages.
    """

    def __init__(self, handle: Any, buckets: int, *, has_parts: bool = False) -> None:
        self._buckets = buckets
        declared: dict[str, Any] = {
            name: getattr(handle, method)(name, *types) for name, method, types in states(has_parts=has_parts)
        }
        self._meta, self._pages = declared["meta"], declared["pages"]
        self._parts: Any = declared.get("parts")

    def get(self, name: str, number: int) -> bytes | None:
        found = self._parts.getValue((name, number)) if name else self._pages.getValue((number,))
        return None if found is None else bytes(found[0])

    def put(self, name: str, number: int, value: bytes) -> None:
        if name:
            self._parts.updateValue((name, number), (value,))
        else:
            self._pages.updateValue((number,), (value,))

    def remove(self, name: str, number: int) -> None:
        if name:
            self._parts.removeKey((name, number))
        else:
            self._pages.removeKey((number,))

    def pages(self) -> Iterator[tuple[int, bytes]]:
        for (number,), (value,) in self._pages.iterator():
            yield number, bytes(value)

    def directory(self) -> bytes | None:
        """Return the directory of the pages, None for a new bucket.

        Raises:
            ValueError: If another version wrote the state, or a query with another number of buckets.
        """
        if not self._meta.exists():
            return None
        version, buckets, *rest = load(bytes(self._meta.get()[0]))
        if version != FORMAT:
            raise ValueError(f"{OTHER_FORMAT}{version}, this version reads {FORMAT}; start with a new checkpoint")
        if buckets != self._buckets:
            raise ValueError(
                f"`buckets` must be {buckets}, the number in the checkpoint of the query, got {self._buckets}; "
                "another number needs a new checkpoint"
            )
        directory: bytes = rest[0]
        return directory

    def set_directory(self, directory: bytes) -> None:
        """Write the directory of the pages."""
        self._meta.update((dump((FORMAT, self._buckets, directory)),))
