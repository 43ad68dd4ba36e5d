"""Many ids at once: `IdBatch`, a reservation that is written out in the form that is asked for."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, final, overload

from msgid.identifier import MessageId
from msgid.layout import FIELDS, ID_DIGITS, ID_LENGTH, PREFIX_LENGTH, UINT32_MASK
from msgid.minting import Run

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["IdBatch"]


@final
class IdBatch(Sequence[MessageId]):
    """``n`` neighbouring ids of one generator, made by `msgid.generate_batch`.

    It holds only what the ids have in common and where they begin, so it costs the same for one as for a million;
    each form is written out when asked for. A sequence of `MessageId`: length, index, slice (another batch),
    iterate, ``in``.

    >>> import msgid
    >>> batch = msgid.Generator(node=0x56F7E71C361B, pid=8636, clock=lambda: 1648047038, sequence=0).generate_batch(3)
    >>> batch.hex()[-1], len(batch.to_bytes()), batch[1:][0] == batch[1]
    ('0156F7E71C361B21BC024CCDBE00000002', 51, True)
    """

    __module__ = "msgid"
    __slots__ = ("_prefix", "_runs")

    def __init__(self, prefix: bytes, runs: tuple[Run, ...]) -> None:
        self._prefix = prefix
        self._runs = runs

    def __len__(self) -> int:
        return sum(len(run.sequences) for run in self._runs)

    @overload
    def __getitem__(self, index: int) -> MessageId: ...
    @overload
    def __getitem__(self, index: slice) -> IdBatch: ...
    def __getitem__(self, index: int | slice) -> MessageId | IdBatch:
        wanted = range(len(self))[index]  # Python's own rules for negative, stepped and missing indices
        if isinstance(wanted, range):
            return IdBatch(self._prefix, self._pick(wanted))
        for run in self._runs:
            if wanted < len(run.sequences):
                return self._id(run.second, run.sequences[wanted])
            wanted -= len(run.sequences)
        raise AssertionError("an index within the length lies in a run")

    def __iter__(self) -> Iterator[MessageId]:
        for second, sequences in self._runs:
            for sequence in sequences:
                yield self._id(second, sequence)

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, MessageId) or bytes(value)[:PREFIX_LENGTH] != self._prefix:
            return False
        return any(value.seconds == run.second & UINT32_MASK and value.sequence in run.sequences for run in self._runs)

    def __repr__(self) -> str:
        ends = f": {self[0]} to {self[-1]}" if self._runs else ""
        return f"<IdBatch of {len(self)}{ends}>"

    def to_bytes(self) -> bytes:
        """Write the ids out back to back: ``17 * n`` bytes."""
        return bytes(self._rows())

    def hex(self) -> list[str]:
        """Write the ids out as text: ``n`` times 34 upper-case hex digits."""
        text = self._rows().hex().upper()
        return [text[start : start + ID_DIGITS] for start in range(0, len(text), ID_DIGITS)]

    def to_numpy(self) -> NDArray[np.uint8]:
        """Write the ids out as a NumPy array of shape ``(n, 17)``, one byte an element. Needs NumPy."""
        import numpy as np

        return np.frombuffer(self._rows(), np.uint8).reshape(-1, ID_LENGTH)

    def to_arrow(self) -> pa.FixedSizeBinaryArray:
        """Write the ids out as an Arrow array of ``n`` fixed-size binary(17) values. Needs PyArrow."""
        import pyarrow as pa

        buffers: list[Any] = [None, pa.py_buffer(self._rows())]
        return pa.FixedSizeBinaryArray.from_buffers(pa.binary(ID_LENGTH), len(self), buffers)

    def _id(self, second: int, sequence: int) -> MessageId:
        return MessageId._of(self._prefix + ((second & UINT32_MASK) << 32 | sequence).to_bytes(8, "big"))

    def _pick(self, wanted: range) -> tuple[Run, ...]:
        """Give the runs that hold the ids at the ``wanted`` indices, in that order."""
        if wanted.step < 0:
            return tuple(Run(second, sequences[::-1]) for second, sequences in self._pick(wanted[::-1])[::-1])
        picked = []
        start = 0
        for second, sequences in self._runs:
            stop = start + len(sequences)
            here = wanted[bisect_left(wanted, start) : bisect_left(wanted, stop)]
            if here:
                picked.append(Run(second, sequences[here[0] - start : here[-1] - start + 1 : here.step]))
            start = stop
        return tuple(picked)

    def _rows(self) -> bytearray:
        """Write the rows column by column: one strided copy a byte of the id, which is as fast as plain Python gets."""
        rows = bytearray(ID_LENGTH * len(self))
        first = 0
        for second, sequences in self._runs:
            count = len(sequences)
            last = first + count * ID_LENGTH
            same = self._prefix + (second & UINT32_MASK).to_bytes(FIELDS["seconds"].width, "big")
            for place, byte in enumerate(same):
                rows[first + place : last : ID_LENGTH] = bytes([byte]) * count
            numbers = array("I", sequences)
            if sys.byteorder == "little":
                numbers.byteswap()
            columns = numbers.tobytes()
            width = FIELDS["sequence"].width
            for place in range(width):
                rows[first + len(same) + place : last : ID_LENGTH] = columns[place::width]
            first = last
        return rows
