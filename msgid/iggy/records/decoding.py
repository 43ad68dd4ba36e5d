"""Rows of a log in any layout, a part of its bytes at a time, and the messages of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from msgid.errors import InvalidMessage, TruncatedMessage
from msgid.iggy._decryption import ADDED
from msgid.iggy.headers import decode_headers
from msgid.iggy.message import Batch, Message, own_checksum, valid_message
from msgid.iggy.records.producers import producer_of
from msgid.iggy.records.rows import ROW, SUM_RIGHT, SUM_WRONG, Row, Scan, Stop
from msgid.iggy.records.scanning import scan
from msgid.iggy.records.searching import LONGEST, OFFSET_AT, SPAN, Credit, detect, find, probe, stop_reason
from msgid.iggy.wire import AUTO, BATCH256, HAS_ORIGIN, LATER, LAYOUTS, PREVIOUS, TYPED_KEYS, WHOLE, Reader
from msgid.messages import MessageState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from msgid.iggy.headers import Header, HeaderName

NAMES: Final = list(LAYOUTS)
"""The name of each layout by its number."""
_STATES: Final = {int(state): state for state in MessageState}
_NOWHERE: Final = 1 << 62
ENCRYPTED: Final = "; they are as the server wrote them, so perhaps encrypted"
"""The end of the reason of malformed headers under a correct checksum."""
_BATCH_SIZE: Final = 256
CHUNK: Final = 1 << 20
"""Bytes per read."""
_CREDIT: Final = 4
"""How many bytes of long records a search checks for each byte that it passes."""
_FIRST_CREDIT: Final = 1 << 26
_TORN_MAX: Final = 1 << 24
"""How many torn bytes are reported at once."""


def later_codes(code: int, *, upgrade: bool) -> tuple[int, ...]:
    """Return the layouts that records can have after a record of a layout."""
    return (code, *LATER.get(code, ())) if upgrade else (code,)


class DecodedRows(NamedTuple):
    """The result of `LogDecoder.decode`."""

    rows: bytes
    position: int
    """Where the next record starts."""
    needed: int
    """How many bytes the next record needs, if it is known; more bytes must be read."""
    error: InvalidMessage | None
    """Why the messages end, whatever follows."""


class LogDecoder:
    """Find the messages of a log, a part of its bytes at a time.

    Args:
        layout: A layout's name, or ``auto``.
        first_offset: The lowest offset of the first message, if the layout is to be found.
        limit: The longest record that is waited for, in bytes.
        poll: Whether the bytes are a poll response's.
        upgrade: Whether a later layout may follow if the layout is named, as with ``auto``.
    """

    def __init__(
        self,
        layout: str,
        *,
        first_offset: int = 0,
        limit: int = LONGEST,
        poll: bool = False,
        upgrade: bool = False,
    ) -> None:
        self.code = None if layout == AUTO else LAYOUTS[layout].code
        self.limit = limit
        self.upgrades = upgrade or layout == AUTO
        self._first_offset = first_offset
        self._poll = poll
        self.within = 0
        """How many bytes of a ``batch24`` batch are still to be read; 0 outside of a batch."""

    def go_on(self, code: int | None) -> None:
        """Start anew behind torn bytes, with a record of a layout."""
        self.code, self.within = code, 0

    def decode(self, data: bytes | memoryview, known: int, base: int = 0) -> DecodedRows:
        """Return the whole messages of bytes.

        Args:
            data: Bytes from where the last call ended.
            known: Where the file ends, counted from the start of ``data``; -1 if that is not known.
            base: The position of the first byte in its file.
        """
        if self.code is None:
            if not len(data):
                return DecodedRows(b"", 0, 0, None)
            detection = detect(data, known=known, first_offset=self._first_offset, poll=self._poll, limit=self.limit)
            if detection.layout is None:
                if detection.needed:
                    return DecodedRows(b"", 0, detection.needed, None)
                return DecodedRows(b"", 0, 0, detection.error(base))
            self.code = LAYOUTS[detection.layout].code
        rows: list[bytes] = []
        position, accepted = 0, _NOWHERE
        while True:
            strict = accepted if self.code in WHOLE and (self.upgrades or not self._poll) else -1
            scanned = scan(data, self.code, position, known=known, within=self.within, limit=self.limit, strict=strict)
            rows.append(scanned.rows)
            position, self.within = scanned.position, scanned.within
            if scanned.stop != Stop.SUM:
                break
            needed, next_position = self._upgrade(data, position, known), 0
            if not needed and not self._poll:  # no file of a killed server
                needed, next_position = self._after_torn(data, position, known)
            if needed:
                return DecodedRows(b"".join(rows), position, needed, None)
            if next_position:
                reason = f"a torn message of {next_position - position} bytes before the next one"
                return DecodedRows(b"".join(rows), position, 0, InvalidMessage(reason, base + position))
            accepted = position
        if self.within:
            self.within -= position
        whole = b"".join(rows)
        if scanned.stop == Stop.END:
            return DecodedRows(whole, position, 0, None)
        if scanned.stop == Stop.MORE:
            return DecodedRows(whole, position, scanned.value, None)
        return DecodedRows(whole, position, 0, _error(scanned, NAMES[self.code], known, base))

    def _upgrade(self, data: bytes | memoryview, position: int, known: int) -> int:
        """Go on in a later layout if its checksum holds; return how many bytes are needed to know that."""
        assert self.code is not None
        for code in later_codes(self.code, upgrade=self.upgrades)[1:]:
            scanned = scan(data, code, position, known=known, limit=self.limit, most=1)
            if scanned.rows and Row(*ROW.unpack_from(scanned.rows)).sum == SUM_RIGHT:
                self.code = code
                return 0
            if scanned.stop == Stop.MORE:
                return scanned.value
        return 0

    def _after_torn(self, data: bytes | memoryview, position: int, known: int) -> tuple[int, int]:
        """Return where the next record starts if a message with a wrong checksum is torn, or how many bytes tell that.

        A server that was killed while it wrote leaves the first bytes of a message, and appends others. A message is
        torn if no record follows at its end and one starts within it. Else its bytes are wrong where they are.
        """
        assert self.code is not None
        codes = later_codes(self.code, upgrade=self.upgrades)
        view = memoryview(data)
        end = scan(view, self.code, position, known=known, limit=self.limit, most=1).position
        if end in (position, known):
            return 0, 0
        needed, follows = self._starts(view, end, codes, known)
        if needed or follows:
            return end - position + needed if needed else 0, 0
        credit = Credit(_CREDIT * (end - position))
        search = find(
            view, position + 1, end, codes, known=known, limit=self.limit, lowest=self._first_offset, credit=credit
        )
        return (search.needed - position, 0) if search.needed else (0, max(search.at, 0))

    def _starts(self, data: memoryview, position: int, codes: tuple[int, ...], known: int) -> tuple[int, bool]:
        """Return whether a record with a correct checksum starts at a position, or how many bytes tell that."""
        needed = 0
        for code in codes:
            probed = probe(data[position:], LAYOUTS[NAMES[code]], max(known - position, -1), 0, self.limit)
            if probed.reason is None:
                return 0, True
            needed = max(needed, probed.needed)
        return needed, False


class Chunk(NamedTuple):
    """Some messages of a log, or torn bytes."""

    data: bytes | memoryview
    base: int
    """The position of the first byte in its file."""
    rows: bytes
    """The rows of the messages in ``data``."""
    end: int
    """Where the messages end in ``data``."""
    error: InvalidMessage | None = None
    """Why all of ``data`` is torn; None for messages."""


class LogReader:
    """Read a log a chunk at a time, and go on behind torn bytes at the next record whose checksum holds.

    Args:
        file: A file opened for reading bytes.
        decoder: A new decoder.
        chunk: Bytes per read; more bytes are held only for a longer record.
        length: How many bytes are read; None up to the end of the file, if the file is not seekable.
        base: The position of the first byte in its file.
        first_offset: The lowest offset of the log; 0 if it is not known.
    """

    def __init__(
        self,
        file: BinaryIO,
        decoder: LogDecoder,
        *,
        chunk: int = CHUNK,
        length: int | None = None,
        base: int = 0,
        first_offset: int = 0,
    ) -> None:
        self._file = file
        self._decoder = decoder
        self._chunk = chunk
        self._left = length
        self._base = base
        self._first_offset = first_offset
        self._buffered = b""
        self._ended = length == 0
        self._credit = Credit(_FIRST_CREDIT)

    def chunks(self, *, raises: bool = False) -> Iterator[Chunk]:
        """Yield all bytes of the log, in their order; or raise the first error."""
        wanted = self._chunk
        while True:
            self._fill(wanted)
            decoded = self._decoder.decode(self._buffered, self._known, self._base)
            if decoded.rows:
                yield Chunk(self._buffered, self._base, decoded.rows, decoded.position)
            self._drop(decoded.position)
            if decoded.error is not None and raises:
                raise decoded.error
            if decoded.error is not None:
                yield from self._torn(decoded.error)
            elif self._ended and not decoded.needed:
                return
            wanted = max(len(self._buffered) + self._chunk, decoded.needed)

    def _torn(self, error: InvalidMessage) -> Iterator[Chunk]:
        """Yield torn bytes, and stop at the next record or at the end of the log."""
        code = self._decoder.code
        codes = (*OFFSET_AT,) if code is None else later_codes(code, upgrade=self._decoder.upgrades)
        torn: list[bytes] = []
        start, passed = 1, 0
        while True:
            stop = len(self._buffered) if self._ended else max(len(self._buffered) - SPAN, start)
            search = find(
                memoryview(self._buffered), start, stop, codes, known=self._known, limit=self._decoder.limit,
                lowest=self._first_offset, credit=self._credit, base=self._base,
            )  # fmt: skip
            if search.needed:
                start = search.at
                self._fill(search.needed)
                continue
            position = stop if search.at < 0 else search.at
            torn.append(self._buffered[:position])
            passed += position
            self._drop(position)
            self._credit.left += _CREDIT * position
            is_last = search.at >= 0 or (self._ended and not self._buffered)
            if passed >= _TORN_MAX or is_last:
                yield from _pieces(b"".join(torn), self._base - passed, error)
                torn, passed = [], 0
            if is_last:
                self._decoder.go_on(code if search.at < 0 else search.code)
                return
            start = 0
            self._fill(len(self._buffered) + self._chunk)

    @property
    def _known(self) -> int:
        """Where the log ends, counted from the first byte that is held; -1 if that is not known."""
        if self._ended:
            return len(self._buffered)
        return -1 if self._left is None else len(self._buffered) + self._left

    def _fill(self, wanted: int) -> None:
        """Hold so many bytes if the log has them."""
        while len(self._buffered) < wanted and not self._ended:
            before, size = len(self._buffered), wanted - len(self._buffered)
            # The bytes that are read get no name, so a long record is in memory once.
            self._buffered += self._file.read(size if self._left is None else min(size, self._left))
            more = len(self._buffered) - before
            self._left = None if self._left is None else self._left - more
            self._ended = not more or self._left == 0

    def _drop(self, length: int) -> None:
        self._buffered = self._buffered[length:]
        self._base += length


def _pieces(torn: bytes, base: int, error: InvalidMessage) -> Iterator[Chunk]:
    for position in range(0, len(torn), _TORN_MAX):
        piece = torn[position : position + _TORN_MAX]
        yield Chunk(piece, base + position, b"", 0, error)


def _error(scanned: Scan, layout: str, known: int, base: int) -> InvalidMessage:
    record = "batch" if LAYOUTS[layout].batch and not scanned.within else "message"
    if scanned.stop == Stop.CUT:
        left = known - scanned.position
        return TruncatedMessage(
            f"half a {record} of {left} bytes, which needs {scanned.value}", base + scanned.position
        )
    if scanned.stop == Stop.LONG:
        return InvalidMessage(f"a {record} of {scanned.value} bytes, more than the limit", base + scanned.position)
    return InvalidMessage(stop_reason(scanned), base + scanned.at)


def headers_of_row(data: bytes | memoryview, row: Row, base: int = 0) -> dict[HeaderName, Header]:
    """Return the user headers of a message, or raise InvalidMessage if they are malformed."""
    if not row.headers_length:
        return {}
    reader = Reader(data, row.headers, row.headers + row.headers_length, base)
    try:
        return decode_headers(reader, typed=TYPED_KEYS[row.layout])
    except InvalidMessage as error:  # its length is known, so that more bytes do not help
        within = f"within headers of {row.headers_length} bytes " if isinstance(error, TruncatedMessage) else ""
        # Under a correct checksum they are as the server wrote them.
        hint = ENCRYPTED if TYPED_KEYS[row.layout] and row.sum == SUM_RIGHT and row.headers_length >= ADDED else ""
        raise InvalidMessage(f"{within}{error.reason}{hint}", error.offset) from None


def messages_of(
    data: bytes | memoryview,
    rows: bytes,
    base: int = 0,
    opened: Callable[[bytes, int], bytes] | None = None,
) -> Iterator[Message | InvalidMessage]:
    """Yield the message of each row, or the error of its headers or of its decryption."""
    at, batch = -1, None
    for row in map(Row._make, ROW.iter_unpack(rows)):
        if row.layout == BATCH256 and row.batch != at:
            at, batch = row.batch, _batch_of_row(data, row)
        try:
            if opened is None:
                yield _message_of_row(data, row, batch, base)
            else:
                yield _decrypted(data, row, batch, base, opened)
        except InvalidMessage as error:
            yield error


def _message_of_row(data: bytes | memoryview, row: Row, batch: Batch | None, base: int) -> Message:
    return valid_message(
        offset=row.offset,
        state=_STATES[row.state] if row.state else None,
        timestamp=row.timestamp,
        id=int.from_bytes(row.id, "little"),
        checksum=None if row.layout == PREVIOUS else row.checksum,
        headers=headers_of_row(data, row, base),
        payload=bytes(data[row.payload : row.payload + row.payload_length]),
        origin_timestamp=row.origin if HAS_ORIGIN[row.layout] else None,
        layout=NAMES[row.layout],
        batch=batch,
    )


def _decrypted(
    data: bytes | memoryview, row: Row, batch: Batch | None, base: int, opened: Callable[[bytes, int], bytes]
) -> Message:
    """Return a message that a server encrypted, with the checksum of its decrypted content."""
    if row.sum == SUM_WRONG:
        raise InvalidMessage("cannot decrypt a message with a wrong checksum", base + row.position)
    payload = opened(bytes(data[row.payload : row.payload + row.payload_length]), base + row.payload)
    block = bytes(data[row.headers : row.headers + row.headers_length])
    if TYPED_KEYS[row.layout] and block:
        block = opened(block, base + row.headers)
    headers = headers_of_row(block, row._replace(headers=0, headers_length=len(block)), base + row.headers)
    message = _message_of_row(data, row._replace(headers_length=0), batch, base)
    message = replace(message, payload=payload, headers=headers)
    return replace(message, checksum=own_checksum(message, message.layout))


def _batch_of_row(data: bytes | memoryview, row: Row) -> Batch:
    header = bytes(data[row.batch : row.batch + _BATCH_SIZE])
    partition, offset, time, origin, checksum = (
        int.from_bytes(header[at : at + 8], "little") for at in (0, 8, 16, 24, 40)
    )
    return Batch(partition, offset, time, origin, checksum, row.batch_sum == SUM_RIGHT, producer_of(header))
