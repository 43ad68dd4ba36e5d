"""The IDs of a table as NumPy arrays: identities, kinds, duplicates and the checks of single IDs."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msgid import layout
from msgid.audit._columns import NEVER, factorized, is_text
from msgid.audit._spans import grouped
from msgid.audit.definitions import AHEAD_S, COUNTED, MALFORMED_KIND, MAY_BE_UUID, NULL_KIND, TABLE, is_generator
from msgid.audit.facts import Counted, Facts, KindRow, part_of
from msgid.errors import InvalidMessageId
from msgid.ids._bytes import NOT_HEX, UNKNOWN_VERSION, id_bytes, identity, is_uuid, kind_of, strip_version
from msgid.ids.bulk import parse_batch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from msgid.ids.bulk import IdColumns

_EMPTY, _LENGTH, _HEX, _VERSION = "empty", "wrong length", "not hex digits alone", "unknown version"
"""The reasons why a value is not an ID."""
_UUID: Final = "uuid"
"""The kind of an ID that is the text of a UUID."""
_LONGEST_MONTH_MS: Final = 31 * 86_400_000


class Other(NamedTuple):
    """A value that is not a version-1 ID: its identity, its kind and a reason, and the time of a version-0 ID."""

    identity: str | None
    kind: str
    reason: str | None
    elapsed_ms: int | None


class Values(NamedTuple):
    """Values that are not version-1 IDs, each identity once.

    ``rows`` counts the rows of each, ``duplicates`` and ``conflicts`` are those of `Groups`. ``near`` is the earliest
    time of its rows in microseconds, or `NEVER`.
    """

    others: list[Other]
    rows: NDArray[np.int64]
    duplicates: NDArray[np.int64]
    conflicts: NDArray[np.int64]
    near: NDArray[np.int64]


class Ids:
    """The IDs of the rows of a table.

    Attributes:
        v1: The fields of version-1 IDs.
        is_v1: Which rows have one.
        other: For the other rows, the place of their value in ``others``; -1 in rows of version 1.
        others: The other values, each spelling once, and None.
    """

    def __init__(self, column: pa.ChunkedArray, name: str = "id") -> None:
        kind = column.type
        binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
        if pa.types.is_nested(kind):
            raise ValueError(f"{name} must be a column of text or binary, got {kind}")
        if not (is_text(kind) or binary or pa.types.is_null(kind)):
            column = column.cast(pa.string())
        self.v1: IdColumns = parse_batch(column)
        if binary and not (self.v1.valid & (self.v1.version == layout.VERSION_1)).all():
            texts = [None if value is None else text_of(value) for value in column.to_pylist()]
            column = pa.chunked_array([pa.array(texts, pa.string())])
            self.v1 = parse_batch(column)
        self.is_v1 = self.v1.valid & (self.v1.version == layout.VERSION_1)
        self.other = np.full(len(column), -1, np.int64)
        rest = np.flatnonzero(~self.is_v1)
        codes, values = factorized(column.take(pa.array(rest)))
        self.others = [other_of(value) for value in (*values, None)]
        # Two values may be one ID: lower-case digits, or a version byte in front. Its place is that of the first.
        places: dict[tuple[str | None, str | None], int] = {}
        keys = ((one.identity, one.kind if one.identity is None else None) for one in self.others)
        self.other[rest] = np.array([places.setdefault(key, place) for place, key in enumerate(keys)])[codes]

    def __len__(self) -> int:
        return len(self.other)

    @property
    def keys(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.bool_]]:
        """Two numbers that are equal if and only if the identity is, and which rows have an identity."""
        v1 = self.v1
        has = self.is_v1 | np.array([found.identity is not None for found in self.others], bool)[self.other]
        a = np.where(self.is_v1, v1.node << np.uint64(16) | v1.pid, np.uint64(1) << np.uint64(63))
        counted = v1.seconds.astype(np.uint64) << np.uint64(32) | v1.sequence
        return a, np.where(self.is_v1, counted, self.other.astype(np.uint64)), has

    @property
    def unix(self) -> NDArray[np.int64]:
        """The Unix seconds of version-1 IDs."""
        return self.v1.seconds.astype(np.int64) + layout.EPOCH_UNIX

    @property
    def times(self) -> NDArray[np.int64]:
        """The times of version-1 IDs in microseconds since 1970; `NEVER` in other rows."""
        return np.where(self.is_v1, self.unix * 1_000_000, NEVER)

    def origins(self) -> NDArray[Any]:
        """Return the origin of each version-1 ID, and an empty text in other rows."""
        by_byte = np.array([layout.origin_of(byte << 40) for byte in range(256)])
        return np.where(self.is_v1, by_byte[(self.v1.node >> np.uint64(40)).astype(np.int64)], "")

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Which rows have an ID of a generator: it declares a counter, or `is_generator` says so."""
        origins = self.origins()
        counted: NDArray[np.bool_] = np.isin(origins, COUNTED)
        rows = np.flatnonzero(self.is_v1 & ~counted)
        if not len(rows):
            return counted
        keys, places = np.unique(self.keys[0][rows], return_inverse=True)
        places, sequence = places.reshape(-1), self.v1.sequence[rows].astype(np.int64)
        lowest, highest = np.full(len(keys), layout.UINT32_SPAN), np.full(len(keys), -1)
        np.minimum.at(lowest, places, sequence)
        np.maximum.at(highest, places, sequence)
        pid = self.v1.pid[rows].astype(np.int64)
        counted[rows] = is_generator(origins[rows] == "derived", pid, lowest[places], highest[places])
        return counted

    def identities(self) -> pa.Array:
        """Return the identity of each row as text; NULL for NULL and empty values."""
        a, b, _ = self.keys
        raw = np.empty((len(self), layout.ID_LENGTH), np.uint8)
        raw[:, 0] = layout.VERSION_1
        raw[:, 1:9], raw[:, 9:] = (key.astype(">u8").view(np.uint8).reshape(-1, 8) for key in (a, b))
        digits = pa.py_buffer(raw.tobytes().hex().upper().encode())
        text = pa.FixedSizeBinaryArray.from_buffers(pa.binary(layout.ID_DIGITS), len(self), [None, digits])
        others = pa.array([one.identity for one in self.others], pa.string()).cast(pa.binary())
        held = others.take(pa.array(np.maximum(self.other, 0)))
        return pc.if_else(pa.array(self.is_v1), text.cast(pa.binary()), held)

    def first_text(self, rows: NDArray[np.int64]) -> str | None:
        """Return the ID of some rows of version 1 that sorts first."""
        if not len(rows):
            return None
        a, b, _ = self.keys
        row = rows[np.lexsort((b[rows], a[rows]))[0]]
        return f"{layout.VERSION_1:02X}{a[row]:016X}{b[row]:016X}"


