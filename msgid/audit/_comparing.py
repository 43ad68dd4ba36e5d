"""Compare the messages of two sides in NumPy: those that were sent, and those that landed in a table.

Messages are matched by their position, or by the value of their ID. `differing` finds those that only one side has,
that differ, or that the table repeats.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid.audit._spans import starts_of
from msgid.audit.facts import Counted, Difference
from msgid.layout import VERSION_1

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from msgid.audit._ids import Ids

FAULTS: Final = {
    "lost": "lost_messages",
    "changed": "changed_messages",
    "duplicate": "duplicate_messages",
    "extra": "extra_messages",
}
"""The check of each fault, in the order in which a report lists the messages."""

_V1: Final = f"{VERSION_1:02X}".encode()


class Matched(NamedTuple):
    """The messages of both sides that have a fault, one row per message, ordered by fault and message.

    ``fault`` is a place in `FAULTS`, ``row`` the first row of the message in the rows of both sides, and ``count`` the
    number of its repeated rows, or 1.
    """

    fault: NDArray[np.int64]
    row: NDArray[np.int64]
    count: NDArray[np.int64]  # type: ignore[assignment]  # a tuple has a method of this name


def differing(keys: tuple[NDArray[Any], ...], content: NDArray[np.int64] | None, landed: NDArray[np.bool_]) -> Matched:
    """Return the messages that one side lacks, whose contents differ, or that the table has more often.

    Args:
        keys: Arrays that together identify the message of each row of both sides.
        content: A number per row that is equal if and only if the contents are; None if they are not compared.
        landed: Which rows are of the table.
    """
    import numpy as np

    empty = np.zeros(0, np.int64)
    if not len(landed):
        return Matched(empty, empty, empty)
    contents = np.zeros(len(landed), np.int64) if content is None else content
    order = np.lexsort((landed, contents, *reversed(keys)))
    ordered = [key[order] for key in keys]
    starts = starts_of(*ordered)
    of_content = np.flatnonzero(starts_of(*ordered, contents[order]))
    first, at = np.flatnonzero(starts), landed[order].astype(np.int64)
    in_table, all_rows = np.add.reduceat(at, first), np.diff(np.append(first, len(order)))
    sent = all_rows - in_table
    table_of_content = np.add.reduceat(at, of_content)
    one_side = (table_of_content == 0) | (table_of_content == np.diff(np.append(of_content, len(order))))
    of_message = (np.cumsum(starts) - 1)[of_content]
    both = (sent > 0) & (in_table > 0)
    is_changed = both & np.bincount(of_message[one_side], minlength=len(first)).astype(bool)
    chosen = [sent * (in_table == 0) > 0, is_changed, both & ~is_changed & (in_table > sent), sent == 0]
    more, row_of = in_table - sent, np.minimum.reduceat(order, first)
    faults, rows, counts = [empty], [empty], [empty]
    for fault, held in enumerate(chosen):
        faults.append(np.full(int(held.sum()), fault))
        rows.append(row_of[held])
        counts.append(more[held] if fault == list(FAULTS).index("duplicate") else np.ones(int(held.sum()), np.int64))
    return Matched(*(np.concatenate(parts) for parts in (faults, rows, counts)))


def joint_keys(sides: list[Ids]) -> tuple[tuple[NDArray[Any], ...], NDArray[np.bool_]]:
    """Return numbers for each ID of all sides, equal if and only if the IDs are, and which rows have an ID.

    The numbers are in the order of the IDs' texts, except for texts that begin as IDs of version 1 do.
    """
    import numpy as np

    texts = sorted(
        {one.identity.encode("utf-8", "surrogatepass") for ids in sides for one in ids.others if one.identity}
    )
    place = {text: number for number, text in enumerate(texts)}
    before_v1 = bisect.bisect_left(texts, _V1)
    parts = []
    for ids in sides:
        a, b, has = ids.keys
        codes = [place.get((one.identity or "").encode("utf-8", "surrogatepass"), 0) for one in ids.others]
        other = np.array(codes, np.uint64)[ids.other]
        kind = np.where(ids.is_v1, 1, np.where(other < before_v1, 0, 2))
        parts.append((kind, np.where(ids.is_v1, a, 0), np.where(ids.is_v1, b, other), has))
    *keys, has = (np.concatenate(column) for column in zip(*parts, strict=True))
    return tuple(keys), has


def codes_of(keys: tuple[NDArray[Any], ...]) -> NDArray[np.int64]:
    """Return a number for each row, equal if and only if all keys are."""
    import numpy as np

    order = np.lexsort(keys[::-1])
    codes = np.empty(len(order), np.int64)
    codes[order] = np.cumsum(starts_of(*(key[order] for key in keys)))
    return codes


def counted(found: Matched, scopes: NDArray[np.int64], names: list[str], texts: Any, offset: Any) -> list[Counted]:
    """Return the counts of each fault in each scope, with the first message as example.

    Args:
        found: The messages with faults.
        scopes: The place in ``names`` of the scope of each row of both sides.
        names: The scopes.
        texts: A function that returns the ID of a row, or None.
        offset: The offset of each row; None if messages are matched by their IDs.
    """
    import numpy as np

    counts = []
    for place, check in enumerate(FAULTS.values()):
        rows, more = found.row[found.fault == place], found.count[found.fault == place]
        held, first, of = np.unique(scopes[rows], return_index=True, return_inverse=True)
        sums = np.bincount(of.reshape(-1), more, len(held)).astype(np.int64)
        for scope, at, total in zip(held.tolist(), first.tolist(), sums.tolist(), strict=True):
            row = int(rows[at])
            x = None if offset is None else int(offset[row])
            counts.append(Counted(check_by(check, offset is not None), names[scope], total, x, x, texts(row)))
    return counts


def check_by(check: str, is_position: bool) -> str:
    """Return the check of messages that are matched by their positions or by their IDs."""
    return check if is_position or check != "duplicate_messages" else "duplicate_ids"


def listed(found: Matched, scopes: Any, names: list[str], texts: Any, offset: Any, most: int) -> list[Difference]:
    """Return the messages with faults: the lost ones first, and at most a number of them."""
    faults = list(FAULTS)
    return [
        Difference(
            faults[fault], names[scopes[row]], None if offset is None else int(offset[row]), texts(row)
        )
        for fault, row in zip(found.fault[:most].tolist(), found.row[:most].tolist(), strict=True)
    ]  # fmt: skip
