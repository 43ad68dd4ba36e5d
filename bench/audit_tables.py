"""Make the tables that `bench/audit.py` audits: messages of 8 logs, with known numbers of lost and repeated ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

LOGS = 8
PER_SECOND = 1_000
START = 1_790_000_000
"""The Unix second of the first message."""
STEP = 1_000_000
"""The number of messages that are made at once."""
BEHIND = 5_000
"""The number of rows between a message and its copy."""
EDGE = 2 * LOGS
"""The first and last messages, which are not lost: no query sees such a loss."""


class Contents(NamedTuple):
    """A table: its numbers of rows, and of lost and repeated messages."""

    rows: int
    lost: int
    repeated: int


def make(path: Path, messages: int, ids: str | None = None, share: float = 1e-4, is_shuffled: bool = False) -> Contents:
    """Write a table to a file, as Parquet or CSV by its ending.

    Args:
        path: The file. The times of CSV do not name a zone: PyArrow writes ``2026-09-21 14:13:20.000``.
        messages: Number of messages that were sent.
        ids: ``random``: each message has a random UUID. ``few`` or ``many``: it has an ID of version 1, of 4 generators
            or of one generator per 8 messages. Default: the table is without IDs.
        share: Share of the messages that are lost, and of those that are repeated.
        is_shuffled: Whether the rows are in random order.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    chance = np.random.default_rng(1)
    is_csv = path.suffix == ".csv"
    unit = pa.timestamp("ms") if is_csv else pa.timestamp("ms", "UTC")
    names = {"orders": 0, "payments": 1}
    writer, contents = None, Contents(0, 0, 0)
    step = messages if is_shuffled else STEP
    for start in range(0, messages, step):
        number = np.arange(start, min(start + step, messages))
        lost = (chance.random(len(number)) < share) & (number >= EDGE) & (number < messages - EDGE)
        kept = number[~lost]
        copies = kept[chance.random(len(kept)) < share]
        order = np.argsort(np.concatenate([kept, copies + BEHIND]), kind="stable")
        if is_shuffled:
            order = chance.permutation(len(order))
        columns = {} if ids is None else {"id": id_texts(number, ids, chance)}
        rows = np.concatenate([kept, copies])[order]
        log = rows % LOGS
        topics = pa.DictionaryArray.from_arrays(pa.array((log % 2).astype(np.int32)), list(names))
        table = pa.table({
            **{name: texts.take(pa.array(rows - start)) for name, texts in columns.items()},
            "topic": topics.cast(pa.string()),
            "partition": pa.array((log // 2).astype(np.int32)),
            "offset": rows // LOGS,
            "timestamp": pa.array(START * 1_000 + rows * 1_000 // PER_SECOND).cast(unit),
        })  # fmt: skip
        if writer is None:
            writer = pa.csv.CSVWriter(path, table.schema) if is_csv else pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
        contents = Contents(contents.rows + len(rows), contents.lost + int(lost.sum()), contents.repeated + len(copies))
    writer.close()
    return contents


def id_texts(number, kind, chance):
    """Return the IDs of some messages as an Arrow array of text."""
    import numpy as np
    import pyarrow as pa

    size = 16 if kind == "random" else 17
    raw = np.zeros((len(number), size), np.uint8)
    if kind == "random":
        raw[:] = np.frombuffer(chance.bytes(16 * len(number)), np.uint8).reshape(-1, 16)
        raw[:, 6] = raw[:, 6] & 0x0F | 0x40
        raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    else:
        generator, sequence = (number % 4, number // 4) if kind == "few" else (number // 8, number % 8)
        raw[:, 0] = 1
        raw[:, 1:7] = big_endian(0x00163E000000 + generator, 6)
        raw[:, 7:9] = big_endian(np.full(len(number), 4711), 2)
        raw[:, 9:13] = big_endian(START - 1_609_459_200 + number // PER_SECOND, 4)
        raw[:, 13:] = big_endian(sequence, 4)
    digits = np.frombuffer(b"0123456789abcdef" if kind == "random" else b"0123456789ABCDEF", np.uint8)
    text = np.empty((len(number), 2 * size), np.uint8)
    text[:, 0::2], text[:, 1::2] = digits[raw >> 4], digits[raw & 15]
    if kind == "random":
        text = np.insert(text, (8, 12, 16, 20), ord("-"), axis=1)
    width = text.shape[1]
    ends = np.arange(len(number) + 1, dtype=np.int32) * width
    return pa.StringArray.from_buffers(len(number), pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(text)))


def big_endian(numbers, size):
    """Return the lowest bytes of numbers, one row per number."""
    return numbers.astype(">u8").view("u1").reshape(-1, 8)[:, 8 - size :]
