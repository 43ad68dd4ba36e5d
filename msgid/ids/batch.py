"""`IdBatch`: many IDs made at once, encoded on request."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, final, overload

from msgid.ids import _batch_bytes
from msgid.ids._sequence import SecondOfIds
from msgid.ids.message_id import MessageId
from msgid.layout import ID_DIGITS, ID_LENGTH, PREFIX_LENGTH, UINT32_MASK
from msgid.shared.validate import check_installed

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


@final
class IdBatch(Sequence[MessageId]):
    """A batch of ``n`` consecutive IDs of one generator, made by `msgid.generate_batch`.

    The batch holds only the common prefix and the ranges of sequence numbers, so a batch of a million IDs is as cheap
    as a batch of one. Each method encodes the IDs when it is called. A batch is a sequence of `MessageId`: it supports
    ``len``, indexing, iteration and ``in``; a slice is another batch.

    >>> import msgid
    >>> batch = msgid.Generator(node=0x56F7E71C361B, pid=8636, clock=lambda: 1648047038, sequence=0).generate_batch(3)
    >>> batch.hex()[-1], len(batch.to_bytes()), batch[1:][0] == batch[1]
    ('0156F7E71C361B21BC024CCDBE00000002', 51, True)
    """

    __module__ = "msgid"
    __slots__ = ("_prefix", "_runs")

    def __init__(self, prefix: bytes, runs: tuple[SecondOfIds, ...]) -> None:
        self._prefix = prefix
        self._runs = runs

    def __reduce__(
        self,
    ) -> tuple[type[IdBatch], tuple[bytes, tuple[SecondOfIds, ...]]]:  # without it, not in protocols 0 and 1
        return IdBatch, (self._prefix, self._runs)

    def __len__(self) -> int:
        return sum(len(run.sequences) for run in self._runs)

    @overload
    def __getitem__(self, index: int) -> MessageId: ...
    @overload
    def __getitem__(self, index: slice) -> IdBatch: ...
    def __getitem__(self, index: int | slice) -> MessageId | IdBatch:
        wanted = range(len(self))[index]  # range applies Python's rules for negative, stepped and invalid indices
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
        """Encode the IDs as ``17 * n`` bytes, one ID after the other."""
        return _batch_bytes.rows(self._prefix, self._parts())

    def hex(self) -> list[str]:
        """Encode the IDs as ``n`` texts of 34 upper-case hex digits."""
        return _batch_bytes.hex_list(self._prefix, self._parts())

    def to_hex_bytes(self) -> bytes:
        """Encode the text of the IDs as ``34 * n`` ASCII bytes. This is much faster than a list of ``n`` texts."""
        return _batch_bytes.hex_rows(self._prefix, self._parts())

    def to_numpy(self) -> NDArray[np.uint8]:
        """Encode the IDs as a read-only NumPy array of shape ``(n, 17)`` and type uint8. Needs NumPy."""
        check_installed("to_numpy", "arrow", "numpy")
        import numpy as np

        return np.frombuffer(self.to_bytes(), np.uint8).reshape(-1, ID_LENGTH)

    def to_arrow(self, *, hex: bool = False) -> pa.FixedSizeBinaryArray | pa.LargeStringArray:
        """Encode the IDs as an Arrow array. Needs PyArrow.

        Args:
            hex: False for ``n`` fixed-size binary(17) values, True for ``n`` large strings of 34 hex digits.

        Returns:
            The array. It uses the encoded buffer without a copy.
        """
        check_installed("to_arrow", "arrow", "pyarrow")
        import pyarrow as pa

        if not hex:
            buffers: list[Any] = [None, pa.py_buffer(self.to_bytes())]
            return pa.FixedSizeBinaryArray.from_buffers(pa.binary(ID_LENGTH), len(self), buffers)
        check_installed("to_arrow", "arrow", "numpy")
        import numpy as np

        # A large string array has 64-bit offsets, so the text of any batch fits into one array.
        offsets = np.arange(0, ID_DIGITS * len(self) + 1, ID_DIGITS, dtype=np.int64)
        return pa.LargeStringArray.from_buffers(len(self), pa.py_buffer(offsets), pa.py_buffer(self.to_hex_bytes()))

    def _id(self, second: int, sequence: int) -> MessageId:
        return MessageId._of(self._prefix + ((second & UINT32_MASK) << 32 | sequence).to_bytes(8, "big"))

    def _pick(self, wanted: range) -> tuple[SecondOfIds, ...]:
        """Return the runs of the IDs at the ``wanted`` indices, in that order."""
        if wanted.step < 0:
            return tuple(SecondOfIds(second, sequences[::-1]) for second, sequences in self._pick(wanted[::-1])[::-1])
        picked = []
        start = 0
        for second, sequences in self._runs:
            stop = start + len(sequences)
            here = wanted[bisect_left(wanted, start) : bisect_left(wanted, stop)]
            if here:
                picked.append(SecondOfIds(second, sequences[here[0] - start : here[-1] - start + 1 : here.step]))
            start = stop
        return tuple(picked)

    def _parts(self) -> tuple[_batch_bytes.Part, ...]:
        return tuple((run.second, run.sequences.start, run.sequences.step, len(run.sequences)) for run in self._runs)
