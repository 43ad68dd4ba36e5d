"""Encode values as JSON without loss, and copy them.

JSON cannot represent bytes, decimals, times and IDs. They become an object with one name that starts with ``$``:

==========================  ===========================================================
value                       JSON
==========================  ===========================================================
``b"hi"``                   ``{"$bytes": "aGk="}`` (standard base64)
``Decimal("1.50")``         ``{"$decimal": "1.50"}``
a datetime, date or time    ``{"$datetime": "2024-01-01T00:00:00+00:00"}``, ``$date``, ``$time``
a datetime with a ZoneInfo  ``{"$zoned": ["2024-10-27T02:30:00", "Europe/Berlin", 1]}``, with its ``fold``
a timedelta                 ``{"$microseconds": 1500000}``
a MessageId or a UUID       ``{"$id": "0156F7E7..."}``, ``{"$uuid": "8c2f..."}``
a dict with other keys      ``{"$map": [[key, value], ...]}``
a dict of such a form       ``{"$dict": {...}}``
==========================  ===========================================================

A tuple is encoded as a list and decoded as a list, except in the keys of a dict. A subclass, such as NumPy's float64 or
a Counter, is encoded as its base. Any other type raises TypeError, whose text has the cure.
"""

from __future__ import annotations

import base64
import copy
import json
import re
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from msgid.ids.message_id import MessageId
from msgid.shared.validate import quote

if TYPE_CHECKING:
    from collections.abc import Callable

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_IMMUTABLE: Final = _SCALARS | {bytes, Decimal, datetime, date, time, timedelta, MessageId, UUID}
_CURES: Final = (
    (Enum, "pass its value"),
    (set | frozenset, "pass sorted(values)"),
    (memoryview, "pass bytes(value)"),
    (GeneratorType | AsyncGeneratorType, "pass list(values)"),
    (datetime, "use a zoneinfo.ZoneInfo or datetime.timezone.utc"),
    (time, "use a datetime.timezone, or store the name of the zone beside a time without one"),
)
"""Types that are refused, and what to do instead."""
_FIXED: Final = (type(None), timezone)
_MICROSECOND: Final = timedelta(microseconds=1)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPE: Final = re.compile(r"\\(?:u(d[89a-f][0-9a-f]{2})|.)")
_SCAN: Final = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "$bytes": lambda text: base64.b64decode(text, validate=True),
    "$decimal": Decimal,
    "$datetime": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$time": time.fromisoformat,
    "$zoned": lambda parts: datetime.fromisoformat(parts[0]).replace(tzinfo=ZoneInfo(parts[1]), fold=parts[2]),
    "$id": MessageId,
    "$uuid": UUID,
    "$microseconds": lambda count: count * _MICROSECOND,
    "$map": dict,
    "$dict": lambda inner: inner,
}

_BASES: Final[dict[type, Callable[[Any], Any]]] = {
    str: str.__str__,
    int: int,
    float: float,
    bytes: bytes,
    bytearray: bytes,
    Decimal: Decimal,
    datetime: lambda value: datetime.combine(value.date(), value.timetz()),
}


def _writer(**options: Any) -> Callable[[Any], str]:
    """Return a function that encodes JSON without spaces.

    `JSONEncoder.encode` creates a new encoder in C for each value, which takes longer than encoding a small value.
    """
    encoder = json.JSONEncoder(separators=(",", ":"), check_circular=False, **options)
    compile_one = getattr(json.encoder, "c_make_encoder", None)
    if compile_one is None:  # an implementation of Python other than CPython
        return encoder.encode
    text = getattr(json.encoder, "encode_basestring_ascii" if encoder.ensure_ascii else "encode_basestring")
    compiled = compile_one(None, encoder.default, text, None, ":", ",", encoder.sort_keys, False, encoder.allow_nan)
    return lambda value: "".join(compiled(value, 0))


_WRITE: Final = _writer(ensure_ascii=False)
_WRITE_ORDERED: Final = _writer(ensure_ascii=False, sort_keys=True)


def dumps(value: Any) -> bytes:
    """Encode a value as JSON in UTF-8.

    Raises:
        TypeError: if JSON cannot represent the value.

    >>> dumps({"name": "é", "raw": b"hi"}).decode()
    '{"name":"é","raw":{"$bytes":"aGk="}}'
    """
    if type(value) is int:  # a state is often a number
        return str(value).encode()
    return _WRITE(_tagged(value) if _needs_tags(value) else value).encode("utf-8", "surrogatepass")


def text(value: Any) -> str:
    r"""Encode a value as JSON, as `dumps` does; a lone surrogate, which UTF-8 cannot encode, is escaped.

    Raises:
        TypeError: if JSON cannot represent the value.

    >>> text({"name": "é", "half": "\ud800"})
    '{"name":"é","half":"\\ud800"}'
    """
    return _utf8(_WRITE(_tagged(value) if _needs_tags(value) else value))


def loads(raw: bytes) -> Any:
    r"""Decode the result of `dumps`.

    >>> loads(dumps({1: (b"hi", None)})), loads(rb'"\ud83d\ude00"') == "\U0001f600"
    ({1: [b'hi', None]}, True)
    """
    return _decoded(raw.decode("utf-8", "surrogatepass"))


def read(text: str) -> Any:
    """Decode the result of `canonical`.

    >>> read(canonical({"sizes": (1, b"hi")}))
    {'sizes': [1, b'hi']}
    """
    if "\\ud" in text:  # JSON would read the escapes of two halves in a row as one character
        text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[0], text)
    return _decoded(text)


