"""Which layout bytes have: told by the checksums of the first record, never guessed."""

from __future__ import annotations

from typing import Final, NamedTuple

from msgid.errors import InvalidMessage, TruncatedMessage
from msgid.iggy._records.rows import ROW, SUM_RIGHT, SUM_WRONG, Row, Scan, Stop
from msgid.iggy._records.scanning import scan
from msgid.iggy._wire import BATCH24, LAYOUTS, M45, LayoutFacts
from msgid.messages import STATE_CODES

LONGEST: Final = 1 << 27
"""The longest record that readers wait for. Servers take payloads of 64 MB at most."""


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
            base: The place of the first byte in its file.
        """
        reasons = "; ".join(f"{layout}: {reason}" for layout, reason in self.failures.items())
        kind = TruncatedMessage if self.cut else InvalidMessage
        return kind(f"cannot tell the layout: {reasons}", base)


def stop_reason(found: Scan) -> str:
    """Return why a scan stopped, in words."""
    reasons = {
        Stop.CUT: f"the record needs {found.value} bytes, more than there are",
        Stop.MORE: f"the record needs {found.value} bytes, more than there are",
        Stop.LONG: f"the record needs {found.value} bytes, more than the limit",
        Stop.STATE: f"state must be {STATE_CODES}, got {found.value}",
        Stop.RESERVED: "a reserved byte is not 0",
        Stop.SIZE: f"a message of {found.value} bytes is too small for its fields and headers",
        Stop.FRAME: f"a message of {found.value} bytes goes past the end of its batch",
        Stop.BATCH: f"a batch of {found.value} bytes is smaller than its header",
        Stop.COUNT: f"a batch has {found.value} messages, which is not the number in its header",
        Stop.FLAGS: f"flags must be 0 or 1, got {found.value}",
        Stop.SUM: "wrong checksum",
        Stop.PRODUCER: f"a producer's number {found.value} is too large",
    }
    return reasons.get(Stop(found.stop), "no message")


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
    place = within = 0
    first = -1
    while True:
        found = scan(data, facts.code, place, known=known, within=within, limit=limit, most=1)
        if not found.rows:
            break
        row = Row(*ROW.unpack_from(found.rows))
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
        place, within = found.place, found.within
    if found.stop == Stop.END:
        if known < 0 or known > len(data):
            return Probe("no message with a checksum", needed=len(data) + 1)
        return Probe("no message with a payload, so that no checksum tells")
    needed = found.place + found.value if found.stop == Stop.MORE else 0
    return Probe(stop_reason(found), needed, found.stop == Stop.CUT and found.value <= LONGEST)


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
    cut, missing = False, None
    for layout, facts in LAYOUTS.items():
        if not facts.checksum or (poll and facts.code == BATCH24):
            continue
        try:
            tried = probe(data, facts, known, first_offset, limit)
        except ImportError as error:  # no XXH3: it does not matter if another layout fits
            missing = error
            continue
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
    if missing is not None:
        raise missing
    return Detection(None, failures, min(needs, default=0), cut)
