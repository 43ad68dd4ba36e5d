"""Check untrusted numbers and optional packages, and quote invalid values in errors."""

from __future__ import annotations

import re
from importlib import import_module
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Collection

# --- quoting -----------------------------------------------------------------------------------------------------

QUOTED_LENGTH: Final = 64
"""The maximum number of characters of an invalid value in an error."""
WIDEST: Final = 100
"""The maximum number of characters of a name or an example in a line."""


def quote(value: object) -> str:
    """Return a short one-line text of any value for an error message; never raises.

    >>> quote("01AB"), quote(None), quote("9" * 10_000)[-20:]
    ("'01AB'", 'None', "9'... (10000 in all)")
    """
    if isinstance(value, str | bytes | bytearray):
        # ascii() keeps unusual characters visible, such as full-width digits and zero-width spaces.
        shown = ascii(value[:QUOTED_LENGTH])
        return shown if len(value) <= QUOTED_LENGTH else f"{shown}... ({len(value)} in all)"
    try:
        shown = ascii(value)
    except Exception:
        shown = f"<{type(value).__name__}>"
    shown = " ".join(shown.split()) if "\n" in shown else shown  # such as that of a DataFrame
    return shown if len(shown) <= QUOTED_LENGTH else f"{shown[:QUOTED_LENGTH]}..."


def quote_path(path: str) -> str:
    r"""Return a path as one line for an error message, whole: its end names the file.

    >>> quote_path("a/b.csv"), quote_path("a\nb")
    ("'a/b.csv'", "'a\\nb'")
    """
    return ascii(path)


def shown(text: str, widest: int = WIDEST) -> str:
    r"""Return text of others for one line of a terminal, a log or a page.

    Text with control characters, marks of direction, half surrogates or spaces around it is quoted. Long text is cut.

    Args:
        text: Any text, such as the name of a log.
        widest: Largest number of characters of the result.

    >>> print(shown("orders"), shown("orders" + chr(0x202E)), shown("orders", 5))
    orders 'orders\u202e' or...
    """
    line = text if text.isprintable() and text == text.strip() else ascii(text)
    return line if len(line) <= widest else f"{line[: widest - 3]}..."


def is_utf8(value: object) -> bool:
    """Check whether a value is text that UTF-8 has bytes for: text of JSON may hold half a pair of surrogates.

    >>> is_utf8("a"), is_utf8(chr(0xD800)), is_utf8(b"a")
    (True, False, False)
    """
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- optional packages -------------------------------------------------------------------------------------------


def to_install(extras: str) -> str:
    """Return the command that adds the packages of extras to an installed `msgid`; pip does not look for `msgid` then.

    >>> to_install("cli")
    "pip install 'msgid[cli]' (also if msgid was installed from a clone or a wheel)"
    """
    return f"pip install 'msgid[{extras}]' (also if msgid was installed from a clone or a wheel)"


def check_installed(what: str, extra: str, *packages: str) -> None:
    """Raise ImportError with the extra to install if a package that ``what`` needs is missing.

    >>> check_installed("parse_batch", "arrow", "no_such_package")
    Traceback (most recent call last):
    ImportError: parse_batch needs no_such_package: pip install 'msgid[arrow]' (also if msgid was installed from ...
    """
    for package in packages:
        try:
            import_module(package)
        except ImportError as error:
            raise ImportError(f"{what} needs {package}: {to_install(extra)}", name=error.name) from None


def toml_of(data: bytes) -> dict[str, Any]:
    r"""Return the tables of a TOML file, or raise ValueError if the bytes are not TOML.

    >>> toml_of(b"[audit]\nid = 'order_id'")
    {'audit': {'id': 'order_id'}}
    """
    try:
        import tomllib  # type: ignore[import-not-found, unused-ignore]
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib  # type: ignore[no-redef, import-not-found, unused-ignore]

    tables: dict[str, Any] = tomllib.loads(data.decode())
    return tables


# --- numbers -----------------------------------------------------------------------------------------------------

INT32_MAX: Final = (1 << 31) - 1
INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
"""The largest value of an Arrow int64 and of a Spark bigint."""
UINT16_MAX: Final = (1 << 16) - 1
UINT32_MAX: Final = (1 << 32) - 1
UINT64_MAX: Final = (1 << 64) - 1
UINT128_MAX: Final = (1 << 128) - 1
_INTEGER: Final = re.compile(r"-?\d{1,19}", re.ASCII)


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer, such as one of NumPy, but not a bool (a subclass of int in Python).

    >>> is_integer(7), is_integer(True), is_integer(7.0)
    (True, False, False)
    """
    # NumPy calls a timedelta64 an integer too, and lacks its index.
    return type(value) is int or (
        isinstance(value, Integral) and not isinstance(value, bool) and hasattr(value, "__index__")
    )


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is an integer or a float, such as one of NumPy, but not a bool.

    >>> is_number(7), is_number(7.5), is_number(True), is_number("7")
    (True, True, False, False)
    """
    return is_integer(value) or isinstance(value, float) or (isinstance(value, Real) and not isinstance(value, bool))


def in_range(value: object, low: int, high: int) -> TypeGuard[int]:
    """Return whether a value is an integer of ``low`` to ``high``."""
    return is_integer(value) and low <= value <= high


def integer_of_text(text: str) -> int | None:
    """Return the integer whose digits a text holds, as `spark_ext` reads exports; None for any other text.

    >>> integer_of_text("-07"), integer_of_text("+7"), integer_of_text("9" * 19)
    (-7, None, None)
    """
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if in_range(number, INT64_MIN, INT64_MAX) else None


def one_of(name: str, value: object, allowed: Collection[object]) -> None:
    """Raise ValueError with the name of a value that is not one of those that are allowed."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))}, got {quote(value)}")


def integer(name: str, value: object, low: int, high: int) -> int:
    """Return ``value`` as an int of ``low`` to ``high``, or raise TypeError or ValueError with its ``name``."""
    if not is_integer(value):
        raise TypeError(f"{name} must be an integer, got {quote(value)}")
    if not in_range(value, low, high):
        raise ValueError(f"{name} must be {low} to {high}, got {quote(value)}")
    return int(value)
