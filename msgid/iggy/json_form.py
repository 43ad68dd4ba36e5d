"""Iggy's JSON form of a message: states and kinds in snake_case, standard base64, the ID as a number.

The ID has up to 39 digits, more than a double or a decimal(38) holds, so it is never converted to either type.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import fields
from typing import Any, Final

from msgid._validate import UINT32_MAX, UINT64_MAX, UINT128_MAX, in_range, is_utf8, quote
from msgid.errors import InvalidMessage
from msgid.iggy._wire import HEADER_KEY_MAX, LAYOUTS
from msgid.iggy.headers import NAMES, Header, checked
from msgid.iggy.message import Message, valid_message
from msgid.messages import MessageState

_FIELDS: Final = {field.name for field in fields(Message)} - {"batch"}


def to_json(message: Message) -> str:
    """Encode a message as JSON; a missing state or checksum is left out.

    >>> print(to_json(Message.new(b"hello", id=7, headers={"n": True}, layout="m45")))
    {"offset": 0, "state": "available", "timestamp": 0, "id": 7, "checksum": 907060870, "headers": {"n": \
{"kind": "bool", "value": "AQ=="}}, "payload": "aGVsbG8="}
    """
    return json.dumps(to_value(message), ensure_ascii=False)


def to_value(message: Message) -> dict[str, Any]:
    """Return the content of `to_json` as dicts, texts and ints."""
    value: dict[str, Any] = {"offset": message.offset}
    if message.state is not None:
        value["state"] = str(message.state)
    value |= {"timestamp": message.timestamp, "id": message.id}
    if message.checksum is not None:
        value["checksum"] = message.checksum
    value["headers"] = {
        str(key): {"kind": str(kind), "value": base64.b64encode(raw).decode()}
        for key, (kind, raw) in message.headers.items()
    } or None
    value["payload"] = base64.b64encode(message.payload).decode()
    if message.origin_timestamp is not None:
        value |= {"origin_timestamp": message.origin_timestamp, "layout": message.layout}
    return value


def from_json(text: str | bytes) -> Message:
    """Decode a message from JSON.

    Args:
        text: One JSON object with both state and checksum, or with neither.

    Raises:
        InvalidMessage: if the text is not valid JSON, with the position of the invalid character; or if the message is
            malformed.

    >>> from_json('{"offset":0,"timestamp":1,"id":340282366920938463463374607431768211455,"payload":"aGk="}').id_text
    '01FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF'
    """
    return from_value(_loaded(text))


def messages_from_json(text: str | bytes) -> list[Message]:
    """Decode all messages of a JSON text: one message, an array, or a server's response to a poll.

    Args:
        text: A message, an array of messages, or an object with an array ``messages``; its other fields are ignored.

    Raises:
        InvalidMessage: if the text is not valid JSON, or a message is malformed.

    >>> one = '{"offset":0,"timestamp":1,"id":7,"payload":"aGk="}'
    >>> len(messages_from_json(one)), len(messages_from_json(f'{{"messages": [{one}, {one}]}}'))
    (1, 2)
    """
    value = _loaded(text)
    if isinstance(value, dict) and "messages" in value:
        value = value["messages"]
        if not isinstance(value, list):
            raise InvalidMessage(f"messages must be an array, got {quote(value)}")
    return [from_value(held) for held in value] if isinstance(value, list) else [from_value(value)]


def _loaded(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidMessage(f"cannot decode {quote(text)} as JSON: {error.msg}", error.pos) from None
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InvalidMessage(f"cannot decode {quote(text)} as JSON: {error}") from None


def from_value(value: Any) -> Message:
    """Create a message from a decoded JSON value."""
    if not isinstance(value, dict):
        raise InvalidMessage(f"a message must be a JSON object, got {quote(value)}")
    unknown = set(value) - _FIELDS
    if unknown:
        raise InvalidMessage(f"unknown field {quote(min(unknown))} in a message")
    state, checksum, layout = value.get("state"), value.get("checksum"), value.get("layout")
    if layout is not None and not (isinstance(layout, str) and layout in LAYOUTS and LAYOUTS[layout].has_origin):
        raise InvalidMessage(f"layout must be one with the producer's time, got {quote(layout)}")
    if (state is None) != (checksum is None) if layout is None else state is not None or checksum is None:
        raise InvalidMessage("a message must have both state and checksum, or neither")
    headers = value.get("headers")
    if headers is not None and not isinstance(headers, dict):
        raise InvalidMessage(f"headers must be a JSON object, got {quote(headers)}")
    return valid_message(
        _number(value, "offset", UINT64_MAX),
        None if state is None else MessageState.of(state if isinstance(state, str) else str(state)),
        _number(value, "timestamp", UINT64_MAX),
        _number(value, "id", UINT128_MAX),
        None if checksum is None else _number(value, "checksum", UINT32_MAX if layout is None else UINT64_MAX),
        {key: _header(key, header) for key, header in (headers or {}).items()},
        _binary(value.get("payload"), "payload"),
        None if layout is None else _number(value, "origin_timestamp", UINT64_MAX),
        layout or ("previous" if state is None else "m45"),
    )


def _number(value: dict[str, Any], name: str, most: int) -> int:
    number = value.get(name)
    if not in_range(number, 0, most):
        raise InvalidMessage(f"{name} must be an integer of 0 to {most}, got {quote(number)}")
    return number


def _binary(text: object, name: str) -> bytes:
    if not isinstance(text, str):
        raise InvalidMessage(f"{name} must be base64, got {quote(text)}")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidMessage(f"{name} must be base64, got {quote(text)}") from None


def _header(key: str, header: object) -> Header:
    if not is_utf8(key) or not 1 <= len(key.encode()) <= HEADER_KEY_MAX:
        raise InvalidMessage(f"a header's key must have 1 to {HEADER_KEY_MAX} bytes, got {quote(key)}")
    if not isinstance(header, dict) or set(header) != {"kind", "value"}:
        raise InvalidMessage(f"header {quote(key)} must be an object with kind and value, got {quote(header)}")
    kind = NAMES.get(header["kind"]) if isinstance(header["kind"], str) else None
    if kind is None:
        raise InvalidMessage(f"a header's kind must be one of {', '.join(NAMES)}, got {quote(header['kind'])}")
    return checked(kind, _binary(header["value"], f"the value of header {quote(key)}"), None)
