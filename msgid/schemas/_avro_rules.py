"""Decide whether an Avro schema reads the values of another, by the specification's rules of schema resolution.

Names are full names. The answer holds for every Avro reader, fastavro included; fastavro before 1.13.1 fails on some
types that the two schemas define in different places. It is "not decided" if readers differ, or if it depends on the
values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid._validate import INT32_MAX, INT64_MAX, in_range, quote
from msgid.schemas._avro_types import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from msgid.schemas._avro_types import AvroField, AvroType

_PROMOTED: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_NAMED: Final = ("record", "enum", "fixed")


class Problem(NamedTuple):
    """One reason against compatibility; ``decided`` is False if the library cannot decide."""

    text: str
    decided: bool = True


def avro_problems(reader: AvroType, writer: AvroType) -> list[Problem]:
    """Return the reasons why the reader's schema cannot read all values of the writer's schema; none if it can.

    >>> from msgid.schemas._avro_types import parse_avro
    >>> avro_problems(parse_avro("int"), parse_avro("long"))
    [Problem(text='a long cannot be read as an int', decided=True)]
    """
    return list(_Rules().resolve(reader, writer, ""))


class _Rules:
    def __init__(self) -> None:
        # A pair in comparison counts as compatible. All rules are conjunctions, so another pair shows any problem.
        self.seen: set[tuple[int, int]] = set()

    def resolve(self, reader: AvroType, writer: AvroType, where: str, *, in_union: bool = False) -> Iterator[Problem]:
        """Compare two types; ``in_union`` if the writer's is a branch of a union."""
        by_name = writer.target is not None
        reader, writer = reader.real, writer.real
        if reader.kind == "union" and writer.kind in _NAMED and not in_union:
            yield from _written_elsewhere(reader, writer, by_name, where)
        pair = (id(reader), id(writer))
        if pair in self.seen:
            return
        self.seen.add(pair)
        if writer.kind == "union":
            for branch in writer.branches:
                yield from self.resolve(reader, branch, where, in_union=True)
        elif reader.kind == "union":
            yield from self.choose(reader, writer, where)
        elif reader.kind != writer.kind:
            yield from _promotion(reader, writer, where)
            yield from _logical(reader, writer, where)
        else:
            yield from self.same_kind(reader, writer, where)

    def choose(self, reader: AvroType, writer: AvroType, where: str) -> Iterator[Problem]:
        """Compare a type with each branch of the reader's union that a reader can choose for it."""
        branches = _candidates(reader, writer)
        if not branches:
            yield Problem(f"{_shown(writer)} is in no branch of the union{where}")
        for branch in branches:
            for problem in self.resolve(branch, writer, where):
                alone = len(branches) == 1
                text = problem.text if alone else f"several branches of a union fit {_shown(writer)}: {problem.text}"
                yield Problem(text, problem.decided and alone)

    def same_kind(self, reader: AvroType, writer: AvroType, where: str) -> Iterator[Problem]:
        kind = reader.kind
        if kind in _NAMED:
            yield from _names(reader, writer, where)
        yield from _logical(reader, writer, where)
        if kind == "record":
            yield from self.records(reader, writer, where)
        elif kind == "enum":
            if reader.default is None:
                for symbol in writer.symbols:
                    if symbol not in reader.symbols:
                        yield Problem(f"the symbol {symbol!r} was allowed{where}")
        elif kind == "fixed":
            if reader.size != writer.size:
                yield Problem(f"{reader.name!r} had {writer.size} bytes and has {reader.size}{where}")
        elif kind in ("array", "map"):
            assert reader.items is not None
            assert writer.items is not None
            yield from self.resolve(
                reader.items, writer.items, f"{where} in {'an item' if kind == 'array' else 'a value'}"
            )

    def records(self, reader: AvroType, writer: AvroType, where: str) -> Iterator[Problem]:
        taken: dict[str, str] = {}
        for field in reader.fields:
            sources = _sources(field, writer)
            for source in sources:
                if source.name in taken or len(sources) > 1:
                    other = taken.get(source.name, field.name)
                    yield Problem(
                        f"the field {source.name!r}{where} can be read as {other!r} or {field.name!r}, or not alone",
                        False,
                    )
                taken[source.name] = field.name
            if sources:
                yield from self.resolve(field.type, sources[0].type, f"{where} in {field.name!r}")
            elif field.default is MISSING:
                yield Problem(f"the field {field.name!r} is new and does not have a default{where}")
            else:
                fit = _default_fits(field.type, field.default, frozenset())
                if fit is not True:
                    text = f"the default {quote(field.default)} of the new field {field.name!r}{where} does not fit"
                    yield Problem(text, fit is False)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _default_fits(type: AvroType, value: Any, outside: frozenset[int]) -> bool | None:
    """Return whether a default, as JSON, is a value of a type; None if readers differ.

    ``outside`` has the records whose own defaults contain this default: a default that contains itself never ends.
    """
    type = type.real
    if type.kind == "union":
        # A default is of the first branch; from Avro 1.12 on, of any branch.
        first, *others = (
            (_default_fits(branch, value, outside) for branch in type.branches) if type.branches else (False,)
        )
        return first if first is not False or not any(others) else None
    if type.kind in ("array", "map"):
        assert type.items is not None
        if not isinstance(value, list if type.kind == "array" else dict):
            return False
        items = value if isinstance(value, list) else value.values()
        return _all(_default_fits(type.items, item, frozenset()) for item in items)
    if type.kind == "record":
        if not isinstance(value, dict) or id(type) in outside:
            return False
        missing = outside | {id(type)}
        return _all(
            _default_fits(field.type, value[field.name], frozenset())
            if field.name in value
            else field.default is not MISSING and _default_fits(field.type, field.default, missing)
            for field in type.fields
        )
    if type.kind == "enum":
        return value in type.symbols if isinstance(value, str) else False
    if type.kind in ("bytes", "fixed"):  # as text: one character for each byte
        if not isinstance(value, str) or any(ord(character) > _BYTE for character in value):
            return False
        return type.kind == "bytes" or len(value) == type.size
    return _PRIMITIVE_FITS[type.kind](value)


