"""Compare `parse_batch` with PyArrow's own casts of the same column, in turns, and with the floor of its work.

python bench/carriers.py [--rows 10000000] [--rounds 5]

Most casts change the type and copy no value, so they read nothing. The floor is what any reader of IDs must do: read
the bytes of all IDs once, and write the fields of each ID, 20 bytes. The times are those of the processor.
"""

from __future__ import annotations

import argparse
import time
import timeit

import numpy as np
import polars as pl
import pyarrow as pa
from rounds import alternate, machine, table

import msgid

FIELDS = ("uint8", "uint64", "uint16", "uint32", "uint32", "bool")


def columns(rows: int) -> dict[str, tuple[object, object]]:
    """Return each carrier: the column, and PyArrow's cast of it to text or bytes."""
    batch = msgid.generate_batch(rows)
    text, raw = batch.to_arrow(hex=True), batch.to_arrow()
    random = np.random.default_rng(1).bytes(16 * rows)
    bare = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), rows, [None, pa.py_buffer(random)])
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), bare)
    views = text.cast(pa.string_view())
    binary = pl.Series("id", bare.cast(pa.large_binary()))
    texts = pa.array(["74b158ca-ddb3-498f-b0a9-9eec1c6197ae"]).take(pa.array(np.zeros(rows, np.int64)))
    of_polars = pl.Series("id", text)
    return {
        "hex IDs, large_string": (text, lambda: text.cast(pa.large_binary())),
        "hex IDs, string": ((short := text.cast(pa.string())), lambda: short.cast(pa.large_string())),
        "hex IDs, string_view": (views, lambda: views.cast(pa.large_string())),
        "hex IDs, Polars String": (of_polars, lambda: of_polars.to_arrow().cast(pa.large_binary())),
        "IDs, fixed_size_binary(17)": (raw, lambda: raw.cast(pa.large_binary())),
        "UUIDs, arrow.uuid": (uuids, lambda: uuids.cast(pa.binary())),
        "UUIDs, text of 36 digits": (texts, lambda: texts.cast(pa.large_string())),
        "UUIDs, Polars Binary": (binary, lambda: binary.to_arrow().cast(pa.large_binary())),
    }  # fmt: skip


def floor(column: object) -> None:
    """Read the bytes of a column once, and write the fields."""
    array = column.to_arrow() if isinstance(column, pl.Series) else column
    array = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
    for buffer in array.buffers():
        if buffer is not None:
            np.bitwise_or.reduce(np.frombuffer(buffer, np.uint64, count=buffer.size // 8))
    for dtype in FIELDS:
        np.zeros(len(array), dtype).fill(1)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    print(f"{machine()}; PyArrow {pa.__version__}, Polars {pl.__version__}; nanoseconds per ID, {chosen.rows:,} IDs\n")
    lines = []
    for name, (column, cast) in columns(chosen.rows).items():
        timers = {
            "parse_batch": timeit.Timer(lambda column=column: msgid.parse_batch(column), timer=time.process_time),
            "cast": timeit.Timer(cast, timer=time.process_time),
            "floor": timeit.Timer(lambda column=column: floor(column), timer=time.process_time),
        }
        best = alternate(timers, number=1, rounds=chosen.rounds)
        parsed, cast_time, least = (best[one] / chosen.rows for one in timers)
        ratios = [f"{parsed / cast_time:.1f}" if cast_time > 0.01 else "copies nothing", f"{parsed / least:.1f}"]
        lines.append([name, f"{parsed:.2f}", f"{cast_time:.2f}", f"{least:.2f}", *ratios])
    print(table(["column", "parse_batch", "cast", "floor", "to the cast", "to the floor"], lines))


if __name__ == "__main__":
    main()
