"""The bytes that the log of `deduplicate` writes per row, without Spark and RocksDB.

python bench/spark/state_log.py [--entries 1000000] [--rows 1000 10000] [--batches 200]

All IDs are new and random, and each bucket gets its part of a micro-batch. After the state is filled, the script counts
the values that the logs hand to Spark's state store: the lists of recent entries, the pages and filters of runs, and
the heads.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from spark_ext.streaming._labelling import CONTENT_LENGTH
from spark_ext.streaming._state.bucket_log import HEAD, BucketLog, Entries, fixed
from spark_ext.streaming._state.buckets import DEFAULT_BUCKETS

sys.path.insert(0, str(Path(__file__).parent.parent))
from rounds import table

KINDS = ("lists", "runs", "heads")


class Values:
    """The values of a bucket in memory."""

    def __init__(self, written: Counter[str]) -> None:
        self.numbered: dict[int, bytes] = {}
        self.list: list[bytes] = []
        self.written = written
        """The bytes of each kind, of all buckets."""

    def get(self, number: int) -> bytes | None:
        return self.numbered.get(number)

    def put(self, number: int, value: bytes | None) -> None:
        if value is None:
            del self.numbered[number]
        else:
            self.numbered[number] = value
            self.written["heads" if number == HEAD else "runs"] += len(value)

    def recent(self) -> list[bytes]:
        return self.list

    def append(self, value: bytes | None) -> None:
        self.list = [] if value is None else [*self.list, value]
        self.written["lists"] += len(value or b"")


def add(buckets: list[Values], rows: int, time: int, draw: np.random.Generator) -> None:
    """Add the new IDs of a micro-batch."""
    high, low = (draw.integers(0, (1 << 64) - 1, rows, np.uint64) for _ in range(2))
    for number, values in enumerate(buckets):
        mine = low % np.uint64(len(buckets)) == number
        content = draw.integers(0, 255, (int(mine.sum()), CONTENT_LENGTH), np.uint8)
        log = BucketLog(values)
        log.add(Entries(high[mine], low[mine], np.full(len(content), time), fixed(content)))
        log.commit()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--batches", type=int, default=200)
    arguments = parser.parse_args()
    lines = []
    for rows in arguments.rows:
        written: Counter[str] = Counter()
        buckets, draw = [Values(written) for _ in range(DEFAULT_BUCKETS)], np.random.default_rng(1)
        add(buckets, arguments.entries, 0, draw)
        written.clear()
        for batch in range(arguments.batches):
            add(buckets, rows, batch, draw)
        each = [written[kind] / rows / arguments.batches for kind in KINDS]
        lines.append([f"{rows:,}", *(f"{size:.1f}" for size in each), f"{sum(each):.1f}"])
    print(f"{arguments.entries:,} entries, {arguments.batches:,} micro-batches; bytes per row")
    print()
    print(table(["rows", *KINDS, "all"], lines))


if __name__ == "__main__":
    main()
