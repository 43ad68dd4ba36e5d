"""The base class of every kind of ID: an immutable value that holds the bytes of the ID."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar

from msgid.ids._native import native
from msgid.ids.checked_bytes import id_bytes, kind_of, strip_version
from msgid.layout import CANONICAL_V0_PREFIX
from msgid.shared.validate import quote

if TYPE_CHECKING:
    from msgid.layout import Kind

C = TypeVar("C", bound="Core")
V = TypeVar("V", bound="Value")


class Core:
    """An immutable value of bytes. Values of the same class are equal, hashed and ordered by their bytes."""

    # `compiled` replaces this class with the compiled Core.

    __slots__ = ("_bytes",)

    _bytes: bytes

    @classmethod
    def _of(cls: type[C], raw: bytes) -> C:
        """Return an instance with bytes that the caller has checked."""
        self = object.__new__(cls)
        _set_bytes(self, raw)
        return self

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot delete {name!r}")

    @property
    def hex(self) -> str:
        """The text of the ID: two upper-case hex digits for each byte."""
        return self._bytes.hex().upper()

    def __str__(self) -> str:
        return self._bytes.hex().upper()

    def __bytes__(self) -> bytes:
        return self._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._bytes == other._bytes

    def __lt__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._bytes < other._bytes

    def __le__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._bytes <= other._bytes

    def __gt__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._bytes > other._bytes

    def __ge__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._bytes >= other._bytes


# The slot's own descriptor bypasses __setattr__, so that a new value can be filled in once.
_set_bytes = Core.__dict__["_bytes"].__set__


class Value(Core):
    """Base class of all IDs: an immutable value of bytes.

    A value is never equal to a str or to bytes. It is formatted as its text (``f"{id:<40}"``), and a copy of it is the
    same object.
    """

    __slots__ = ()

    _json_pattern: ClassVar[str]
    _kinds: ClassVar[tuple[Kind, ...]]
    """The kinds of ID that this class holds."""

    @property
    def kind(self) -> Kind:
        """One of `msgid.layout.KINDS`."""
        raise NotImplementedError

    @property
    def canonical(self) -> str:
        """The text with the version byte in front, so that one column can hold IDs of every version."""
        return CANONICAL_V0_PREFIX + self.hex

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __copy__(self: V) -> V:
        return self

    def __deepcopy__(self: V, memo: object) -> V:
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> Any:
        # Only Pydantic calls this, after it has imported its core. This library never imports pydantic_core itself.
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls._validate,
            serialization=core_schema.to_string_ser_schema(),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: object, handler: object) -> dict[str, str]:
        return {"type": "string", "pattern": cls._json_pattern, "title": cls.__name__}

    @classmethod
    def _validate(cls: type[V], value: Any) -> V:
        if isinstance(value, cls):
            return value
        raw = id_bytes(value)
        kind = kind_of(raw)
        if kind not in cls._kinds:
            raise ValueError(f"id must be a {cls.__name__}, got {quote(value)} of kind {kind}")
        return cls._of(strip_version(raw) or raw)


_CLASS_OWN: Final = frozenset({"__dict__", "__module__", "__slots__", "__weakref__"})


def compiled(cls: type[V]) -> type[V]:
    """Return the compiled class of an ID class, with all the attributes that the class adds to `Core`.

    Without the compiled core, return the class itself.
    """
    if native is None:
        return cls
    twin: type[V] = getattr(native, cls.__name__)
    for base in reversed(cls.__mro__):
        if base not in (object, Core):
            for name, attribute in vars(base).items():
                if name not in _CLASS_OWN:
                    setattr(twin, name, attribute)
    return twin
