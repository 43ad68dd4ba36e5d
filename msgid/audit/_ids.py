"""The IDs of a table as NumPy arrays: identities, kinds, duplicates and the checks of single IDs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid import layout
from msgid.audit._digests import starts_of
from msgid.audit.definitions import LONGEST_MONTH_MS, MALFORMED, TABLE, UUID
from msgid.audit.facts import Counted
from msgid.errors import InvalidMessageId
from msgid.ids._bytes import NOT_HEX, UNKNOWN_VERSION, id_bytes, identity, is_uuid, kind_of, strip_version
from msgid.ids.bulk import parse_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from msgid.ids.bulk import IdColumns

_NULL: Final = "null"
_EMPTY, _LENGTH, _HEX, _VERSION = MALFORMED


class Other(NamedTuple):
    """A value that is not a version-1 ID: its identity, its kind or reason, and the time of a version-0 ID."""

    identity: str | None
    kind: str
    reason: str | None
    elapsed_ms: int | None


class Ids:
    """The IDs of the rows of a table.

    Attributes:
        v1: The fields of version-1 IDs.
        is_v1: Which rows have one.
        other: For the other rows, the place of their value in ``others``; -1 in rows of version 1.
        others: The other values, each once.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        import numpy as np
        import pyarrow as pa

        from msgid.audit._columns import _factorized, _is_text

        kind = column.type
        binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
        if not (_is_text(kind) or binary or pa.types.is_binary_view(kind) or pa.types.is_null(kind)):
            column = column.cast(pa.string())
        self.v1: IdColumns = parse_batch(column)
        self.is_v1 = self.v1.valid & (self.v1.version == layout.VERSION_1)
        self.other = np.full(len(column), -1, np.int64)
        rest = np.flatnonzero(~self.is_v1)
        codes, values = _factorized(column.take(pa.array(rest)))
        seen = [_other(value) for value in values]
        # Two values may be one ID: lower-case digits, or a version byte in front.
        places: dict[tuple[str | None, str | None], int] = {}
        self.others: list[Other] = []
        same = np.zeros(len(seen) + 1, np.int64)
        for place, found in enumerate([*seen, Other(None, _NULL, None, None)]):
            key = (found.identity, found.kind if found.identity is None else None)
            if key not in places:
                places[key] = len(self.others)
                self.others.append(found)
            same[place] = places[key]
        self.other[rest] = same[codes]

    def __len__(self) -> int:
        return len(self.other)

    @property
    def keys(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.bool_]]:
        """Two numbers that are equal if and only if the identity is, and which rows have an identity."""
        import numpy as np

        v1 = self.v1
        known = np.array([found.identity is not None for found in self.others], bool)
        has = self.is_v1.copy()
        has[~self.is_v1] = known[self.other[~self.is_v1]]
        a = np.where(self.is_v1, v1.node << np.uint64(16) | v1.pid, np.uint64(1) << np.uint64(63))
        counted = v1.seconds.astype(np.uint64) << np.uint64(32) | v1.sequence
        return a, np.where(self.is_v1, counted, self.other.astype(np.uint64)), has

    @property
    def unix(self) -> NDArray[np.int64]:
        """The Unix seconds of version-1 IDs."""
        import numpy as np

        return self.v1.seconds.astype(np.int64) + layout.EPOCH_UNIX

    def origins(self) -> NDArray[Any]:
        """Return the origin of each version-1 ID, and an empty text in other rows."""
        import numpy as np

        by_byte = np.array([layout.origin_of(byte << 40) for byte in range(256)])
        return np.where(self.is_v1, by_byte[(self.v1.node >> np.uint64(40)).astype(np.int64)], "")

    def has_kind(self, kind: str) -> NDArray[np.bool_]:
        """Return which rows have a value of a kind that is not version 1."""
        import numpy as np

        of = np.array([found.kind == kind for found in self.others], bool)
        chosen: NDArray[np.bool_] = ~self.is_v1 & of[self.other]
        return chosen

    def text(self, row: int) -> str | None:
        """Return the identity of a row."""
        if not self.is_v1[row]:
            return self.others[int(self.other[row])].identity
        v1 = self.v1
        fields = (int(part[row]) for part in (v1.node, v1.pid, v1.seconds, v1.sequence))
        return layout.pack(*fields).hex().upper()

    def first_text(self, rows: NDArray[np.int64]) -> str | None:
        """Return the identity of some rows that sorts first."""
        import numpy as np

        if not len(rows):
            return None
        a, b, _ = self.keys
        old = rows[~self.is_v1[rows]]
        new = rows[self.is_v1[rows]]
        texts = [self.others[place].identity or "" for place in np.unique(self.other[old])]
        if len(new):
            least = np.lexsort((b[new], a[new]))[0]
            texts.append(self.text(int(new[least])) or "")
        return min(texts)