def text_of(value: bytes) -> str:
    """Return the bytes of an ID as text: printable ASCII as it is, as a header of Kafka holds IDs, or the identity."""
    text = value.decode("ascii", "replace")
    return text if text.isascii() and text.isprintable() else identity(value)


def other_of(value: str | None) -> Other:
    """Return the identity and kind of a value that is not a version-1 ID."""
    if value is None:
        return Other(None, NULL_KIND, None, None)
    if len(value) == 0:
        return Other(None, MALFORMED_KIND, _EMPTY, None)
    if is_uuid(value):
        return Other(identity(value), _UUID, None, None)
    try:
        raw = id_bytes(value)
    except InvalidMessageId as error:
        return Other(identity(value), MALFORMED_KIND, _reason(error), None)
    kind, bare = kind_of(raw), strip_version(raw) or raw
    elapsed = None
    if kind == layout.KIND_CLIENT_UNIQUE:
        elapsed = layout.CLIENT_UNIQUE.unpack(bare[-layout.TAIL_LENGTH :])[2]
    return Other(identity(value), kind, MAY_BE_UUID if layout.may_be_uuid(bare) else None, elapsed)


def _reason(error: InvalidMessageId) -> str:
    if error.reason == NOT_HEX:
        return _HEX
    return _VERSION if error.reason.startswith(UNKNOWN_VERSION.partition("{")[0]) else _LENGTH


def id_facts(
    ids: Ids,
    content: NDArray[np.int64],
    near: NDArray[np.int64],
    landed: NDArray[np.int64],
    parents: Ids | None,
    not_before: int | None,
) -> list[Facts]:
    """Return the kinds of the IDs of a table, and the findings about single IDs: of version 1, and of other values."""
    a, b, _ = ids.keys
    rows = np.flatnonzero(ids.is_v1)
    found = grouped(content[rows], a[rows], b[rows])
    first = rows[found.order[found.first]]
    future = (ids.unix - AHEAD_S) * 1_000_000 > landed
    if not_before is not None:
        future |= ids.unix < not_before
    faults = [
        ("duplicate_ids", int(found.duplicates.sum()), first[found.duplicates > 0]),
        ("conflicting_ids", int(found.conflicts.sum()), first[found.conflicts > 0]),
    ]
    lists = [("future_ids", np.flatnonzero(future & ids.is_v1))]
    if parents is not None:
        lists.append(("orphan_ids", _orphans(ids, parents)))
    faults += [(check, len(wrong), wrong) for check, wrong in lists]
    origins, counts = np.unique(ids.origins()[rows], return_counts=True)
    v1 = part_of(
        (Counted(check, TABLE, count, text=ids.first_text(wrong)) for check, count, wrong in faults),
        kinds=[KindRow(layout.KIND_V1, str(origin), int(n)) for origin, n in zip(origins, counts, strict=True)],
    )
    return [v1, value_facts(_values(ids, content, near))]


