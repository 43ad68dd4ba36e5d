"""Decide whether one version of a schema reads what another wrote: rules for Avro and for JSON Schema.

Avro follows its specification's schema resolution, with full names and aliases. The answer holds for every reader. It
is "not decided" if readers differ: for names that differ only in the namespace, for two matching branches of a union,
for bytes read as a string, and for a new or changed logical type.

A new JSON Schema reads the values of an old one if it allows each of them. Both schemas must have the same draft. The
rules here cover ``type``, ``enum``, ``const``, ``required``, ``properties``, ``patternProperties``,
``additionalProperties``, ``items``, ``prefixItems``, limits of numbers and lengths, ``allOf``, ``anyOf`` and local
``$ref``, including recursive ones. jsonschema-rs decides multiples, patterns, ``oneOf``, ``not`` and combinations. All
other cases are "not decided".
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, get_args

from msgid._validate import QUOTED_LENGTH, quote
from msgid.schemas import _danube_rules
from msgid.schemas._avro_rules import Problem, avro_problems
from msgid.schemas._avro_types import parse_avro
from msgid.schemas._json_rules import is_recursive, json_problems, same_json
from msgid.schemas._json_schema import draft_of
from msgid.schemas._json_witness import witness
from msgid.schemas._validators import Kind, parse_schema_text, validator

Outcome = Literal["compatible", "incompatible", "not decided"]
Rules = Literal["readers", "danube"]
"""The judge of a new schema: all readers, or a Danube broker."""

_MODES: Final = ("none", "backward", "forward", "full")


class Comparison(NamedTuple):
    """The outcome of a comparison of two schemas, and the reasons unless they are compatible."""

    verdict: Outcome
    reasons: tuple[str, ...] = ()


def compare(
    mode: str, old_kind: str, old_text: str, new_kind: str, new_text: str, *, rules: Rules = "readers"
) -> Comparison:
    """Compare a new schema with an old one.

    Args:
        mode: ``backward``: the new schema reads what the old one wrote; ``forward``: the old schema reads what the
            new one writes; ``full``: both; ``none``: always compatible.
        old_kind: ``json`` or ``avro``.
        old_text: The old schema.
        new_kind: ``json`` or ``avro``.
        new_text: The new schema.
        rules: ``readers``: whether a reader can read every message. ``danube``: whether a Danube broker accepts the
            new schema. A broker asks for less, compares no types of Avro fields, and refuses a type that gets wider.

    Returns:
        ``compatible``, ``incompatible`` or ``not decided``, with the reasons.

    Raises:
        InvalidSchema: if a text is not a schema.
        ValueError: if the mode or the rules are unknown.

    >>> compare("backward", "avro", '"int"', "avro", '"long"')
    Comparison(verdict='compatible', reasons=())
    >>> compare("forward", "avro", '"int"', "avro", '"long"')
    Comparison(verdict='incompatible', reasons=('a long cannot be read as an int',))
    >>> compare("backward", "avro", '"bytes"', "avro", '"string"').verdict
    'not decided'
    >>> old, new = '{"properties": {"n": {"type": "integer"}}}', '{"properties": {"n": {"type": "number"}}}'
    >>> compare("backward", "json", old, "json", new).verdict
    'compatible'
    >>> compare("backward", "json", old, "json", new, rules="danube")
    Comparison(verdict='incompatible', reasons=("the type of property 'n' changed",))
    """
    _one_of("rules", rules, get_args(Rules))
    _one_of("mode", mode, _MODES)
    if mode == "none":
        return Comparison("compatible")
    for word in (old_kind, new_kind):
        _one_of("kind", word, get_args(Kind))
    if old_kind != new_kind:
        return Comparison("incompatible", (f"the kind was {old_kind} and is {new_kind}",))
    kind: Kind = "avro" if old_kind == "avro" else "json"
    for text in (old_text, new_text):
        validator(kind, text)
    old, new = parse_schema_text(old_text), parse_schema_text(new_text)
    if same_json(old, new):
        return Comparison("compatible")
    problems: list[Problem] = []
    for reader, writer, wanted in ((new, old, "backward"), (old, new, "forward")):
        if mode in (wanted, "full"):
            if rules == "danube":
                problems += _danube_rules.problems(kind, old, new, backward=wanted == "backward")
            else:
                problems += _avro(reader, writer) if kind == "avro" else _json(reader, writer)
    if not problems:
        return Comparison("compatible")
    decided = [problem.text for problem in problems if problem.decided]
    undecided = [problem.text for problem in problems if not problem.decided]
    return Comparison("incompatible" if decided else "not decided", tuple(dict.fromkeys(decided + undecided)))


def _one_of(name: str, word: str, allowed: tuple[str, ...]) -> None:
    if word not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {quote(word)}")


def incompatibilities(
    mode: str, old_kind: str, old_text: str, new_kind: str, new_text: str, *, rules: Rules = "readers"
) -> list[str]:
    """Return the reasons against compatibility as in `compare`; the list is empty only if the schemas are compatible.

    The first reason begins with ``not decided`` if the library cannot decide.

    >>> incompatibilities("backward", "avro", '"int"', "avro", '"long"')
    []
    >>> incompatibilities("backward", "avro", '"bytes"', "avro", '"string"')
    ['not decided: a bytes that is not UTF-8 cannot be read as a string']
    """
    verdict, reasons = compare(mode, old_kind, old_text, new_kind, new_text, rules=rules)
    return [f"not decided: {reason}" for reason in reasons] if verdict == "not decided" else list(reasons)


def _avro(reader: Any, writer: Any) -> list[Problem]:
    return avro_problems(parse_avro(reader), parse_avro(writer))


def _json(reader: Any, writer: Any) -> list[Problem]:
    draft, was = draft_of(reader), draft_of(writer)
    if draft != was:
        return [Problem(f"$schema names draft {draft} in one schema and {was} in the other", False)]
    reasons = json_problems(reader, writer, draft)
    value = witness(reader, writer)
    if value is not None:
        shown = value if len(value) <= QUOTED_LENGTH else f"{value[:QUOTED_LENGTH]}..."
        return [Problem(reason) for reason in (reasons or ["a value that was allowed is not"])] + [
            Problem(f"{shown} was allowed")
        ]
    covers = _covers(reader, writer)
    if covers == "yes" or (not reasons and covers != "no"):
        return []
    if not reasons:
        reasons = ["a value that was allowed is not"]
    return [Problem(reason, covers == "no") for reason in reasons]


def _covers(reader: Any, writer: Any) -> str:
    """Return "yes" if jsonschema-rs proves that the reader allows all values of the writer; else "no" or "unknown"."""
    if is_recursive(reader) or is_recursive(writer):
        return "unknown"  # jsonschema-rs overflows the stack for some of them, which ends the process
    try:
        from jsonschema_rs import canonicalize

        return str(canonicalize(reader).covers(canonicalize(writer))).rpartition(".")[2].lower()
    except Exception:  # older releases do not have the function, and newer releases can reject a schema
        return "unknown"
