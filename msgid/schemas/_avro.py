"""Check an Avro payload: fastavro reads it, within bounds.

fastavro recurses in C without a bound, and creates every value without bytes that a payload claims. So a payload of a
schema that refers to itself, or has records or items without bytes, is first read by the package avro, with a bound.

A schema of another registry is taken as its writers used it: a reader needs neither defaults nor a valid logical type.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, Final

from msgid.schemas._errors import InvalidSchema
from msgid.shared.validate import check_installed, quote

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH: Final = 64
"""The maximum nesting of records, arrays and maps in a payload of a schema without a bound of its own."""
MAX_EMPTY_VALUES: Final = 100_000
"""The maximum number of values without bytes (null, an empty record) in such a payload."""


_LAST_BYTE: Final = 255
_UNREAD: Final = ("default", "aliases", "doc")


class Malformed(ValueError):
    """Raised if a payload exceeds a bound."""


class _Unbounded(ValueError):
    """Raised if a schema lets a short payload have values without a bound."""


def check_strictly(text: str, parsed: Any) -> None:
    """Check a schema by the rules for new schemas: names, symbols, defaults and logical types must be valid.

    Raises:
        InvalidSchema: if the packages fastavro or avro refuse the schema.
    """
    check_installed("an Avro schema", "schemas", "avro")
    import avro.schema
    import fastavro

    names: dict[str, Any] = {}
    try:
        schema = fastavro.parse_schema(parsed, names)
        avro.schema.parse(text)
        misfit = _misfit(schema, names)
    except Exception as error:  # both raise errors of many types
        raise InvalidSchema(f"invalid Avro schema {quote(text)}: {error}") from None
    if misfit is not None:
        raise InvalidSchema(
            f"invalid Avro schema {quote(text)}: the default of the field {misfit} does not fit its type"
        )


def _misfit(schema: Any, names: dict[str, Any]) -> str | None:
    """Return the name of a field whose default does not fit its type; None without one. The packages check some types.

    Args:
        schema: A type that fastavro has parsed.
        names: The definitions of named types.
    """
    inner: list[Any] = []
    if isinstance(schema, list):
        inner = schema
    elif isinstance(schema, dict):
        for field in schema.get("fields", ()):
            if "default" in field and not _fits(field["type"], field["default"], names):
                return quote(field["name"])
            inner.append(field["type"])
        inner += [schema[part] for part in ("items", "values") if part in schema]
    return next((name for one in inner if (name := _misfit(one, names)) is not None), None)


def _fits(schema: Any, default: Any, names: dict[str, Any]) -> bool:
    """Return whether a default, which is JSON, fits a type. A record may lack fields that have a default."""
    from fastavro.validation import validate

    if isinstance(schema, list):
        return any(_fits(branch, default, names) for branch in schema)
    definition = names.get(schema, schema) if isinstance(schema, str) else schema
    kind = definition if isinstance(definition, str) else definition["type"]
    if kind in ("bytes", "fixed"):
        is_text = isinstance(default, str) and all(ord(character) <= _LAST_BYTE for character in default)
        return is_text and (kind == "bytes" or len(default) == definition["size"])
    if kind == "array":
        return isinstance(default, list) and all(_fits(definition["items"], one, names) for one in default)
    if kind in ("map", "record", "error") and not isinstance(default, dict):
        return False
    if kind == "map":
        return all(_fits(definition["values"], one, names) for one in default.values())
    if kind in ("record", "error"):
        own = {field["name"]: field["default"] for field in definition["fields"] if "default" in field}
        values = own | default
        return all(
            field["name"] in values and _fits(field["type"], values[field["name"]], names)
            for field in definition["fields"]
        )
    if kind == "enum":
        return default in definition["symbols"]
    return bool(validate(default, kind, raise_errors=False))


def avro_validator(text: str, parsed: Any) -> Callable[[bytes], str | None]:
    """Return a function that returns the reason against a payload, or None if the payload is valid.

    Raises:
        InvalidSchema: if fastavro cannot read with the schema.
    """
    check_installed("an Avro schema", "schemas", "fastavro")
    import fastavro

    names: dict[str, Any] = {}
    try:
        read = _without(parsed, _ignored_by_readers)
        schema = fastavro.parse_schema(read, names)
        try:
            _has_bytes(schema, names, (), {})
            check_bounds = None
        except _Unbounded:
            check_bounds = _bounded_reader(read)
    except Exception as error:  # fastavro raises errors of many types
        raise InvalidSchema(f"invalid Avro schema {quote(text)}: {error}") from None

    def problem(payload: bytes) -> str | None:
        file = io.BytesIO(payload)
        try:
            if check_bounds is not None:
                check_bounds(file)
                file.seek(0)
            fastavro.schemaless_reader(file, schema)
        except Malformed as error:
            return f"not Avro of the schema: {error}"
        except EOFError:
            return "not Avro of the schema: the payload ends before the value"
        except Exception as error:  # for example text that is not UTF-8, or a timestamp after the year 9999
            reason = str(error).partition("\n")[0]
            return f"not Avro of the schema: {type(error).__name__} {reason}".rstrip()
        rest = len(payload) - file.tell()
        return f"{rest} bytes after the end of the Avro" if rest else None

    return problem


def _without(schema: Any, ignored: Callable[[dict[str, Any]], set[str]]) -> Any:
    """Return a schema whose types and fields lack the names that are ignored in them."""
    if isinstance(schema, list):
        return [_without(branch, ignored) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    names = ignored(schema)
    kept = {key: value for key, value in schema.items() if key not in names}
    for part in ("type", "items", "values", "fields"):
        if part in kept:
            kept[part] = _without(kept[part], ignored)
    return kept


def _ignored_by_readers(schema: dict[str, Any]) -> set[str]:
    """Return the names that a reader of a schema's own messages ignores."""
    read = {key: value for key, value in schema.items() if key not in _UNREAD}
    is_odd = read.get("logicalType") == "decimal" and not is_decimal(read)
    return {*_UNREAD, "logicalType"} if is_odd else {*_UNREAD}


