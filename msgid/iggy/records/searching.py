"""Which layout a record has, and where the next record is in bytes that are not records: told by checksums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgid.errors import InvalidMessage, TruncatedMessage
from msgid.iggy.records.rows import ROW, SUM_RIGHT, SUM_WRONG, Row, Scan, Stop
from msgid.iggy.records.scanning import scan
from msgid.iggy.wire import BATCH24, BATCH256, H56_CRC, H56_XXH3, H64, LAYOUTS, M45, LayoutFacts
from msgid.messages import STATE_CODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONGEST: Final = 1 << 27
"""The longest record that readers wait for. Servers take payloads of 64 MB at most."""
OFFSET_AT: Final = {M45: 0, BATCH24: 0, BATCH256: 8, H56_CRC: 24, H56_XXH3: 24, H64: 24}
"""The position of the offset in a record; records of the layout ``previous``, without checksums, are never sure."""
OFFSET_SIZE: Final = 8
SPAN: Final = max(OFFSET_AT.values()) + OFFSET_SIZE
"""How many bytes show whether a record may start at the first of them."""
OFFSET_MAX: Final = 1 << 40
"""More offsets than a partition has."""
_BLOCK: Final = 1 << 20
_HEAD: Final = 1 << 12
"""How many bytes of a record are free to check."""
_NAMES: Final = list(LAYOUTS)


class Detection(NamedTuple):
    """The result of `detect`."""

    layout: str | None
    """The layout; None if it is not known."""
    failures: dict[str, str]
    """Why the first record does not fit, for each other layout."""
    needed: int = 0
    """How many bytes must be there to know more; 0 if more bytes do not help."""
    cut: bool = False
    """Whether a layout fails only because the bytes end within the first record."""

    def error(self, base: int = 0) -> InvalidMessage:
        """Return the error of bytes with an unknown layout.

        Args:
            base: The position of the first byte in its file.
        """
        reasons = "; ".join(f"{layout}: {reason}" for layout, reason in self.failures.items())
        kind = TruncatedMessage if self.cut else InvalidMessage
        return kind(f"cannot tell the layout: {reasons}", base)


def stop_reason(scanned: Scan) -> str:
    """Return why a scan stopped, in words."""
    reasons = {
        Stop.CUT: f"the record needs {scanned.value} bytes, more than there are",
        Stop.MORE: f"the record needs {scanned.value} bytes, more than there are",
        Stop.LONG: f"the record needs {scanned.value} bytes, more than the limit",
        Stop.STATE: f"state must be {STATE_CODES}, got {scanned.value}",
        Stop.RESERVED: "a reserved byte is not 0",
        Stop.SIZE: f"a message of {scanned.value} bytes is too small for its fields and headers",
        Stop.FRAME: f"a message of {scanned.value} bytes goes past the end of its batch",
        Stop.BATCH: f"a batch of {scanned.value} bytes is smaller than its header",
        Stop.COUNT: f"a batch has {scanned.value} messages, which is not the number in its header",
        Stop.FLAGS: f"flags must be 0 or 1, got {scanned.value}",
        Stop.SUM: "wrong checksum",
        Stop.PRODUCER: f"a producer's number {scanned.value} is too large",
    }
    return reasons.get(Stop(scanned.stop), "no message")


class Probe(NamedTuple):
    """Whether a layout fits."""

    reason: str | None
    """Why the layout does not fit; None if it fits."""
    needed: int = 0
    cut: bool = False
    offset: int = -1
    """The offset of the first message, if the layout fits."""


def probe(data: bytes | memoryview, facts: LayoutFacts, known: int, first_offset: int, limit: int) -> Probe:
    """Return whether bytes start with a record of a layout; the arguments are those of `detect`."""
    position = within = 0
    first = -1
    while True:
        scanned = scan(data, facts.code, position, known=known, within=within, limit=limit, most=1)
        if not scanned.rows:
            break
        row = Row(*ROW.unpack_from(scanned.rows))
        first = row.offset if first < 0 else first
        if row.offset < first_offset:
            return Probe(f"offset {row.offset} is below {first_offset}, the first of the file")
        if row.sum != SUM_RIGHT:
            return Probe("wrong checksum")
        if row.batch_sum == SUM_WRONG:
            return Probe("wrong checksum of the batch")
        # The checksum of an empty payload is 0, as in bytes of 0: only a payload tells.
        if row.payload_length or facts.code not in (M45, BATCH24):
            return Probe(None, offset=first)
        position, within = scanned.position, scanned.within
    if scanned.stop == Stop.END:
        if known < 0 or known > len(data):
            return Probe("no message with a checksum", needed=len(data) + 1)
        return Probe("no message with a payload, so that no checksum tells")
    needed = scanned.position + scanned.value if scanned.stop == Stop.MORE else 0
    return Probe(stop_reason(scanned), needed, scanned.stop == Stop.CUT and scanned.value <= LONGEST)


def detect(
    data: bytes | memoryview,
    *,
    known: int | None = None,
    first_offset: int = 0,
    poll: bool = False,
    limit: int = LONGEST,
) -> Detection:
    """Return which layout bytes have that start with a record.

    The first record must fit exactly one layout: its lengths, its states and reserved bytes, its offset and above all
    its checksums. The layout ``previous``, without checksums, is never found.

    Args:
        data: The first bytes of a file, or as many as there are by now.
        known: The length of the whole file; -1 if it is not known. Default: the length of ``data``.
        first_offset: The lowest offset that the first message can have: the number in the file's name.
        poll: Whether the bytes are from a poll response, where ``batch24`` never stands.
        limit: The longest record that is waited for, in bytes.

    >>> from msgid.iggy import Message, encode
    >>> detect(encode(Message.new(b"hello", id=7), "h64")).layout
    'h64'
    >>> detect(b"no message").failures["m45"]
    'the record needs 45 bytes, more than there are'
    """
    known = len(data) if known is None else known
    failures = {"previous": "a layout without checksums is never found, only asked for"}
    fitting: list[str] = []
    needs: list[int] = []
    cut = False
    for layout, facts in LAYOUTS.items():
        if not facts.checksum or (poll and facts.code == BATCH24):
            continue
        tried = probe(data, facts, known, first_offset, limit)
        if tried.reason is None:
            fitting.append(layout)
            continue
        failures[layout] = tried.reason
        cut = cut or tried.cut
        needs += [tried.needed] if tried.needed else []
    if len(fitting) == 1:
        return Detection(fitting[0], failures)
    if fitting:
        also = dict.fromkeys(fitting, "fits as well as another layout")
        return Detection(None, {**failures, **also})
    return Detection(None, failures, min(needs, default=0), cut)


class Credit:
    """How many bytes of long records a search may check, so that its cost is linear in the bytes that it passes.

    Bytes that are not records can claim millions of long records. A record that costs more than the credit is passed.
    """

    def __init__(self, start: int) -> None:
        self.left = start

    def pay(self, cost: int) -> bool:
        """Return whether a record of so many bytes is checked."""
        if cost > self.left:
            return False
        self.left -= cost
        return True


class Search(NamedTuple):
    """The result of `find`."""

    at: int
    """Where the record starts; -1 without a record."""
    code: int = -1
    needed: int = 0
    """How many bytes must be there to know more; 0 if they are there."""


def _fitting(data: bytes | memoryview, lowest: int, highest: int) -> Iterable[int]:
    """Return the positions of 8-byte numbers within a range."""
    count = len(data) - OFFSET_SIZE + 1
    if count <= 0:
        return ()
    try:
        import numpy as np
    except ImportError:
        return (at for at in range(count) if lowest <= int.from_bytes(data[at : at + OFFSET_SIZE], "little") <= highest)
    numbers = np.ndarray(count, "<u8", data, strides=(1,))
    return map(int, np.flatnonzero((numbers >= lowest) & (numbers <= highest)))


def _candidates(
    data: memoryview, start: int, stop: int, codes: Iterable[int], lowest: int, highest: int
) -> Iterator[tuple[int, int]]:
    """Yield the positions from a start to a stop where a record may start, and its layout, in their order."""
    known = [code for code in codes if code in OFFSET_AT]
    for base in range(start, stop, _BLOCK):
        length = min(_BLOCK, stop - base)
        block = data[base : base + length + SPAN]
        fitting = sorted((at - OFFSET_AT[code], code) for at in _fitting(block, lowest, highest) for code in known)
        yield from ((base + position, code) for position, code in fitting if 0 <= position < length)


def find(
    data: memoryview,
    start: int,
    stop: int,
    codes: Iterable[int],
    *,
    known: int,
    limit: int,
    lowest: int,
    credit: Credit,
    base: int = 0,
) -> Search:
    """Return the first record from a start to a stop whose checksum holds.

    Args:
        data: Bytes of a file.
        start: The first place.
        stop: The position after the last one.
        codes: The layouts that the record can have.
        known: Where the file ends, counted from the start of ``data``; -1 if that is not known.
        limit: The longest record in bytes.
        lowest: The lowest offset of the record, 0 if it is not known. Offset 0 is never found, because bytes of 0 are
            frequent.
        credit: The credit of the search.
        base: The position of the first byte in its file. No offset is higher than the lowest plus the size of the file.
    """
    highest = lowest + base + known if lowest and known >= 0 else OFFSET_MAX
    for at, code in _candidates(data, start, stop, codes, max(lowest, 1), highest):
        tried = probe(data[at : at + _HEAD], LAYOUTS[_NAMES[code]], max(known - at, -1), lowest, limit)
        if tried.needed > _HEAD:
            if tried.needed > len(data) - at:
                if tried.needed > credit.left:
                    continue
                return Search(at, code, at + tried.needed)
            if not credit.pay(tried.needed):
                continue
            tried = probe(data[at:], LAYOUTS[_NAMES[code]], max(known - at, -1), lowest, limit)
        if tried.needed:
            return Search(at, code, at + tried.needed)
        if tried.reason is None:
            return Search(at, code)
    return Search(-1)
