"""The result of a scan of Iggy's bytes: a row for each message, and why the scan ended.

A row has a fixed size, so that NumPy reads many rows as columns and `struct` reads one as a tuple. The compiled scanner
(`_scan.c`) and the reference (`reference.py`) write the same rows.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, Final, NamedTuple

FIELDS: Final = {
    "position": "<i8",
    "end": "<i8",
    "headers": "<i8",
    "payload": "<i8",
    "batch": "<i8",
    "headers_length": "<u4",
    "payload_length": "<u4",
    "offset": "<u8",
    "timestamp": "<u8",
    "origin": "<u8",
    "id": "V16",
    "checksum": "<u8",
    "state": "u1",
    "sum": "u1",
    "batch_sum": "u1",
    "layout": "u1",
    "padding": "<u4",
}
"""The fields of a row, with their types as NumPy names them. Places count from the start of the scanned bytes."""

ROW: Final = struct.Struct("<qqqqqIIQQQ16sQBBBB4x")

SUM_WRONG, SUM_RIGHT, NO_SUM = range(3)
"""The values of `Row.sum` and `Row.batch_sum`."""


class Row(NamedTuple):
    """One message."""

    position: int
    """Where the message starts: in ``batch24`` its size, in ``batch256`` its frame."""
    end: int
    headers: int
    """Where the user headers start."""
    payload: int
    """Where the payload starts."""
    batch: int
    """Where the batch of the message starts; -1 in a layout without batches."""
    headers_length: int
    payload_length: int
    offset: int
    timestamp: int
    origin: int
    """The producer's time; 0 in a layout without it."""
    id: bytes
    checksum: int
    state: int
    """0 in a layout without states."""
    sum: int
    batch_sum: int
    layout: int


class Stop(IntEnum):
    """Why a scan ended."""

    END = 0
    """The bytes end with a whole record, or the scan has as many rows as it was asked for."""
    MORE = 1
    """The next record needs `Scan.value` bytes, and they may follow."""
    CUT = 2
    """The next record needs `Scan.value` bytes, and the file ends before them."""
    LONG = 3
    """The next record claims `Scan.value` bytes, more than the limit."""
    STATE = 4
    RESERVED = 5
    SIZE = 6
    """The size of a ``batch24`` message is too small for its fields and headers."""
    FRAME = 7
    """A message of `Scan.value` bytes goes past the end of its batch."""
    BATCH = 8
    """The length of a ``batch256`` batch is smaller than the batch's header."""
    COUNT = 9
    """A batch has `Scan.value` frames, not as many as it says."""
    FLAGS = 10
    SUM = 11
    """The checksum of the next message is wrong, and the scan was asked to stop there."""
    PRODUCER = 12
    """A number of a producer section, `Scan.value`, is too large."""


class Scan(NamedTuple):
    """The result of a scan."""

    rows: bytes
    """A `ROW` for each message."""
    position: int
    """Where the scan ended: the start of the next record."""
    within: int
    """Where the ``batch24`` batch ends in which the scan ended; 0 outside of a batch."""
    stop: int
    """Why the scan ended, a `Stop`."""
    at: int
    """The byte that is wrong."""
    value: int


def row_type() -> Any:
    """Return the NumPy type of a row."""
    import numpy as np

    return np.dtype(list(FIELDS.items()))
