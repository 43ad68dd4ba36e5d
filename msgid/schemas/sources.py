"""Schemas by ID from other registries: a lookup function, or a client of Confluent's Schema Registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from msgid.schemas._errors import InvalidSchema
from msgid.schemas._validators import Kind
from msgid.schemas.registry import Schema
from msgid.shared.validate import in_range, one_of, quote

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgid.schemas.validation import SchemaSource

_CACHED: Final = 10_000
_KINDS: Final[dict[str, Kind]] = {"AVRO": "avro", "JSON": "json"}


def from_lookup(lookup: Callable[[int], Schema | str | None], *, kind: Kind = "json") -> SchemaSource:
    """Return a source of schemas by ID from a function; found schemas are kept in memory.

    `check_schema` compares a message's subject and version only with a `Schema` that has them.

    Args:
        lookup: Function of an ID that returns a `Schema` or the text of a schema. For an unknown ID, it returns None or
            raises LookupError (such as KeyError). For `spark_ext.check_schema`, it must be picklable.
        kind: Kind of a schema that is returned as text: ``json`` or ``avro``.

    >>> from msgid.schemas import check_schema
    >>> source = from_lookup({7: '{"type": "integer"}'}.__getitem__)
    >>> check_schema(b"1", source, None, 7, policy="enforce"), check_schema(b"1", source, None, 8, policy="enforce")
    (Verdict(verdict='accept', reason=None), Verdict(verdict='reject', reason='unknown schema 8'))
    """
    one_of("kind", kind, get_args(Kind))
    return _Lookup(lookup, kind)


def from_confluent(client: Any) -> SchemaSource:
    """Return a source of schemas by ID from a client of Confluent's Schema Registry; found schemas stay in memory.

    The registry does not return the subject of an ID, so `check_schema` compares neither subject nor version.

    Args:
        client: Object with a method ``get_schema(id)``, such as
            ``confluent_kafka.schema_registry.SchemaRegistryClient``, or a function without arguments that creates one.
            For `spark_ext.check_schema`, pass a function: each process creates its own client.

    The method returns an object with ``schema_str``, ``schema_type`` (``AVRO`` or ``JSON``) and ``references``. An
    error with the HTTP status 404 means that the ID is unknown; every other error reaches the caller of
    `check_schema`.

    >>> from types import SimpleNamespace
    >>> from msgid.schemas import check_schema, frame
    >>> found = SimpleNamespace(schema_str='"long"', schema_type="AVRO", references=[])
    >>> client = SimpleNamespace(get_schema=lambda id: found)
    >>> check_schema(frame(7, bytes([2])), from_confluent(client), None, None, policy="enforce", framing="confluent")
    Verdict(verdict='accept', reason=None)
    """
    return _Lookup(_Confluent(client), "avro")


class _Lookup:
    def __init__(self, lookup: Callable[[int], Schema | str | None], kind: Kind) -> None:
        self._lookup = lookup
        self._kind = kind
        self._schemas: dict[int, Schema] = {}

    def get(self, id: int, /) -> Schema | None:
        if id in self._schemas:
            return self._schemas[id]
        try:
            schema = self._lookup(id)
        except LookupError:
            return None
        if schema is None:
            return None
        if isinstance(schema, str):
            schema = Schema(id, None, None, self._kind, schema)
        elif not isinstance(schema, Schema):
            raise TypeError(f"a lookup must return a Schema, text or None, got {quote(schema)}")
        if len(self._schemas) < _CACHED:
            self._schemas[id] = schema
        return schema


class _Confluent:
    def __init__(self, client: Any) -> None:
        self._given = client
        self._client: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_given": self._given, "_client": None}

    def __call__(self, id: int) -> Schema | None:
        if not in_range(id, 0, (1 << 32) - 1):
            return None
        if self._client is None:
            is_factory = isinstance(self._given, type) or not hasattr(self._given, "get_schema")
            self._client = self._given() if is_factory else self._given
        try:
            schema = self._client.get_schema(id)
        except Exception as error:
            if getattr(error, "http_status_code", None) == _NOT_FOUND:
                return None
            raise
        kind = _KINDS.get(str(schema.schema_type).upper())
        if kind is None:
            raise InvalidSchema(f"its type must be AVRO or JSON, got {quote(schema.schema_type)}")
        if getattr(schema, "references", None):
            raise InvalidSchema("it refers to other schemas, which is not supported")
        return Schema(id, None, None, kind, schema.schema_str)


_NOT_FOUND: Final[Literal[404]] = 404
