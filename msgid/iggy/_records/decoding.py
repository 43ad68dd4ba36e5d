"""Rows of a log in any layout, a part of its bytes at a time, and the messages of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from msgid.errors import InvalidMessage, TruncatedMessage
from msgid.iggy._decryption import ADDED
from msgid.iggy._records.encoding import Batch, own_checksum
from msgid.iggy._records.producers import producer_of
from msgid.iggy._records.rows import ROW, SUM_RIGHT, SUM_WRONG, Row, Scan, Stop
from msgid.iggy._records.scanning import scan
from msgid.iggy._records.searching import candidates
from msgid.iggy._wire import AUTO, H56_CRC, H56_XXH3, H64, LAYOUTS, PREVIOUS, Reader
from msgid.iggy.detect import LONGEST, detect, probe, stop_reason
from msgid.iggy.headers import decode_headers
from msgid.iggy.message import Message, valid_message
from msgid.messages import MessageState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from msgid.iggy.headers import Header, HeaderName

NAMES: Final = list(LAYOUTS)
"""The name of each layout by its number."""

LATER: Final = {H56_CRC: (H56_XXH3, H64), H56_XXH3: (H64,)}
"""The layouts that a server writes into the same file after an upgrade."""
WHOLE: Final = frozenset((H56_CRC, H56_XXH3, H64))
"""The layouts without batches whose checksums cover the lengths; a torn message is found by them."""
_STATES: Final = {int(state): state for state in MessageState}
_NOWHERE: Final = 1 << 62
ENCRYPTED: Final = "; they are as the server wrote them, so perhaps encrypted"
"""The end of the reason of malformed headers under a correct checksum."""
_BATCH_SIZE: Final = 256


def later_codes(code: int, *, upgrade: bool) -> tuple[int, ...]:
    """Return the layouts that records can have after a record of a layout."""
    return (code, *LATER.get(code, ())) if upgrade else (code,)


class Found(NamedTuple):
    """The result of `LogDecoder.decode`."""

    rows: bytes
    place: int
    """Where the next record starts."""
    needed: int
    """How many bytes the next record needs, if it is known; more bytes must be read."""
    error: InvalidMessage | None
    """Why the messages end, whatever follows."""
    after: int = 0
    """Where the record after a torn one starts; 0 for another error."""


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
        self._upgrades = upgrade or layout == AUTO
        self._first_offset = first_offset
        self._poll = poll
        self.within = 0
        """How many bytes of a ``batch24`` batch are still to be read; 0 outside of a batch."""

    @property
    def layout(self) -> str | None:
        """The layout of the last record; None if it is not known yet."""
        return None if self.code is None else NAMES[self.code]

    def decode(self, data: bytes | memoryview, known: int, base: int = 0) -> Found:
        """Return the whole messages of bytes.

        Args:
            data: Bytes from where the last call ended.
            known: Where the file ends, counted from the start of ``data``; -1 if that is not known.
            base: The place of the first byte in its file.
        """
        if self.code is None:
            if not len(data):
                return Found(b"", 0, 0, None)
            detection = detect(data, known=known, first_offset=self._first_offset, poll=self._poll, limit=self.limit)
            if detection.layout is None:
                if detection.needed:
                    return Found(b"", 0, detection.needed, None)
                return Found(b"", 0, 0, detection.error(base))
            self.code = LAYOUTS[detection.layout].code
        rows: list[bytes] = []
        place, accepted = 0, _NOWHERE
        while True:
            strict = accepted if self._upgrades and self.code in WHOLE else -1
            found = scan(data, self.code, place, known=known, within=self.within, limit=self.limit, strict=strict)
            rows.append(found.rows)
            place, self.within = found.place, found.within
            if found.stop != Stop.SUM:
                break
            needed, after = self._upgrade(data, place, known), 0
            if not needed and not self._poll:  # no file of a killed server
                needed, after = self._after_torn(data, place, known)
            if needed:
                return Found(b"".join(rows), place, needed, None)
            if after:
                reason = f"a torn message of {after - place} bytes before the next one"
                return Found(b"".join(rows), place, 0, InvalidMessage(reason, base + place), after)
            accepted = place
        if self.within:
            self.within -= place
        whole = b"".join(rows)
        if found.stop == Stop.END:
            return Found(whole, place, 0, None)
        if found.stop == Stop.MORE:
            return Found(whole, place, found.value, None)
        return Found(whole, place, 0, _error(found, NAMES[self.code], known, base))

    def _upgrade(self, data: bytes | memoryview, place: int, known: int) -> int:
        """Go on in a later layout if its checksum holds; return how many bytes are needed to know that."""
        assert self.code is not None
        for code in LATER.get(self.code, ()):
            found = scan(data, code, place, known=known, limit=self.limit, most=1)
            if found.rows and Row(*ROW.unpack_from(found.rows)).sum == SUM_RIGHT:
                self.code = code
                return 0
            if found.stop == Stop.MORE:
                return found.value
        return 0

    def _after_torn(self, data: bytes | memoryview, place: int, known: int) -> tuple[int, int]:
        """Return where the next record starts if a message with a wrong checksum is torn, or how many bytes tell that.

        A server that was killed while it wrote leaves the first bytes of a message, and appends others. A message is
        torn if no record follows at its end and one starts within it. Else its bytes are wrong where they are.
        """
        assert self.code is not None
        codes = later_codes(self.code, upgrade=True)
        view = memoryview(data)
        end = scan(view, self.code, place, known=known, limit=self.limit, most=1).place
        if end in (place, known):
            return 0, 0
        needed, follows = self._starts(view, end, codes, known)
        if needed or follows:
            return end - place + needed if needed else 0, 0
        lowest = max(1, self._first_offset)
        for at, code in candidates(lambda at, length: view[at : at + length], place + 1, end, codes, lowest):
            needed, follows = self._starts(view, at, (code,), known)
            if needed:
                return at - place + needed, 0
            if follows:
                return 0, at
        return 0, 0

    def _starts(self, data: memoryview, place: int, codes: tuple[int, ...], known: int) -> tuple[int, bool]:
        """Return whether a record with a correct checksum starts at a place, or how many bytes tell that."""
        needed = 0
        for code in codes:
            found = probe(data[place:], LAYOUTS[NAMES[code]], max(known - place, -1), 0, self.limit)
            if found.reason is None:
                return 0, True
            needed = max(needed, found.needed)
        return needed, False


def _error(found: Scan, layout: str, known: int, base: int) -> InvalidMessage:
    record = "batch" if LAYOUTS[layout].batch and not found.within else "message"
    if found.stop == Stop.CUT:
        left = known - found.place
        return TruncatedMessage(f"half a {record} of {left} bytes, which needs {found.value}", base + found.place)
    if found.stop == Stop.LONG:
        return InvalidMessage(f"a {record} of {found.value} bytes, more than the limit", base + found.place)
    return InvalidMessage(stop_reason(found), base + found.at)


def without_rows_from(found: Found, place: int) -> Found:
    """Return a result without the records that start at a place or after it, and without their error."""
    rows = found.rows
    while rows:
        row = Row._make(ROW.unpack_from(rows, len(rows) - ROW.size))
        # A message without the place of its batch goes on with a batch that started before.
        batched = LAYOUTS[NAMES[row.layout]].batch
        if (row.batch if batched else row.position) < place or (batched and row.batch < 0):
            break
        rows = rows[: -ROW.size]
    if rows is found.rows and (found.error is None or found.place < place):
        return found
    return Found(rows, found.place, 0, None if found.place >= place else found.error)


def headers_of_row(data: bytes | memoryview, row: Row, base: int = 0) -> dict[HeaderName, Header]:
    """Return the user headers of a message, or raise InvalidMessage if they are malformed."""
    if not row.headers_length:
        return {}
    reader = Reader(data, row.headers, row.headers + row.headers_length, base)
    try:
        return decode_headers(reader, typed=row.layout >= H64)
    except InvalidMessage as error:  # its length is known, so that more bytes do not help
        within = f"within headers of {row.headers_length} bytes " if isinstance(error, TruncatedMessage) else ""
        # Under a correct checksum they are as the server wrote them.
        hint = ENCRYPTED if row.layout >= H64 and row.sum == SUM_RIGHT and row.headers_length >= ADDED else ""
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
        if row.layout > H64 and row.batch != at:
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
        row.offset,
        _STATES[row.state] if row.state else None,
        row.timestamp,
        int.from_bytes(row.id, "little"),
        None if row.layout == PREVIOUS else row.checksum,
        headers_of_row(data, row, base),
        bytes(data[row.payload : row.payload + row.payload_length]),
        row.origin if row.layout >= H56_CRC else None,
        NAMES[row.layout],
        batch,
    )


def _decrypted(
    data: bytes | memoryview, row: Row, batch: Batch | None, base: int, opened: Callable[[bytes, int], bytes]
) -> Message:
    """Return a message that a server encrypted, with the checksum of its decrypted content."""
    if row.sum == SUM_WRONG:
        raise InvalidMessage("cannot decrypt a message with a wrong checksum", base + row.position)
    payload = opened(bytes(data[row.payload : row.payload + row.payload_length]), base + row.payload)
    block = bytes(data[row.headers : row.headers + row.headers_length])
    if row.layout >= H64 and block:
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