def _all(answers: Iterator[bool | None]) -> bool | None:
    found = set(answers)
    return False if False in found else None if None in found else True


_BYTE: Final = 0xFF
_PRIMITIVE_FITS: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": lambda value: in_range(value, -INT32_MAX - 1, INT32_MAX),
    "long": lambda value: in_range(value, -INT64_MAX - 1, INT64_MAX),
    "float": _is_number,
    "double": _is_number,
    "string": lambda value: isinstance(value, str),
}


def _candidates(reader: AvroType, writer: AvroType) -> list[AvroType]:
    """Return the branches of the reader's union that some reader chooses for a type.

    Java's reader looks for the same type and full name first. fastavro's reader chooses the first matching branch, and
    compares names without their namespaces and kinds.
    """
    branches = [branch.real for branch in reader.branches]
    if writer.kind in _NAMED:
        found = [branch for branch in branches if branch.kind in _NAMED and _short_match(branch, writer)]
    else:
        fitting = (writer.kind, *_PROMOTED.get(writer.kind, ()))
        found = [branch for branch in branches if branch.kind in fitting]
    for index, branch in enumerate(found):
        if branch.kind == writer.kind and branch.name == writer.name:
            # Every reader chooses this branch or an earlier one.
            return found[: index + 1]
    return found


def _written_elsewhere(reader: AvroType, writer: AvroType, by_name: bool, where: str) -> Iterator[Problem]:
    """Yield a problem for a type in a union that one schema defines there and the other only names; fastavro fails."""
    for branch in reader.branches:
        named = branch.target is not None
        if named is not by_name and branch.real.kind in _NAMED and _short_match(branch.real, writer):
            text = f"fastavro cannot read {writer.name!r}{where}: one schema defines it there, the other only names it"
            yield Problem(text, False)


def _sources(field: AvroField, writer: AvroType) -> list[AvroField]:
    """Return the writer's fields from which a reader's field can take its value, the field of the same name first."""
    names = dict.fromkeys((field.name, *field.aliases))
    return [source for name in names for source in writer.fields if source.name == name]


def _promotion(reader: AvroType, writer: AvroType, where: str) -> Iterator[Problem]:
    if reader.kind not in _PROMOTED.get(writer.kind, ()):
        yield Problem(f"{_shown(writer)} cannot be read as {_shown(reader)}{where}")
    elif writer.kind == "bytes":
        yield Problem(f"a bytes that is not UTF-8 cannot be read as a string{where}", False)


def _names(reader: AvroType, writer: AvroType, where: str) -> Iterator[Problem]:
    if reader.name == writer.name or writer.name in reader.aliases:
        return
    decided = _short(reader.name) != _short(writer.name)
    yield Problem(f"the {reader.kind} was named {writer.name!r} and is {reader.name!r}{where}", decided)


def _short_match(reader: AvroType, writer: AvroType) -> bool:
    names = {_short(name) for name in (reader.name, *reader.aliases)}
    return _short(writer.name) in names


def _logical(reader: AvroType, writer: AvroType, where: str) -> Iterator[Problem]:
    if not reader.logical or reader.logical == writer.logical:
        return
    was = _logical_text(writer)
    # The specification has a rule only for decimals: precision and scale must be equal.
    decided = bool(writer.logical) and reader.logical[0] == writer.logical[0] == "decimal"
    yield Problem(f"the logical type was {was} and is {_logical_text(reader)}{where}", decided)


def _logical_text(type: AvroType) -> str:
    if not type.logical:
        return "none"
    name, precision, scale = type.logical
    return f"decimal({precision}, {scale})" if name == "decimal" else quote(name)


def _shown(type: AvroType) -> str:
    word = type.kind if not type.name else f"{type.kind} {type.name!r}"
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _short(name: str) -> str:
    return name.rpartition(".")[2]
