"""Names of streams and topics: one normal form, checked after it is made (the Iggy message-expiry document)."""

from __future__ import annotations

import re
from typing import Final

from msgid.errors import InvalidMessage, quote

__all__ = ["MAX_NAME_BYTES", "normalize_name"]

MAX_NAME_BYTES: Final = 255
"""A name's length is one byte on the wire."""

_ALLOWED: Final = re.compile(r"[\w.\-\s]+")
_SPACE: Final = re.compile(r"\s+")


def normalize_name(name: str) -> str:
    r"""Give a name its normal form: lower case, trimmed, each run of white space one dot.

    The length is checked last: lower case can be longer than upper case was.

    Args:
        name: of a stream or a topic: word characters, dots, hyphens and white space.

    Returns:
        1 to 255 bytes in UTF-8.

    Raises:
        InvalidMessage: it is blank, has other characters, or is too long.

    >>> normalize_name("  My Orders\t2026 ")
    'my.orders.2026'
    """
    if not isinstance(name, str):
        raise InvalidMessage(f"name {quote(name)}, a {type(name).__name__} and not text")
    if not name.strip():
        raise InvalidMessage(f"name {quote(name)}, which is blank")
    if not _ALLOWED.fullmatch(name):
        raise InvalidMessage(f"name {quote(name)}, which has more than word characters, dots, hyphens and white space")
    normal = _SPACE.sub(".", name.lower().strip())
    length = len(normal.encode("utf-8", "surrogatepass"))
    if length > MAX_NAME_BYTES:
        raise InvalidMessage(f"name {quote(name)}, which has {length} bytes, not 1 to {MAX_NAME_BYTES}")
    return normal