def is_decimal(schema: dict[str, Any]) -> bool:
    """Return whether the logical type decimal of a schema is valid."""
    import fastavro

    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or precision < 1:  # a bool is an int
        return False
    try:
        fastavro.parse_schema({**schema, "name": "n"})
    except Exception:  # fastavro raises errors of many types
        return False
    return True


def without_logical_types(schema: Any) -> Any:
    """Return a schema without its logical types; a field or a default of the same name stays."""
    return _without(schema, lambda _: {"logicalType"})


def _has_bytes(schema: Any, names: dict[str, Any], inside: tuple[str, ...], known: dict[str, bool]) -> bool:
    """Return whether each value of a type has bytes, from a schema that fastavro has parsed.

    Args:
        schema: The type.
        names: The definitions of named types.
        inside: The names of the types around it.
        known: The results for records that were looked at before.

    Raises:
        _Unbounded: if the length of a payload does not bound the number and the depth of its values.
    """
    if len(inside) > MAX_DEPTH:
        raise _Unbounded
    if isinstance(schema, list):
        for branch in schema:
            _has_bytes(branch, names, inside, known)
        return True
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind in ("array", "map"):
        items = schema["items" if kind == "array" else "values"]
        if not _has_bytes(items, names, (*inside, kind), known) and kind == "array":
            raise _Unbounded
        return True
    name = schema if isinstance(schema, str) else schema.get("name", kind)
    definition = names.get(name, {"type": kind})
    if "fields" not in definition:
        return bool(definition["type"] != "null" and definition.get("size", 1))
    if name in inside:
        raise _Unbounded
    if name not in known:
        fields = [_has_bytes(field["type"], names, (*inside, name), known) for field in definition["fields"]]
        known[name] = any(fields)
    if not known[name]:
        raise _Unbounded
    return True


def _bounded_reader(schema: Any) -> Callable[[io.BytesIO], object]:
    """Return a function that reads a payload, and raises `Malformed` if it exceeds a bound."""
    check_installed("an Avro schema that refers to itself", "schemas", "avro")
    from avro.io import BinaryDecoder, DatumReader
    from avro.schema import parse

    parsed = parse(json.dumps(without_logical_types(schema)), validate_names=False)

    class Reader(DatumReader):
        depth, empty = 0, 0

        def read_data(self, writers_schema: Any, readers_schema: Any, decoder: Any) -> object:
            is_value = readers_schema.type == writers_schema.type  # and not a branch that is looked up in a union
            nests = is_value and writers_schema.type in {"record", "error", "array", "map"}
            self.depth += nests
            if self.depth > MAX_DEPTH:
                raise Malformed(f"nested deeper than {MAX_DEPTH} levels")
            before = decoder.reader.tell()
            value = super().read_data(writers_schema, readers_schema, decoder)
            self.depth -= nests
            self.empty += is_value and decoder.reader.tell() == before
            if self.empty > MAX_EMPTY_VALUES:
                raise Malformed(f"more than {MAX_EMPTY_VALUES} values that take no bytes")
            return value

    return lambda file: Reader(parsed).read(BinaryDecoder(file))
