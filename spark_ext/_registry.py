"""The registry of the formats of one kind: those of the package, imported when they are first used, and the user's."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Named(Protocol):
    name: str


Format = TypeVar("Format", bound=_Named)
_NAME: Final = {"name": str}


class Registry(Generic[Format]):
    """The formats of one kind by their names.

    Parameters
    ----------
    base : type
        The class of the formats.
    kind : str
        The kind, as errors name it, such as ``"message format"``.
    homes : Mapping
        The modules of the package's own formats by name. Each has a tuple ``FORMATS``.

    Examples
    --------
    >>> from spark_ext.tables.table_formats import TableFormat
    >>> registry = Registry(TableFormat, "table format", {"delta": "spark_ext.tables.delta"})
    >>> registry.names, registry["delta"].has_log
    (('delta',), True)
    >>> registry["orc"]
    Traceback (most recent call last):
    ValueError: format must be one of delta, got 'orc'
    """

    def __init__(self, base: type[Format], kind: str, homes: Mapping[str, str]) -> None:
        self._base, self._kind, self._homes = base, kind, homes
        self.loaded: dict[str, Format] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all formats, those of the package first."""
        return tuple(dict.fromkeys([*self._homes, *self.loaded]))

    def register(self, format: Format) -> None:
        """Make a format known; it replaces a format of the same name.

        Raises
        ------
        TypeError
            if the format is not of the registry's class.
        ValueError
            if its name is missing, or another attribute that the class names in ``required``.
        """
        if not isinstance(format, self._base):
            raise TypeError(f"format must be a {self._base.__name__}, got {format!r}")
        required: Mapping[str, type] = getattr(format, "required", _NAME)
        for attribute, type in required.items():
            value = getattr(format, attribute, None)
            if not isinstance(value, type) or not value:
                raise ValueError(f"`{attribute}` of a {self._kind} must be a {type.__name__}, got {value!r}")
        self.loaded[format.name] = format

    def __getitem__(self, name: str) -> Format:
        """Return the format of a name; ValueError with all names if it is unknown."""
        if name not in self.loaded:
            if name not in self._homes:
                raise ValueError(f"format must be one of {', '.join(self.names)}, got {name!r}")
            for format in import_module(self._homes[name]).FORMATS:
                self.loaded.setdefault(format.name, format)
        return self.loaded[name]