def read_ids(column: pa.ChunkedArray) -> Ids:
    """Return the IDs of a column of text, binary or any other type, which is compared as its text."""
    return Ids(column)


def _other(value: str | bytes) -> Other:
    """Return the identity and kind of a value that is not a version-1 ID."""
    if len(value) == 0:
        return Other(None, _EMPTY, _EMPTY, None)
    try:
        raw = id_bytes(value)
    except ValueError:
        if is_uuid(value):
            return Other(identity(value), UUID, None, None)
        return Other(identity(value), "malformed", _reason(value), None)
    kind = kind_of(raw)
    elapsed = None
    if kind == layout.KIND_CLIENT_UNIQUE:
        elapsed = layout.CLIENT_UNIQUE.unpack((strip_version(raw) or raw)[-layout.TAIL_LENGTH :])[2]
    return Other(identity(value), kind, None, elapsed)


def _reason(value: str | bytes) -> str:
    try:
        id_bytes(value)
    except InvalidMessageId as error:
        if error.reason == NOT_HEX:
            return _HEX
        return _VERSION if error.reason.startswith(UNKNOWN_VERSION.partition("{")[0]) else _LENGTH
    raise AssertionError(value)


class Repeats(NamedTuple):
    """The rows of one key: its first row, and how many rows repeat it with the same and with other content."""

    row: NDArray[np.int64]
    duplicates: NDArray[np.int64]
    conflicts: NDArray[np.int64]


def repeats(keys: tuple[NDArray[Any], ...], content: NDArray[np.int64] | None) -> Repeats:
    """Count for each key the rows beyond its first: those that repeat a content, and the other contents."""
    import numpy as np

    told = np.zeros(len(keys[0]), np.int64) if content is None else content
    order = np.lexsort((told, *reversed(keys)))
    held = [key[order] for key in keys]
    new_key = starts_of(*held)
    new_content = starts_of(*held, told[order])
    places = np.flatnonzero(new_key)
    if not len(places):
        empty = np.zeros(0, np.int64)
        return Repeats(empty, empty, empty)
    rows = np.diff(np.append(places, len(order)))
    contents = np.add.reduceat(new_content.astype(np.int64), places)
    return Repeats(order[places], rows - contents, contents - 1)


def id_counts(
    ids: Ids,
    content: NDArray[np.int64] | None,
    near: tuple[NDArray[np.int64], NDArray[np.bool_]] | None,
    landed: tuple[NDArray[np.int64], NDArray[np.bool_]] | None,
    parents: Ids | None,
    not_before: int | None,
) -> Iterator[Counted]:
    """Yield the findings about IDs of the whole table."""
    import numpy as np

    a, b, has = ids.keys
    rows = np.flatnonzero(has)
    found = repeats((a[rows], b[rows]), None if content is None else content[rows])
    yield _counted(ids, "duplicate_ids", int(found.duplicates.sum()), rows[found.row[found.duplicates > 0]])
    yield _counted(ids, "conflicting_ids", int(found.conflicts.sum()), rows[found.row[found.conflicts > 0]])
    yield Counted("missing_ids", TABLE, int(ids.has_kind(_NULL).sum()))
    malformed = np.flatnonzero(ids.has_kind("malformed"))
    yield _counted(ids, "malformed_ids", len(malformed) + int(ids.has_kind(_EMPTY).sum()), malformed)
    ambiguous = np.flatnonzero(ids.has_kind(layout.KIND_AMBIGUOUS))
    yield _counted(ids, "ambiguous_ids", len(ambiguous), ambiguous)
    wrapped = _wrapped(ids, near)
    yield _counted(ids, "v0_month_wrap", len(wrapped), wrapped)
    future = np.zeros(len(ids), bool)
    if landed is not None:
        future |= landed[1] & (ids.unix * 1_000_000 > landed[0])
    if not_before is not None:
        future |= ids.unix < not_before
    rows = np.flatnonzero(future & ids.is_v1)
    yield _counted(ids, "future_ids", len(rows), rows)
    if parents is not None:
        orphans = _orphans(ids, parents)
        yield _counted(ids, "orphan_ids", len(orphans), orphans)


