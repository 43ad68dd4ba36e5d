"""Decrypt what an encrypting server stores: nonce of 12 bytes, ciphertext, tag of 16 bytes, by AES-256-GCM.

Servers up to 0.9 write this for payloads, and from 0.8 on for the user headers, too. No flag marks it.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final

from msgid.errors import InvalidMessage
from msgid.shared.validate import check_installed

if TYPE_CHECKING:
    from collections.abc import Callable

_KEY_SIZE: Final = 32
_NONCE_SIZE: Final = 12
ADDED: Final = _NONCE_SIZE + 16
"""How many bytes encryption adds."""


def opener(key: bytes | str | None) -> Callable[[bytes, int], bytes] | None:
    """Return the function that decrypts bytes, or raises InvalidMessage with their position; None without a key.

    Args:
        key: 32 bytes, or their base64 text as in the server's configuration.

    Raises:
        ValueError: if the key has another form; the error does not quote it.
        ImportError: if the package ``cryptography`` is not there.
    """
    if key is None:
        return None
    raw = key
    if isinstance(key, str):
        try:
            raw = base64.b64decode(key, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
    if not isinstance(raw, bytes) or len(raw) != _KEY_SIZE:
        raise ValueError(f"decrypt must be a key of {_KEY_SIZE} bytes, or its base64 text")  # a key is never quoted
    check_installed("decryption", "encryption", "cryptography")
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    cipher = AESGCM(raw)

    def opened(data: bytes, at: int) -> bytes:
        if len(data) < ADDED:
            raise InvalidMessage(f"cannot decrypt {len(data)} bytes, fewer than the {ADDED} of nonce and tag", at)
        try:
            return cipher.decrypt(data[:_NONCE_SIZE], data[_NONCE_SIZE:], None)
        except InvalidTag:
            raise InvalidMessage(f"cannot decrypt {len(data)} bytes: another key, or no encrypted bytes", at) from None

    return opened