def canonical(value: Any) -> str:
    """Encode a value as text of JSON with sorted names: two texts are equal if and only if the values are, in JSON.

    >>> canonical({"b": 1, "a": "é"})
    '{"a":"é","b":1}'
    """
    return _utf8(_WRITE_ORDERED(_tagged(value, ordered=True) if _needs_tags(value) else value))


def _utf8(text: str) -> str:
    """Return a text of JSON in which lone surrogates, which UTF-8 cannot encode, are escaped."""
    return text if text.isascii() else _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def own_copy(value: Any) -> Any:
    """Return a deep copy of any value; this is fast for values that JSON can represent."""
    kind = type(value)
    if kind in _IMMUTABLE:
        return value
    if kind is dict:
        return {key: inner if type(inner) in _IMMUTABLE else own_copy(inner) for key, inner in value.items()}
    if kind is list:
        return [inner if type(inner) in _IMMUTABLE else own_copy(inner) for inner in value]
    if isinstance(value, GeneratorType | AsyncGeneratorType | memoryview):
        raise _refusal(value)
    return copy.deepcopy(value)


def _as_key(value: Any) -> Any:
    """Return a list as the tuple that was encoded, because a dict cannot have a list as a key."""
    return tuple(map(_as_key, value)) if type(value) is list else value


def _decoded(text: str) -> Any:
    """Decode JSON as `json.loads` does, and its forms; this is faster for a text without surrounding spaces."""
    try:
        value, end = _SCAN(text, 0)
    except StopIteration:
        end = -1
    if end != len(text):
        value = json.loads(text)
    if '"$' not in text:
        return value
    try:
        # The forms are decoded from the outside in, because the content of "$dict" must not be decoded again.
        return _untagged(value)
    except (TypeError, AttributeError, LookupError, ArithmeticError) as error:  # bytes of another encoding
        raise ValueError(f"not a value that `dumps` encoded: {quote(text)}") from error


def _needs_tags(value: Any) -> bool:
    """Return whether a value contains types that JSON does not have."""
    if type(value) is dict:
        for key, inner in value.items():
            if type(key) is not str or (type(inner) not in _SCALARS and _needs_tags(inner)):
                return True
        return len(value) == 1 and key in _READ
    if type(value) is list:
        for inner in value:  # noqa: SIM110
            if type(inner) not in _SCALARS and _needs_tags(inner):
                return True
        return False
    return type(value) not in _SCALARS


def _tagged(value: Any, *, ordered: bool = False) -> Any:
    """Return a value that the JSON encoder accepts; the value itself if it has only types of JSON."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if isinstance(value, dict):
        return _tagged_dict(value, ordered)
    if isinstance(value, list | tuple):
        return [inner if type(inner) in _SCALARS else _tagged(inner, ordered=ordered) for inner in value]
    if kind is bytes:
        return {"$bytes": base64.b64encode(value).decode()}
    if kind is Decimal:
        return {"$decimal": str(value)}
    if kind is datetime and type(value.tzinfo) is ZoneInfo and value.tzinfo.key:
        return {"$zoned": [value.replace(tzinfo=None).isoformat(), value.tzinfo.key, value.fold]}
    if kind is date or (kind in (datetime, time) and (type(value.tzinfo) in _FIXED or _is_utc(value))):
        return {f"${kind.__name__}": value.isoformat()}
    if kind is timedelta:
        return {"$microseconds": value // _MICROSECOND}
    if kind is MessageId or kind is UUID:
        return {"$uuid" if kind is UUID else "$id": str(value)}
    for base, converted in _BASES.items():
        if isinstance(value, base) and (kind is not base or base is bytearray) and not isinstance(value, Enum):
            return _tagged(converted(value), ordered=ordered)
    raise _refusal(value)


def _is_utc(value: datetime | time) -> bool:
    """Return whether a time is in UTC: older versions of PyArrow and pandas have it as a class of pytz."""
    return str(value.tzinfo) == "UTC" and value.utcoffset() == timedelta(0)


def _refusal(value: Any) -> TypeError:
    """Return the error for a value that JSON cannot represent."""
    cure = next((cure for types, cure in _CURES if isinstance(value, types)), "pass values that JSON can represent")
    if hasattr(value, "__dataclass_fields__"):
        cure = "pass dataclasses.asdict(value)"
    return TypeError(f"cannot write a {type(value).__name__} as JSON: {value!r:.100}; {cure}, or pass dumps and loads")


def _tagged_dict(value: dict[Any, Any], ordered: bool) -> dict[str, Any]:
    texts = True
    inner_of = {}
    for key, inner in value.items():
        if type(key) is not str:
            texts = False
        inner_of[key] = inner if type(inner) in _SCALARS else _tagged(inner, ordered=ordered)
    if not texts:
        pairs = [[_tagged(key, ordered=ordered), inner] for key, inner in inner_of.items()]
        return {"$map": sorted(pairs, key=lambda pair: json.dumps(pair[0], sort_keys=True)) if ordered else pairs}
    if len(inner_of) == 1 and next(iter(inner_of)) in _READ:
        return {"$dict": inner_of}
    return inner_of


def _untagged(value: Any) -> Any:
    if type(value) is list:
        return [_untagged(inner) for inner in value]
    if type(value) is not dict:
        return value
    if len(value) == 1:
        ((name, inner),) = value.items()
        if name == "$dict":
            return {key: _untagged(nested) for key, nested in inner.items()}
        if name == "$map":
            return {_as_key(_untagged(key)): _untagged(nested) for key, nested in inner}
        if name in _READ:
            return _READ[name](inner)
    return {key: _untagged(inner) for key, inner in value.items()}