def _counted(ids: Ids, check: str, count: int, rows: NDArray[np.int64]) -> Counted:
    return Counted(check, TABLE, count, text=ids.first_text(rows))


def _wrapped(ids: Ids, near: tuple[NDArray[np.int64], NDArray[np.bool_]] | None) -> NDArray[np.int64]:
    """Return the rows whose version-0 ID was made in the month before its row's time."""
    import numpy as np

    elapsed = np.array([-1 if one.elapsed_ms is None else one.elapsed_ms for one in ids.others], np.int64)
    rows = np.flatnonzero(~ids.is_v1)
    rows = rows[elapsed[ids.other[rows]] >= 0]
    limit = np.full(len(rows), LONGEST_MONTH_MS * 1_000, np.int64)
    if near is not None and len(rows):
        # One ID has one time: that of the row that landed first.
        highest = np.iinfo(np.int64).max
        earliest = np.full(len(ids.others), highest)
        np.minimum.at(earliest, ids.other[rows], np.where(near[1], near[0], highest)[rows])
        moments = earliest[ids.other[rows]]
        known = moments < highest
        moments = np.where(known, moments, 0)
        month = moments.astype("datetime64[us]").astype("datetime64[M]").astype("datetime64[us]").astype(np.int64)
        limit = np.where(known, moments - month, limit)
    return rows[elapsed[ids.other[rows]] * 1_000 >= limit]


def _orphans(ids: Ids, parents: Ids) -> NDArray[np.int64]:
    """Return the rows with a derived ID whose parent is not the ID of any row."""
    import numpy as np

    rows = np.flatnonzero((ids.origins() == "derived") & parents.keys[2])
    held = {one.identity for one in ids.others}
    other = np.array([one.identity in held for one in parents.others], bool)
    a, b, _has = ids.keys
    pair = [("a", np.uint64), ("b", np.uint64)]
    known = np.rec.fromarrays([a[ids.is_v1], b[ids.is_v1]], dtype=pair)
    pa_, pb, _ = parents.keys
    asked = np.rec.fromarrays([pa_[rows], pb[rows]], dtype=pair)
    is_v1 = parents.is_v1[rows]
    present = np.where(is_v1, np.isin(asked, known), other[np.where(is_v1, 0, parents.other[rows])])
    return rows[~present]


def kinds_of(ids: Ids) -> list[tuple[str, str | None, int]]:
    """Return the rows by kind and origin, and of malformed values by reason."""
    import numpy as np

    counts: Counter[tuple[str, str | None]] = Counter()
    origins, rows = np.unique(ids.origins()[ids.is_v1], return_counts=True)
    counts.update({(layout.KIND_V1, str(origin)): int(n) for origin, n in zip(origins, rows, strict=True)})
    places, rows = np.unique(ids.other[~ids.is_v1], return_counts=True)
    for place, n in zip(places, rows, strict=True):
        one = ids.others[place]
        counts["malformed" if one.reason else one.kind, one.reason] += int(n)
    return sorted(((*key, n) for key, n in counts.items()), key=lambda kind: (-kind[2], kind[0], kind[1] or ""))
