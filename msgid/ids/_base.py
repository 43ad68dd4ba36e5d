"""What every kind of id has in common: an immutable value that is its bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar

from msgid._validate import quote
from msgid.ids._bytes import id_bytes, kind_of, strip_version
from msgid.ids._native import native
from msgid.layout import CANONICAL_V0_PREFIX

if TYPE_CHECKING:
    from msgid.layout import Kind

__all__ = ["Value", "compiled"]

C = TypeVar("C", bound="Core")
V = TypeVar("V", bound="Value")


class Core:
    """An immutable value of bytes: equal, hashed and ordered by them within its own kind."""

    # The compiled Core takes the place of this one by way of `compiled`.

    __slots__ = ("_bytes",)

    _bytes: bytes

    @classmethod
    def _of(cls: type[C], raw: bytes) -> C:
        """Wrap bytes that are known to be good."""
        self = object.__new__(cls)
        _set_bytes(self, raw)
        return self

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot delete {name!r}")

    @property
    def hex(self) -> str:
        """The text: two upper-case hex digits for each byte."""
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


# The slot's own descriptor: the one door past __setattr__, so that a value can be filled in once.
_set_bytes = Core.__dict__["_bytes"].__set__


class Value(Core):
    """What every kind of id is: an immutable value of bytes.

    It is never equal to a str or to bytes, formats as its text (so ``f"{id:<40}"`` works) and copies to itself.
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
        """The text with the version byte in front: one form for a column that holds every version."""
        return CANONICAL_V0_PREFIX + self.hex

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def _repr_html_(self) -> str:
        """Return the ID as a table of its fields, for notebooks."""
        from msgid.ids._display import draw_html

        return draw_html(self)

    def __copy__(self: V) -> V:
        return self

    def __deepcopy__(self: V, memo: object) -> V:
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> Any:
        # Called by Pydantic alone, which has imported its core by then: this library never does so itself.
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
            raise ValueError(f"{quote(value)} is a {kind} id, not a {cls.__name__}")
        return cls._of(strip_version(raw) or raw)


_CLASS_OWN: Final = frozenset({"__dict__", "__module__", "__slots__", "__weakref__"})


def compiled(cls: type[V]) -> type[V]:
    """Give a class of ids its compiled twin, if there is one, with all that the class can do beyond `Core`."""
    if native is None:
        return cls
    twin: type[V] = getattr(native, cls.__name__)
    for base in reversed(cls.__mro__):
        if base not in (object, Core):
            for name, attribute in vars(base).items():
                if name not in _CLASS_OWN:
                    setattr(twin, name, attribute)
    return twin
