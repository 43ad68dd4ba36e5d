"""Read and write consecutive messages, as in segment files, in any layout; files of any size use constant memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

from msgid.errors import InvalidMessage
from msgid.iggy._decryption import opener
from msgid.iggy.message import Message
from msgid.iggy.records.decoding import CHUNK, LogDecoder, LogReader, messages_of
from msgid.iggy.records.encoding import batches
from msgid.iggy.records.searching import LONGEST, detect
from msgid.iggy.wire import AUTO, LAYOUTS, Layout, name_of
from msgid.shared.validate import integer, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_LIMIT_MAX: Final = 1 << 30


def encode(message: Message, layout: Layout) -> bytes:
    """Encode a message; in a layout with batches, as a batch of one message.

    The checksum is computed, with one exception: a message of this layout with a wrong checksum keeps it, so that
    encoding does not hide damage. A message without ``origin_timestamp`` is written with its ``timestamp``.

    Args:
        message: Message with a state for ``m45`` and ``batch24``; other layouts do not contain the state.
        layout: Layout of the server that reads the bytes, one of `LAYOUTS`.

    Returns:
        The bytes of the message, with its headers in their given order.

    Raises:
        ValueError: if the state is missing, or the layout does not allow the key of a header.

    >>> len(encode(Message.new(b"", id=1), "h64")), len(encode(Message.new(b"", id=1), "batch256"))
    (64, 304)
    """
    return encode_log([message], layout)


def decode(data: bytes | memoryview, layout: Layout = "auto") -> Message:
    """Decode exactly one message.

    Args:
        data: Bytes of the message; in a layout with batches, a batch of one message.
        layout: Name of a layout. Default: found by checksum.

    Returns:
        The message. If ``layout`` names the layout, a wrong checksum is not an error: `Message.checksum_ok` is False.

    Raises:
        TruncatedMessage: if the bytes end before the message is complete.
        InvalidMessage: if the bytes are malformed or continue after the message; with the position of the byte.

    >>> decode(encode(Message.new(b"hello", id=7), "h64")).payload
    b'hello'
    """
    messages = decode_log(data, layout)
    if len(messages) != 1:
        raise InvalidMessage(f"must be one message, got {len(messages)}", 0)
    return messages[0]


def encode_log(messages: Iterable[Message], layout: Layout, *, partition: int = 0) -> bytes:
    """Encode consecutive messages, as in the ``.log`` file of a segment.

    A layout with batches gets batches of at most 1,000 messages. All messages of a ``batch256`` batch have the same
    server time. Messages that were read from one batch are written as that batch.

    Args:
        messages: Messages as for `encode`.
        layout: Layout as for `encode`.
        partition: Number of the partition, which ``batch256`` writes for messages without a batch.

    >>> len(encode_log([Message.new(b"a", id=1), Message.new(b"b", id=2)], "h64"))
    130
    """
    if isinstance(messages, str | bytes) or not hasattr(messages, "__iter__"):
        raise TypeError(f"messages must be a list of messages, got {quote(messages)}")
    return b"".join(batches(map(_checked, messages), name_of(layout), partition))


def _checked(message: Message) -> Message:
    if not isinstance(message, Message):
        raise TypeError(f"message must be a Message, got {quote(message)}")
    return message


def decode_log(
    data: bytes | memoryview, layout: Layout = "auto", *, first_offset: int = 0, decrypt: bytes | str | None = None
) -> list[Message]:
    """Decode consecutive messages to the end of the bytes.

    Args:
        data: Bytes of the ``.log`` file of a segment.
        layout: Name of a layout. Default: detected by the checksum of the first record. A later layout of an upgraded
            server is detected within the file.
        first_offset: Number in the file's name; the first message has this offset or a later one.
        decrypt: Key of a server that encrypts by AES-256-GCM, as releases up to 0.9 do: 32 bytes, or their base64
            text. Messages then have the checksum of their decrypted content. Default: nothing is decrypted.

    Raises:
        ValueError: if ``decrypt`` has another form.
        TruncatedMessage: if the last record is cut off; its ``offset`` is the position of the record.
        InvalidMessage: if the bytes are malformed or cannot be decrypted, or no layout matches.

    >>> log = encode_log([Message.new(b"a", id=1), Message.new(b"b", id=2)], "h64")
    >>> [message.payload for message in decode_log(log)]
    [b'a', b'b']
    """
    _check_bytes(data)
    opened = opener(decrypt)
    decoder = LogDecoder(name_of(layout, auto=True), first_offset=first_offset, limit=len(data))
    decoded = decoder.decode(data, len(data))
    messages = [_whole(message) for message in messages_of(data, decoded.rows, 0, opened)]
    if decoded.error is not None:
        raise _hinted(decoded.error, data, name_of(layout, auto=True))
    return messages


def _hinted(error: InvalidMessage, data: bytes | memoryview, layout: str) -> InvalidMessage:
    """Return the error of bytes in a layout that the caller has named; if they have another, it says so."""
    try:
        detected = layout if layout == AUTO else detect(data).layout
    except ImportError:  # no XXH3
        detected = None
    if detected is None or detected == layout:
        return error
    return type(error)(f"{error.reason}; the bytes have the layout {detected}: pass layout={detected!r}", error.offset)


def check_file(file: object) -> None:
    """Raise TypeError for a path in place of an open file."""
    if not hasattr(file, "read"):
        raise TypeError(f"file must be a file opened for reading bytes, got {quote(file)}")


def _check_bytes(data: object) -> None:
    try:
        memoryview(data)  # type: ignore[arg-type]  # checked here
    except TypeError:
        raise TypeError(f"data must be bytes, got {quote(data)}") from None


def _whole(message: Message | InvalidMessage) -> Message:
    if isinstance(message, InvalidMessage):
        raise message
    return message


def read_log(
    file: BinaryIO,
    layout: Layout = "auto",
    *,
    chunk: int = CHUNK,
    first_offset: int = 0,
    length: int | None = None,
    limit: int = LONGEST,
    malformed: Callable[[InvalidMessage], object] | None = None,
    decrypt: bytes | str | None = None,
) -> Iterator[Message]:
    """Read the messages of a segment file of any size, one after the other.

    Args:
        file: File opened for reading bytes.
        layout: Layout as for `decode_log`.
        chunk: Bytes per read; a longer record needs more memory.
        first_offset: First offset as for `decode_log`.
        length: Number of bytes to read. Default: to the end of the file.
        limit: Maximum length of a record in bytes; a length field above it is an error.
        malformed: Function that receives the error of a message with malformed headers, of one that cannot be
            decrypted, and of torn bytes. Reading continues at the next record whose checksum is correct. Default: the
            error is raised.
        decrypt: Key as for `decode_log`.

    Yields:
        Each message.

    Raises:
        TypeError: if ``file`` is not an open file.
        ValueError: if ``decrypt`` has another form.
        TruncatedMessage: if the last record is cut off, after all complete records; its ``offset`` is the position of
            the record. Only without ``malformed``, as for `InvalidMessage`.
        InvalidMessage: if the bytes are malformed, or no layout matches. Its ``offset`` counts from the file's initial
            position.

    >>> import io
    >>> from msgid import TruncatedMessage
    >>> file = io.BytesIO(encode_log([Message.new(b"a", id=1), Message.new(b"b", id=2)], "h64")[:-1])
    >>> try:
    ...     for message in read_log(file):
    ...         print(message.payload)
    ... except TruncatedMessage as error:
    ...     print(error.offset)
    b'a'
    65
    """
    opened = opener(decrypt)
    reported: InvalidMessage | None = None
    reader = reader_of(file, layout, chunk=chunk, first_offset=first_offset, length=length, limit=limit)
    for part in reader.chunks(raises=malformed is None):
        for message in messages_of(part.data, part.rows, part.base, opened):
            if isinstance(message, Message):
                yield message
            elif malformed is None:
                raise message
            else:
                malformed(message)
        if part.error is not None and malformed is not None and part.error is not reported:
            reported = part.error
            malformed(part.error)


def reader_of(
    file: BinaryIO,
    layout: Layout,
    *,
    chunk: int,
    first_offset: int,
    length: int | None,
    limit: int,
    base: int = 0,
    upgrade: bool = False,
) -> LogReader:
    """Return the reader of a file; TypeError or ValueError for a wrong argument."""
    check_file(file)
    decoder = LogDecoder(
        name_of(layout, auto=True), first_offset=first_offset, limit=checked_limit(limit), upgrade=upgrade
    )
    left = left_in(file) if length is None else length
    return LogReader(file, decoder, chunk=chunk, length=left, base=base, first_offset=first_offset)


def checked_limit(limit: int) -> int:
    """Return the limit of a record, or raise TypeError or ValueError."""
    return integer("limit", limit, max(facts.least for facts in LAYOUTS.values()), _LIMIT_MAX)


def left_in(file: BinaryIO) -> int | None:
    """Return the number of remaining bytes of a file; None if the file is not seekable."""
    try:
        here = file.tell()
        end = file.seek(0, 2)
        file.seek(here)
    except (AttributeError, OSError, ValueError):
        return None
    return max(0, end - here)
