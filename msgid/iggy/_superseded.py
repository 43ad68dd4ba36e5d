"""Messages whose offsets a restarted server gave to others.

A server that was killed may find whole messages in a log which its index lacks. It leaves them there, gives their
offsets to the next messages, and serves only these. So a message is superseded if a later one of the file has its
offset or a lower one. The index, which the server goes by, tells the same without reading the rest of the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgid._validate import INT64_MAX
from msgid.iggy._gaps import next_record
from msgid.iggy._records.decoding import NAMES, WHOLE, LogDecoder
from msgid.iggy._records.rows import row_type
from msgid.iggy._records.stepping import RecordFile
from msgid.iggy._wire import LAYOUTS
from msgid.iggy.detect import LONGEST
from msgid.iggy.index import Index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgid.iggy._gaps import File
    from msgid.iggy.table import Decoded

_CHUNK: Final = 1 << 20


class Superseded:
    """The superseded messages of a segment.

    Args:
        file: The segment.
        start: Where the first message starts that is asked for.
    """

    def __init__(self, file: File, start: int) -> None:
        self._file = file
        self._start = start
        self._records = RecordFile(file.read, file.size, LONGEST)
        self._indexes: dict[str, Index | None] = {}
        self._steps: dict[int, tuple[Any, Any]] = {}

    def among(self, found: Decoded, end: int) -> Any:
        """Return which messages are superseded, as an array of bools; None if none is.

        Args:
            found: Consecutive messages of the segment.
            end: Where the last one ends.
        """
        import numpy as np

        codes = [LAYOUTS[layout].code for layout in found.layouts]
        if not codes or not WHOLE.issuperset(codes):
            return None
        starts, offsets = found.positions, found.table["offset"].fill_null(-1).to_numpy()
        mask = self._by_index(np.append(starts[1:], end), offsets, found.layouts[0])
        if mask is None:
            mask = self._by_log(starts, offsets, codes[0], self._start, -1)
        else:  # behind the end of the index are the newest messages, perhaps those of several restarts
            mask |= self._by_log(starts, offsets, codes[0], *self._end_of_index(found.layouts[0]))
        return mask if mask.any() else None

    def _by_index(self, ends: Any, offsets: Any, layout: str) -> Any | None:
        """Return which messages the index lacks though it has the next ones; None if it does not fit the log."""
        import numpy as np

        index = self._index(layout)
        if index is None:
            return None
        first, last = index.first_from(int(ends[0])), index.first_from(int(ends[-1]))
        if last - first == len(ends) - 1 and last < len(index) and index[last].position == ends[-1]:
            return np.zeros(len(ends), bool)
        last = min(last + 1, len(index))
        entries = index.columns(first, last)
        places = entries["position"].astype(np.int64)
        if not len(places):  # it ends before these messages
            return np.zeros(len(ends), bool)
        if (np.diff(places) <= 0).any():
            return None
        number = np.searchsorted(places, ends)
        near = np.minimum(number, len(places) - 1)
        lacks = (number < len(places)) & (places[near] != ends)
        if not lacks.any():
            return lacks
        if not all(map(self._ends_at, np.unique(places[near[lacks]]).tolist())):
            return None
        given = entries["offset"].astype(np.int64) + (self._file.first_offset or 0)
        return lacks & (given[near] <= offsets)

    def _index(self, layout: str) -> Index | None:
        """Return the index; None without one of this log. Some releases rebuilt it in forms that begin with zeros."""
        if layout not in self._indexes:
            index = None if self._file.index is None else Index(self._file.index, layout)
            fits = index is not None and len(index) and index[0].position and self._ends_at(index[0].position)
            self._indexes[layout] = index if fits else None
        return self._indexes[layout]

    def _ends_at(self, place: int) -> bool:
        """Return whether the segment has a message's end at a place."""
        return place == self._file.size or self._records.code_at(place, (*WHOLE,), 0) is not None

    def _end_of_index(self, layout: str) -> tuple[int, int]:
        """Return where the last message of the index ends, and its offset; the start and -1 if it ends before that."""
        index = self._index(layout)
        assert index is not None
        last = index[len(index) - 1]
        if last.position <= self._start:
            return self._start, -1
        return last.position, (last.offset or 0) + (self._file.first_offset or 0)

    def _by_log(self, starts: Any, offsets: Any, code: int, place: int, highest: int) -> Any:
        """Return which messages have an offset that a later message behind a place has, or a lower one.

        Args:
            starts: Where the messages start.
            offsets: Their offsets.
            code: The layout of the first one.
            place: Where a record starts, not before the start.
            highest: The highest offset that counts before this place.
        """
        import numpy as np

        if place not in self._steps:
            self._steps[place] = _lowest_after(self._file, place, code, highest)
        places, lowest = self._steps[place]
        number = np.searchsorted(places, starts, side="right")
        known = np.append(lowest, INT64_MAX)
        return known[number] <= offsets


def _lowest_after(file: File, start: int, code: int, highest: int) -> tuple[Any, Any]:
    """Return the places of messages whose offsets step back, and the lowest of these offsets from each place on."""
    import numpy as np

    places: list[Any] = [np.empty(0, np.int64)]
    given: list[Any] = [np.empty(0, np.int64)]
    for rows, base in _rows_from(file, start, code):
        held = np.minimum(rows["offset"], INT64_MAX).astype(np.int64)
        before = np.maximum.accumulate(np.append(highest, held))
        back = held <= before[:-1]
        places.append(rows["position"][back] + base)
        given.append(held[back])
        highest = before[-1]
    offsets = np.concatenate(given)
    return np.concatenate(places), np.minimum.accumulate(offsets[::-1])[::-1]


def _rows_from(file: File, start: int, code: int) -> Iterator[tuple[Any, int]]:
    """Yield the rows of all messages from a place on, and the place from which their positions count."""
    import numpy as np

    place, held, needed, decoder = start, b"", 0, LogDecoder(NAMES[code], upgrade=True)
    while place < file.size:
        wanted = max(needed - len(held), _CHUNK)
        more = file.read(place + len(held), min(wanted, file.size - place - len(held)))
        held += more
        found = decoder.decode(held, file.size - place if more else len(held), place)
        if found.rows:
            yield np.frombuffer(found.rows, dtype=row_type()), place
        place, held, needed = place + found.place, held[found.place :], found.needed
        if found.error is not None:
            after = next_record(file, place + 1, NAMES[code if decoder.code is None else decoder.code])
            if after is None:
                return
            place, held, needed, decoder = after[0], b"", 0, LogDecoder(after[1], upgrade=True)
        elif not more:
            return
