"""Iggy's JSON form of a message: states and kinds in snake_case, standard base64, the ID as a number.

The ID has up to 39 digits, more than a double or a decimal(38) holds, so it is never converted to either type.

Headers are an object of their keys. If a key is not text, they are a list of objects with ``key`` and ``value``, each
with its kind, as servers from 0.7 on write all headers. So no two headers have one form.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import fields, replace
from typing import Any, Final

from msgid.errors import InvalidMessage
from msgid.iggy.headers import NAMES, Header, HeaderKey, HeaderKind, HeaderName, checked, decode_headers
from msgid.iggy.message import Message, own_checksum, valid_message
from msgid.iggy.wire import HEADER_KEY_MAX, LAYOUTS, NEWEST, Reader
from msgid.messages import MessageState
from msgid.shared.validate import UINT32_MAX, UINT64_MAX, UINT128_MAX, in_range, is_utf8, quote

_FIELDS: Final = {field.name for field in fields(Message)} - {"batch"}
_SERVER_FIELDS: Final = {"header", "payload", "user_headers"}
_SERVER_LAYOUTS: Final = tuple(name for name, facts in LAYOUTS.items() if facts.has_origin)


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
    if any(isinstance(key, HeaderKey) for key in message.headers):
        value["headers"] = [
            {"key": _shown(*key) if isinstance(key, HeaderKey) else _shown(HeaderKind.STRING, key.encode())}
            | {"value": _shown(*header)}
            for key, header in message.headers.items()
        ]
    else:
        value["headers"] = {key: _shown(*header) for key, header in message.headers.items()} or None
    value["payload"] = base64.b64encode(message.payload).decode()
    if message.origin_timestamp is not None:
        value |= {"origin_timestamp": message.origin_timestamp, "layout": message.layout}
    return value


def _shown(kind: HeaderKind, raw: bytes) -> dict[str, str]:
    return {"kind": str(kind), "value": base64.b64encode(raw).decode()}


def from_json(text: str | bytes) -> Message:
    """Decode a message from JSON.

    Args:
        text: One JSON object, as `to_json` writes it or as a server's HTTP interface does. Servers 0.5 to 0.9 write
            the fields in ``header``. The message then has the layout whose checksum fits. If none fits, the checksum
            is that of a batch or of encrypted bytes, and is not compared.

    Raises:
        InvalidMessage: if the text is not valid JSON, with the position of the invalid character; or if the message is
            malformed.

    >>> from_json('{"offset":0,"timestamp":1,"id":340282366920938463463374607431768211455,"payload":"aGk="}').id_text
    'ffffffff-ffff-ffff-ffff-ffffffffffff'
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
    return partition_and_messages(text)[1]


def partition_and_messages(text: str | bytes) -> tuple[int | None, list[Message]]:
    """Decode all messages of a JSON text, and the partition of a response to a poll; None if it does not name one."""
    value, partition = _loaded(text), None
    if isinstance(value, dict) and "messages" in value:
        if value.get("partition_id") is not None:
            partition = _number(value, "partition_id", UINT32_MAX)
        value = value["messages"]
        if not isinstance(value, list):
            raise InvalidMessage(f"messages must be an array, got {quote(value)}")
    messages = [from_value(item) for item in value] if isinstance(value, list) else [from_value(value)]
    return partition, messages


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
    is_of_server = "header" in value
    unknown = set(value) - (_SERVER_FIELDS if is_of_server else _FIELDS)
    if unknown:
        raise InvalidMessage(f"unknown field {quote(min(unknown))} in a message")
    if is_of_server:
        return _from_server(value)
    state, checksum, layout = value.get("state"), value.get("checksum"), value.get("layout")
    if layout is not None and not (isinstance(layout, str) and layout in LAYOUTS and LAYOUTS[layout].has_origin):
        raise InvalidMessage(f"layout must be one with the producer's time, got {quote(layout)}")
    if (state is None) != (checksum is None) if layout is None else state is not None or checksum is None:
        raise InvalidMessage("a message must have both state and checksum, or neither")
    return valid_message(
        offset=_number(value, "offset", UINT64_MAX),
        state=None if state is None else MessageState.of(state if isinstance(state, str) else str(state)),
        timestamp=_number(value, "timestamp", UINT64_MAX),
        id=_number(value, "id", UINT128_MAX),
        checksum=None if checksum is None else _number(value, "checksum", UINT32_MAX if layout is None else UINT64_MAX),
        headers=_headers(value.get("headers")),
        payload=_binary(value.get("payload"), "payload"),
        origin_timestamp=None if layout is None else _number(value, "origin_timestamp", UINT64_MAX),
        layout=layout or ("previous" if state is None else "m45"),
        batch=None,
    )


def _from_server(value: dict[str, Any]) -> Message:
    """Create a message from the form of a server's HTTP interface."""
    header = value["header"]
    if not isinstance(header, dict):
        raise InvalidMessage(f"header must be a JSON object, got {quote(header)}")
    message = valid_message(
        **{name: _number(header, name, UINT64_MAX) for name in ("offset", "timestamp", "checksum", "origin_timestamp")},
        state=None,
        id=_number(header, "id", UINT128_MAX),
        headers=_headers(value.get("user_headers")),
        payload=_binary(value.get("payload"), "payload"),
        layout=NEWEST,
        batch=None,
    )
    typed = any(isinstance(key, HeaderKey) for key in message.headers)
    for layout in _SERVER_LAYOUTS:
        if (LAYOUTS[layout].typed_keys or not typed) and message.checksum == own_checksum(message, layout):
            return replace(message, layout=layout)
    return replace(message, checksum=own_checksum(message, NEWEST))


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


def _headers(headers: object) -> dict[HeaderName, Header]:
    """Return headers of an object of their keys, of a list of keys and values, or of their bytes in base64."""
    if headers is None:
        return {}
    if isinstance(headers, str):  # a server could not decode them
        return decode_headers(Reader(_binary(headers, "headers")), typed=True)
    if isinstance(headers, dict):
        return {_text_key(key): _header(f"header {quote(key)}", given) for key, given in headers.items()}
    if not isinstance(headers, list):
        raise InvalidMessage(f"headers must be a JSON object or a list, got {quote(headers)}")
    parsed: dict[HeaderName, Header] = {}
    for entry in headers:
        if not isinstance(entry, dict) or set(entry) != {"key", "value"}:
            raise InvalidMessage(f"a header must be an object with key and value, got {quote(entry)}")
        kind, raw = _header("a header's key", entry["key"])
        key: HeaderName = _text_key(raw.decode()) if kind is HeaderKind.STRING else HeaderKey(kind, raw)
        if key in parsed:
            raise InvalidMessage(f"a second header {quote(str(key))}")
        parsed[key] = _header(f"header {quote(str(key))}", entry["value"])
    return parsed


def _text_key(key: str) -> str:
    if not is_utf8(key) or not 1 <= len(key.encode()) <= HEADER_KEY_MAX:
        raise InvalidMessage(f"a header's key must have 1 to {HEADER_KEY_MAX} bytes, got {quote(key)}")
    return key


def _header(name: str, header: object) -> Header:
    if not isinstance(header, dict) or set(header) != {"kind", "value"}:
        raise InvalidMessage(f"{name} must be an object with kind and value, got {quote(header)}")
    kind = NAMES.get(header["kind"]) if isinstance(header["kind"], str) else None
    if kind is None:
        raise InvalidMessage(f"a header's kind must be one of {', '.join(NAMES)}, got {quote(header['kind'])}")
    return checked(kind, _binary(header["value"], f"the value of {name}"), None)
