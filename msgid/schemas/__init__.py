r"""Schemas of payloads: a registry of versions, checks of messages, and compatibility.

The Danube message-structure document defines the registry and the policies.

>>> registry = SchemaRegistry()
>>> schema = registry.register("events", '{"type": "object", "required": ["n"]}')
>>> check_schema(b'{"m": 1}', registry, "events", schema.id, schema.version, policy="enforce")
Verdict(verdict='reject', reason='payload b\'{"m": 1}\': "n" is a required property')
"""

from msgid.schemas._errors import IncompatibleSchema, InvalidSchema
from msgid.schemas.compatibility import check_compatibility
from msgid.schemas.registry import Schema, SchemaRegistry
from msgid.schemas.sources import from_confluent, from_lookup
from msgid.schemas.validation import SchemaSource, check_schema, frame, unframe

__all__ = [
    "IncompatibleSchema",
    "InvalidSchema",
    "Schema",
    "SchemaRegistry",
    "SchemaSource",
    "check_compatibility",
    "check_schema",
    "frame",
    "from_confluent",
    "from_lookup",
    "unframe",
]
