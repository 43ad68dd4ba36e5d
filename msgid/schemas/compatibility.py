"""Decide whether one version of a schema reads what another wrote, by the libraries of the two formats.

The package ``avro`` decides for Avro, by the schema resolution of its specification. jsonschema-rs decides for JSON
Schema: a new schema reads the values of an old one if it allows each of them. Where a library does not know, the
answer is ``not decided``, with its reason.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from msgid.schemas._avro import is_decimal, without_logical_types
from msgid.schemas._containment import contains_safely
from msgid.schemas._json_schema import draft_of
from msgid.schemas._validators import Kind, parse_schema_text, validator
from msgid.shared.validate import QUOTED_LENGTH, check_installed, one_of

if TYPE_CHECKING:
    from collections.abc import Iterator

Outcome = Literal["compatible", "incompatible", "not decided"]

_MODES: Final = ("none", "backward", "forward", "full")


class Comparison(NamedTuple):
    """The outcome of a comparison of two schemas, and the reasons unless they are compatible."""

    verdict: Outcome
    reasons: tuple[str, ...] = ()


def check_compatibility(mode: str, old_kind: str, old_text: str, new_kind: str, new_text: str) -> Comparison:
    """Compare a new schema with an old one.

    Args:
        mode: ``backward``: the new schema reads what the old one wrote; ``forward``: the old schema reads what the
            new one writes; ``full``: both; ``none``: always compatible.
        old_kind: ``json`` or ``avro``.
        old_text: The old schema.
        new_kind: ``json`` or ``avro``.
        new_text: The new schema.

    Returns:
        The ``verdict`` ``compatible``, ``incompatible`` or ``not decided``, with the ``reasons`` in the words of the
        library that decided.

    Raises:
        InvalidSchema: if a text is not a schema.
        ValueError: if the mode or a kind is unknown.

    >>> check_compatibility("backward", "avro", '"int"', "avro", '"long"')
    Comparison(verdict='compatible', reasons=())
    >>> check_compatibility("forward", "avro", '"int"', "avro", '"long"').verdict
    'incompatible'
    >>> old, new = '{"type": "string"}', '{"type": ["string", "null"], "title": "Name"}'
    >>> [check_compatibility(mode, "json", old, "json", new).verdict for mode in ("backward", "forward")]
    ['compatible', 'incompatible']
    """
    one_of("mode", mode, _MODES)
    if mode == "none":
        return Comparison("compatible")
    for word in (old_kind, new_kind):
        one_of("kind", word, get_args(Kind))
    if old_kind != new_kind:
        return Comparison("incompatible", (f"the kind was {old_kind} and is {new_kind}",))
    old, new = parse_schema_text(old_text), parse_schema_text(new_text)
    for text in (old_text, new_text):
        validator("avro" if old_kind == "avro" else "json", text)
    if json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True):
        return Comparison("compatible")
    read = _avro if old_kind == "avro" else _json
    pairs = {"backward": [(new, old)], "forward": [(old, new)], "full": [(new, old), (old, new)]}[mode]
    comparisons = [read(reader, writer) for reader, writer in pairs]
    verdicts = [comparison.verdict for comparison in comparisons]
    verdict = max(verdicts, key=get_args(Outcome).index) if "incompatible" not in verdicts else "incompatible"
    return Comparison(verdict, tuple(dict.fromkeys(reason for one in comparisons for reason in one.reasons)))


def _avro(reader: Any, writer: Any) -> Comparison:
    check_installed("a comparison of Avro schemas", "schemas", "avro")
    from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
    from avro.schema import parse

    try:
        checker: Any = ReaderWriterCompatibilityChecker  # the package's types are wrong here
        # The names of a schema that others registered may have characters that the specification forbids. The package
        # warns of some logical types, and compares none.
        plain = [json.dumps(without_logical_types(schema)) for schema in (reader, writer)]
        parsed = [parse(text, validate_names=False) for text in plain]
        result = checker().get_compatibility(*parsed)
        before, after = _types_by_path(writer), _types_by_path(reader)
        shared = before.keys() & after.keys()
        changed = sorted("/".join(path) or "the top" for path in shared if before[path] != after[path])
    except Exception as error:  # the package raises errors of many types
        return Comparison("not decided", (_shortened(f"{type(error).__name__}: {error}"),))
    if result.compatibility is SchemaCompatibilityType.compatible:
        if changed:
            return Comparison("not decided", (f"avro does not compare logical types: at {', '.join(changed)}",))
        return Comparison("compatible")
    kinds = ", ".join(sorted({kind.value.replace("_", " ") for kind in result.incompatibilities}))
    differences, paths = (", ".join(sorted(parts)) for parts in (result.messages, result.locations))
    return Comparison("incompatible", (_shortened(f"{kinds}: {differences} at {paths}"),))


def _types_by_path(schema: Any) -> dict[tuple[str, ...], set[tuple[Any, ...]]]:
    """Return the logical types at each path of a schema: a union has several, and so have its records."""
    types: dict[tuple[str, ...], set[tuple[Any, ...]]] = {}
    for path, logical in _logical_types(schema):
        types.setdefault(path, set()).update(logical)
    return types


def _logical_types(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[tuple[Any, ...]]]]:
    """Yield the path of each type in a schema, and its logical type if it has one."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _logical_types(branch, path)
    elif isinstance(schema, dict):
        kind = schema["type"]
        if isinstance(kind, str):
            yield path, _logical_type(schema, kind)
        for part in ("items", "values"):
            yield from _logical_types(schema.get(part), (*path, part))
        for field in schema.get("fields", ()):
            yield from _logical_types(field["type"], (*path, field["name"]))
    elif schema is not None:
        yield path, set()


def _logical_type(schema: dict[str, Any], kind: str) -> set[tuple[Any, ...]]:
    """Return the logical type of a type; readers ignore an invalid or unknown one."""
    from fastavro.read import LOGICAL_READERS

    name = schema.get("logicalType")
    if f"{kind}-{name}" not in LOGICAL_READERS or (name == "decimal" and not is_decimal(schema)):
        return set()
    return {(name, schema.get("precision"), schema.get("scale") or 0)}


def _json(reader: Any, writer: Any) -> Comparison:
    draft, was = draft_of(reader), draft_of(writer)
    if draft != was:
        return Comparison("not decided", (f"$schema names draft {draft} in one schema and {was} in the other",))
    answer, reason = contains_safely(reader, writer)
    if answer == "yes":
        return Comparison("compatible")
    return Comparison("incompatible" if answer == "no" else "not decided", (_shortened(reason),))


def _shortened(reason: str) -> str:
    limit = 2 * QUOTED_LENGTH
    return reason if len(reason) <= limit else f"{reason[:limit]}..."
