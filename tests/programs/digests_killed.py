"""Kill a process that makes the digests of a table, at each step, and make the rest in another process. Not a test.

python digests_killed.py LANDED FOLDER

FOLDER/N has the digests after the kill at the N-th step. A step is before or after a digest is made, merged, written to
a hidden file, or renamed.
"""

import os
import signal
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from msgid.audit import _digest_folders, _digest_tables, update_digests


def stepping(function, counted):
    """Return the function with a step before and one after it."""

    def stepped(*arguments, **named):
        counted()
        value = function(*arguments, **named)
        counted()
        return value

    return stepped


def make(landed, folder, at=None):
    """Make the digests in a process of their own; it kills itself at a step. Return whether it was killed."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    steps = iter(range(1_000_000))

    def counted():
        if next(steps) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    pq.write_table = stepping(pq.write_table, counted)
    _digest_folders.digest = stepping(_digest_folders.digest, counted)
    os.replace = stepping(os.replace, counted)
    _digest_tables.merged_sums = stepping(_digest_tables.merged_sums, counted)
    update_digests(folder, landed, offset="offset")
    os._exit(0)


def main(landed, folder):
    """Kill at each step until a process ends by itself, and print the number of kills."""
    pa.set_cpu_count(1)
    number = 0
    while make(landed, Path(folder) / str(number), number):
        make(landed, Path(folder) / str(number))
        number += 1
    print(number)


if __name__ == "__main__":
    main(*sys.argv[1:])
