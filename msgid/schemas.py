r"""Schemas of payloads: a registry of versions, and the verdict on a message (the Danube message-structure document).

>>> registry = SchemaRegistry()
>>> schema = registry.register("events", '{"type": "object", "required": ["n"]}')
>>> check(b'{"m": 1}', registry, "events", schema.id, schema.version, policy="enforce")
Verdict(verdict='reject', reason='payload b\'{"m": 1}\': data must contain [\'n\'] properties')
"""

from __future__ import annotations

import io
import json
import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from msgid.compatibility import incompatibilities
from msgid.errors import quote

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Compatibility",
    "IncompatibleSchema",
    "InvalidSchema",
    "Kind",
    "Policy",
    "Schema",
    "SchemaRegistry",
    "Verdict",
    "check",
    "checked_policy",
]

Kind = Literal["json", "avro"]
Policy = Literal["none", "warn", "enforce"]
Compatibility = Literal["none", "backward", "forward", "full"]
Outcome = Literal["accept", "warn", "reject"]


class InvalidSchema(ValueError):
    """A text is no schema of its kind."""


class IncompatibleSchema(ValueError):
    """A schema does not go with the version before it, as its subject's compatibility asks for."""


class Schema(NamedTuple):
    """A version of a subject's schema."""

    id: int
    """Global, from 1."""
    subject: str
    version: int
    """Of the subject, from 1."""
    kind: Kind
    text: str


class Verdict(NamedTuple):
    """What is to be done with a message, and why."""

    verdict: Outcome
    reason: str | None = None


class SchemaRegistry:
    """Subjects and the versions of their schemas, in memory or in a JSON file.

    Args:
        path: the file; it is read if it is there, and replaced as a whole at each change. Default: memory alone.

    Raises:
        InvalidSchema: the file is no registry.

    >>> registry = SchemaRegistry()
    >>> registry.register("events", '{"type": "string"}').version
    1
    >>> registry.set_compatibility("events", "backward")
    >>> try:
    ...     registry.register("events", '{"type": "integer"}')
    ... except IncompatibleSchema as error:
    ...     print(error)
    schema of 'events' is not backward compatible with version 1: a string was allowed
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._schemas: list[Schema] = []
        self._compatibility: dict[str, Compatibility] = {}
        if self._path is not None and self._path.exists():
            try:
                held = json.loads(self._path.read_text(encoding="utf-8"))
                self._schemas = [Schema(**schema) for schema in held["schemas"]]
                self._compatibility = dict(held["compatibility"])
            except (ValueError, TypeError, KeyError) as error:
                raise InvalidSchema(f"{self._path} is no schema registry: {error}") from None

    def register(self, subject: str, text: str, kind: Kind = "json") -> Schema:
        """Add a version of a subject's schema; the text that is its newest version already is not added again.

        Args:
            subject: the schema's name.
            text: JSON Schema, or Avro's JSON.
            kind: ``json`` or ``avro``.

        Raises:
            InvalidSchema: the text is no schema.
            IncompatibleSchema: it does not go with the newest version.
        """
        if kind not in get_args(Kind):
            raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, not {quote(kind)}")
        _validator(kind, text)
        versions = self.versions(subject)
        if versions:
            newest = versions[-1]
            if (newest.kind, newest.text) == (kind, text):
                return newest
            mode = self.compatibility(subject)
            problems = [] if mode == "none" else incompatibilities(mode, newest.kind, newest.text, kind, text)
            if problems:
                raise IncompatibleSchema(
                    f"schema of {quote(subject)} is not {mode} compatible with version {newest.version}: {problems[0]}"
                )
        schema = Schema(len(self._schemas) + 1, subject, len(versions) + 1, kind, text)
        self._schemas.append(schema)
        self._save()
        return schema

    def get(self, id: int) -> Schema | None:
        """Give the schema of a global id, or None."""
        return self._schemas[id - 1] if isinstance(id, int) and 1 <= id <= len(self._schemas) else None

    def versions(self, subject: str) -> list[Schema]:
        """Give a subject's schemas, oldest first."""
        return [schema for schema in self._schemas if schema.subject == subject]

    def subjects(self) -> list[str]:
        """Give the subjects in the order they came."""
        return list(dict.fromkeys(schema.subject for schema in self._schemas))

    def compatibility(self, subject: str) -> Compatibility:
        """Say what a new version of a subject has to be; ``none`` where nothing was set."""
        return self._compatibility.get(subject, "none")

    def set_compatibility(self, subject: str, mode: Compatibility) -> None:
        """Set what a new version has to be: able to read what the one before wrote (``backward``), or the other way."""
        if mode not in get_args(Compatibility):
            raise ValueError(f"compatibility must be one of {', '.join(get_args(Compatibility))}, not {quote(mode)}")
        self._compatibility[subject] = mode
        self._save()

    def _save(self) -> None:
        if self._path is None:
            return
        held = {"schemas": [schema._asdict() for schema in self._schemas], "compatibility": self._compatibility}
        # Written beside it and moved over it: whoever reads sees the one or the other.
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=self._path.parent, delete=False) as file:
            json.dump(held, file, ensure_ascii=False, indent=1)
        os.replace(file.name, self._path)