def _values(ids: Ids, content: NDArray[np.int64], near: NDArray[np.int64]) -> Values:
    """Return the values of a table that are not version-1 IDs."""
    rows = np.flatnonzero(~ids.is_v1)
    of = ids.other[rows]
    found = grouped(content[rows], of)
    first = of[found.order[found.first]]
    duplicates, conflicts = np.zeros((2, len(ids.others)), np.int64)
    duplicates[first], conflicts[first] = found.duplicates, found.conflicts
    earliest = np.full(len(ids.others), NEVER)
    np.minimum.at(earliest, of, near[rows])
    return Values(ids.others, np.bincount(of, minlength=len(ids.others)), duplicates, conflicts, earliest)


def value_facts(values: Values) -> Facts:
    """Return the kinds of values that are not version-1 IDs, and the findings about them."""
    kinds: Counter[tuple[str, str | None]] = Counter()
    for one, n in zip(values.others, values.rows.tolist(), strict=True):
        kinds[one.kind, one.reason] += n

    def counted(check: str, numbers: NDArray[np.int64], chosen: NDArray[np.bool_]) -> Counted:
        texts = (values.others[place].identity for place in np.flatnonzero(chosen & (numbers > 0)))
        first = min((text for text in texts if text is not None), default=None)
        return Counted(check, TABLE, int(numbers[chosen].sum()), text=first)

    def has_kind(kind: str) -> NDArray[np.bool_]:
        return np.array([one.kind == kind for one in values.others], bool)

    # NULL and empty values do not identify a row, so they do not repeat one.
    has = np.array([one.identity is not None for one in values.others], bool)
    found = [
        counted("duplicate_ids", values.duplicates, has),
        counted("conflicting_ids", values.conflicts, has),
        counted("missing_ids", values.rows, has_kind(NULL_KIND)),
        counted("malformed_ids", values.rows, has_kind(MALFORMED_KIND)),
        counted("ambiguous_ids", values.rows, has_kind(layout.KIND_AMBIGUOUS)),
        counted("v0_month_wrap", values.rows, _wrapped(values)),
    ]
    return part_of(found, kinds=[KindRow(*key, n) for key, n in kinds.items() if n])


def _wrapped(values: Values) -> NDArray[np.bool_]:
    """Return which values are version-0 IDs that were made in the month before their rows' earliest time.

    The clients' time zones are unknown, so an ID of the last day is not one of them.
    """
    elapsed = np.array([-1 if one.elapsed_ms is None else one.elapsed_ms for one in values.others], np.int64)
    known = values.near < NEVER
    moments, day = np.where(known, values.near, 0), layout.CLOCKS_DIFFER_S * 1_000_000

    def month_of(moments: NDArray[np.int64], back: int = 0) -> NDArray[np.int64]:
        months = moments.astype("datetime64[us]").astype("datetime64[M]") - back
        return months.astype("datetime64[us]").astype(np.int64)

    # The rule of ClientUniqueId.time_near.
    made = np.full(len(elapsed), NEVER)
    for back in (3, 2, 1, 0):
        moment = month_of(moments + day, back) + elapsed * 1_000
        is_part = moment < month_of(moments + day, back - 1)
        made = np.where(is_part & (moment <= moments + day), moment, made)
    before = (made < month_of(moments)) & (made < moments - day)
    is_too_long = elapsed >= _LONGEST_MONTH_MS
    wrapped: NDArray[np.bool_] = (elapsed >= 0) & ((known & before) | is_too_long)
    return wrapped


def _orphans(ids: Ids, parents: Ids) -> NDArray[np.int64]:
    """Return the rows with a derived ID whose parent is not the ID of any row."""
    rows = np.flatnonzero((ids.origins() == "derived") & ~ids.counted & parents.keys[2])
    asked = parents.identities().take(pa.array(rows))
    present: NDArray[np.bool_] = pc.is_in(asked, ids.identities()).to_numpy(zero_copy_only=False)
    return rows[~present]
