"""Let each allocation of each compiled function fail once: the result is a MemoryError, and the next call works."""

from __future__ import annotations

import _testcapi
import faulthandler
from typing import TYPE_CHECKING, Any

import numpy as np

import msgid
from msgid.ids._native import native as core
from msgid.ids.message_id import MessageId
from msgid.iggy.records.checksums import native as scanner

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 400
"""The allocations of a call that fail, one in each run."""
QUIET = 60
"""A call is done after so many runs without an error: all its allocations have failed."""
TEXT = "0156F7E71C361B21BC024CCDBE00000000"


def calls() -> dict[str, Callable[[], Any]]:
    """Return the calls by name."""
    columns = [np.zeros(3000, kind) for kind in ("u1", "u8", "u2", "u4", "u4", "u1")]
    values = (5, TEXT, b"x") * 1000
    data, offsets = np.zeros(17 * 3000, "u1"), np.arange(3001, dtype=np.int64) * 17
    generator = msgid.Generator(node=1, pid=2)
    wrapping = msgid.Generator(node=1, pid=2, clock=lambda: 1_700_000_000, sequence=2**32 - 2)
    generator.generate(), wrapping.generate()
    id, frames = msgid.parse(TEXT), bytes(40 * 5000)
    parts = ((1, 2, 3, 400), (5, 6, 7, 8))
    far = 1 << 40
    return {
        "parse": lambda: core.parse(TEXT),
        "parse of bytes": lambda: core.parse(b"\1" + bytes(16)),
        "parse of invalid text": lambda: core.parse("x"),
        "is_valid": lambda: core.is_valid(np.str_("x")),
        "rows": lambda: core.rows(b"123456789", parts),
        "hex_rows": lambda: core.hex_rows(b"123456789", parts),
        "hex_list": lambda: core.hex_list(b"123456789", parts),
        "read_texts": lambda: core.read_texts(values, *columns),
        "read_rows": lambda: core.read_rows(data, offsets, False, *columns),
        "read_rows outside": lambda: core.read_rows(data, offsets + 5, False, *columns),
        "bind": lambda: core.bind(5, 5, 5),
        "generate": generator.generate,
        "generate_hex": generator.generate_hex,
        "generate_batch": lambda: generator.generate_batch(5),
        "generate_batch that wraps": lambda: wrapping.generate_batch(5),
        "Generator": lambda: msgid.Generator(node=1, pid=2).generate_hex(),
        "str": lambda: str(id),
        "bytes": lambda: bytes(id),
        "hash": lambda: hash(id),
        "setattr": lambda: setattr(id, "x", 1),
        "an ID of bytes": lambda: MessageId._of(b"x" * 17),
        "scan": lambda: scanner.scan(frames, 0, 0, -1, 0, far, far, -1),
        "scan of an unknown layout": lambda: scanner.scan(frames, 9, 0, 0, 0, 0, 0, 0),
        "xxh3": lambda: scanner.xxh3(frames),
    }


def failures(call: Callable[[], Any]) -> int:
    """Return in how many runs the failed allocation came out as a MemoryError."""
    count = quiet = 0
    for number in range(MOST):
        is_refused = False
        _testcapi.set_nomemory(number, number + 1)
        try:
            call()
        except MemoryError:
            is_refused = True
        except Exception:  # the call's own error
            pass
        finally:
            _testcapi.remove_mem_hooks()
        count += is_refused
        quiet = 0 if is_refused else quiet + 1
        if quiet > QUIET:
            break
    return count


def main() -> None:
    """Print how many failed allocations came out."""
    faulthandler.enable()
    total = 0
    functions = calls()
    for call in functions.values():
        try:
            call()
        except Exception:  # the first call fills caches
            pass
        total += failures(call)
    assert core.parse(TEXT).hex == TEXT
    assert len(set(msgid.Generator(node=1, pid=2).generate_batch(1000).hex())) == 1000
    print(f"{len(functions)} calls, {total} failed allocations were a MemoryError")


main()