def check(
    payload: bytes,
    registry: SchemaRegistry,
    subject: str,
    schema_id: int | None,
    schema_version: int | None = None,
    *,
    policy: Policy,
) -> Verdict:
    """Judge a message by its schema.

    Args:
        payload: the message's payload.
        registry: of the schemas.
        subject: that the topic's messages must have.
        schema_id: that the message names, or None.
        schema_version: that the message names, or None.
        policy: ``none`` accepts all; ``warn`` lets pass with the reason what ``enforce`` rejects.

    Returns:
        a verdict.

    >>> check(b"", SchemaRegistry(), "events", None, policy="warn")
    Verdict(verdict='warn', reason='no schema')
    """
    if checked_policy(policy) == "none":
        return ACCEPT
    reason = _problem(payload, registry, subject, schema_id, schema_version)
    return ACCEPT if reason is None else Verdict("warn" if policy == "warn" else "reject", reason)


ACCEPT: Final = Verdict("accept")


def checked_policy(policy: Policy) -> Policy:
    """Give a policy back if it is one.

    Raises:
        ValueError: it is none.
    """
    if policy not in get_args(Policy):
        raise ValueError(f"policy must be one of {', '.join(get_args(Policy))}, not {quote(policy)}")
    return policy


def _problem(
    payload: bytes, registry: SchemaRegistry, subject: str, schema_id: int | None, schema_version: int | None
) -> str | None:
    if schema_id is None:
        return "no schema"
    schema = registry.get(schema_id)
    if schema is None:
        return f"unknown schema {schema_id}"
    if schema.subject != subject:
        return f"schema {schema_id} is of the subject {quote(schema.subject)}, not {quote(subject)}"
    if schema_version is not None and schema_version != schema.version:
        return f"schema {schema_id} is version {schema.version} of {quote(subject)}, not {schema_version}"
    problem = _validator(schema.kind, schema.text)(payload)
    return None if problem is None else f"payload {quote(payload)}: {problem}"


@lru_cache(maxsize=256)
def _validator(kind: Kind, text: str) -> Callable[[bytes], str | None]:
    """Make what says of a payload what is wrong with it."""
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise InvalidSchema(f"schema {quote(text)} is no JSON: {error}") from None
    return _json_validator(text, parsed) if kind == "json" else _avro_validator(text, parsed)


def _json_validator(text: str, parsed: Any) -> Callable[[bytes], str | None]:
    import fastjsonschema

    if not isinstance(parsed, dict | bool):
        raise InvalidSchema(f"schema {quote(text)} is no JSON Schema: neither an object nor a boolean")
    try:
        # Nothing is fetched: a reference to another file is refused.
        validate = fastjsonschema.compile(parsed, handlers=dict.fromkeys(("http", "https", "file", ""), _refuse))
    except Exception as error:  # what the compiler stumbles over is of many types
        raise InvalidSchema(f"schema {quote(text)} is no JSON Schema: {error}") from None

    def problem(payload: bytes) -> str | None:
        try:
            validate(json.loads(payload))
        except fastjsonschema.JsonSchemaValueException as error:
            return str(error.message)
        except (ValueError, RecursionError):
            return "no JSON"
        return None

    return problem


def _refuse(uri: str) -> Any:
    raise ValueError(f"a reference to {uri!r}, outside of the schema")


def _avro_validator(text: str, parsed: Any) -> Callable[[bytes], str | None]:
    import fastavro
    import fastavro.schema

    try:
        schema = fastavro.parse_schema(parsed)
    except Exception as error:
        raise InvalidSchema(f"schema {quote(text)} is no Avro schema: {error}") from None

    def problem(payload: bytes) -> str | None:
        file = io.BytesIO(payload)
        try:
            fastavro.schemaless_reader(file, schema)
        except Exception as error:  # of any type: what random bytes do to it is not documented
            return f"no Avro of the schema: {type(error).__name__} {error}".rstrip()
        left = len(payload) - file.tell()
        return f"{left} bytes after the end of the Avro" if left else None

    return problem
