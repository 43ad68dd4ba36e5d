"""The registry of schemas: subjects, their versions, and the compatibility required of a new version."""

from __future__ import annotations

import json
import os
import shutil
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar, get_args

from msgid.schemas._avro import check_strictly
from msgid.schemas._errors import IncompatibleSchema, InvalidSchema
from msgid.schemas._validators import Kind, parse_schema_text, validator
from msgid.schemas.compatibility import check_compatibility
from msgid.shared.validate import check_installed, is_integer, one_of, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Compatibility = Literal["none", "backward", "forward", "full"]
"""The requirement for a new schema; ``full`` means both ``backward`` and ``forward``.

``backward``: it reads the messages of the previous version. ``forward``: the previous version reads its messages.
"""

_Result = TypeVar("_Result")
_LOCK_TIMEOUT: Final = 10.0


class Schema(NamedTuple):
    """A version of a subject's schema."""

    id: int
    """Global ID; a `SchemaRegistry` counts from 1."""
    subject: str | None
    """The subject; None if the source of the schema does not know it."""
    version: int | None
    """Version within the subject, from 1; None if the source of the schema does not know it."""
    kind: Kind
    text: str


class _State(NamedTuple):
    """The content of a registry. Each change creates a new state, so a failed save keeps the old one."""

    schemas: dict[int, Schema]
    compatibility: dict[str, Compatibility]

    def copy(self) -> _State:
        return _State(dict(self.schemas), dict(self.compatibility))

    def versions(self, subject: str) -> list[Schema]:
        return [schema for schema in self.schemas.values() if schema.subject == subject]


class SchemaRegistry:
    """Subjects and the versions of their schemas, in memory or in a JSON file.

    Several processes and threads can write to one file. Each change locks the file (with a ``.lock`` file next to it),
    reads it again and replaces it as a whole. If a save fails, the registry in memory does not change. Reading methods
    use the registry in memory; `reload` reads the file again. A registry that a forked child inherits can only be read.

    Args:
        path: Path of the file, which is read if it exists. Default: memory only.
        lock_timeout: Maximum time to wait for the lock, in seconds.

    Raises:
        InvalidSchema: if the file is not a registry.
        OSError: if the file cannot be read.

    >>> registry = SchemaRegistry()
    >>> registry.register("events", '{"type": "string"}').version
    1
    >>> registry.set_compatibility("events", "backward")
    >>> try:
    ...     registry.register("events", '{"type": "integer"}')
    ... except IncompatibleSchema as error:
    ...     print(error)
    schema of 'events' is not backward compatible with version 1: values that were allowed are not: {"type": "string"}
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, lock_timeout: float = _LOCK_TIMEOUT) -> None:
        # Two spellings of the path of a file must share one lock.
        self._path = None if path is None else Path(os.path.realpath(path))
        self._lock_timeout = lock_timeout
        self._state = _State({}, {})
        self._mutex, self._process = threading.Lock(), os.getpid()
        self.reload()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in {"_mutex", "_process"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._mutex, self._process = threading.Lock(), os.getpid()

    def reload(self) -> None:
        """Read the file again if it exists.

        Raises:
            InvalidSchema: if the file is not a registry.
            OSError: if the file cannot be read.
        """
        if self._path is not None:
            with self._alone():
                self._state = self._read(self._path)

    def register(self, subject: str, text: str, kind: Kind = "json") -> Schema:
        """Add a version of a subject's schema; a text that equals the newest version is not added again.

        Args:
            subject: Name of the schema.
            text: JSON Schema or Avro schema, as JSON text.
            kind: ``json`` or ``avro``.

        Returns:
            The added version, or the newest version if it has the same text.

        Raises:
            InvalidSchema: if the text is not a schema.
            IncompatibleSchema: if the schema is not compatible with the newest version, or the library cannot decide.
            TimeoutError: if another process or thread holds the lock for more than ``lock_timeout`` seconds.
            OSError: if the file cannot be read or written.
        """
        one_of("kind", kind, get_args(Kind))
        _checked_subject(subject)
        parsed = parse_schema_text(text)
        validator(kind, text)
        if kind == "avro":
            check_strictly(text, parsed)

        def add(state: _State) -> Schema:
            versions = state.versions(subject)
            if versions:
                newest = versions[-1]
                if (newest.kind, newest.text) == (kind, text):
                    return newest
                mode = state.compatibility.get(subject, "none")
                verdict, reasons = check_compatibility(mode, newest.kind, newest.text, kind, text)
                if verdict != "compatible":
                    asked = f"{mode} compatible with version {newest.version}"
                    known = "not decided: " if verdict == "not decided" else ""
                    raise IncompatibleSchema(f"schema of {quote(subject)} is not {asked}: {known}{reasons[0]}")
            version = (versions[-1].version or 0) + 1 if versions else 1
            schema = Schema(max(state.schemas, default=0) + 1, subject, version, kind, text)
            state.schemas[schema.id] = schema
            return schema

        return self._change(add)

    def get(self, id: int, /) -> Schema | None:
        """Return the schema with a global ID, or None."""
        return self._state.schemas.get(id) if is_integer(id) else None

    def versions(self, subject: str) -> list[Schema]:
        """Return a subject's schemas, oldest first."""
        return self._state.versions(subject)

    def subjects(self) -> list[str]:
        """Return the subjects in the order of their first registration."""
        return list(dict.fromkeys(one.subject for one in self._state.schemas.values() if one.subject is not None))

    def compatibility(self, subject: str) -> Compatibility:
        """Return the compatibility required of new versions of a subject; ``none`` by default."""
        return self._state.compatibility.get(subject, "none")

    def set_compatibility(self, subject: str, mode: Compatibility) -> None:
        """Set the compatibility required of a new version of a subject with the newest version.

        Args:
            subject: Name of the schema.
            mode: ``none``; ``backward``: the new version reads what the old one wrote; ``forward``: the old version
                reads what the new one writes; ``full``: both.

        Raises:
            TimeoutError: if another process or thread holds the lock for more than ``lock_timeout`` seconds.
            OSError: if the file cannot be read or written.
        """
        one_of("compatibility", mode, get_args(Compatibility))
        _checked_subject(subject)

        def set_mode(state: _State) -> None:
            state.compatibility[subject] = mode

        self._change(set_mode)

    def _alone(self) -> threading.Lock:
        """Return the lock of this process's threads; a child may inherit it locked, and must not wait for it.

        Raises:
            RuntimeError: if the process is a fork of the one that made the registry.
        """
        if os.getpid() != self._process:
            raise RuntimeError("cannot change a SchemaRegistry after a fork: make one in each process")
        return self._mutex

    def _change(self, change: Callable[[_State], _Result]) -> _Result:
        """Apply a change to a copy of the newest state, save the copy, and use it only after the save."""
        with self._alone():
            if self._path is None:
                state = self._state.copy()
                result = change(state)
            else:
                with _locked(self._path, self._lock_timeout):
                    before = self._read(self._path)
                    state = before.copy()
                    result = change(state)
                    if state != before:
                        schemas = [schema._asdict() for schema in state.schemas.values()]
                        _write_json(self._path, {"schemas": schemas, "compatibility": state.compatibility})
            self._state = state
            return result

    def _read(self, path: Path) -> _State:
        """Read the file, and check that it still contains every schema that this registry has read or saved."""
        state = _parsed(path, _read_json(path))
        for id, schema in self._state.schemas.items():
            if state.schemas.get(id) != schema:
                raise InvalidSchema(f"{path} does not hold schema {id} as before: it was replaced by another registry")
        for id, schema in state.schemas.items():
            if id not in self._state.schemas:
                try:
                    validator(schema.kind, schema.text)
                except InvalidSchema as error:
                    raise InvalidSchema(f"{path} holds an invalid schema {id}: {error}") from None
        return state


def _parsed(path: Path, stored: Any) -> _State:
    state = _State({}, {})
    try:
        for item in stored["schemas"]:
            schema = Schema(**item)
            types = [type(value) for value in schema]
            if types != [int, str, int, str, str] or schema.kind not in get_args(Kind) or schema.id in state.schemas:
                raise ValueError(f"schema {quote(item)}")
            state.schemas[schema.id] = schema
        for subject, mode in stored["compatibility"].items():
            if mode not in get_args(Compatibility):
                raise ValueError(f"compatibility {quote(mode)}")
            state.compatibility[subject] = mode
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidSchema(f"{path} is not a schema registry: {type(error).__name__} {error}") from None
    return state


# --- the file: locked by one writer at a time, and replaced as a whole ---------------------------------------------


@contextmanager
def _locked(path: Path, timeout: float) -> Iterator[None]:
    """Hold the lock of a file against other processes and against other threads of this process.

    The operating system releases the lock of a process that ends.

    Raises:
        TimeoutError: if another process or thread holds the lock for more than ``timeout`` seconds.
    """
    check_installed("a registry in a file", "schemas", "filelock")
    import filelock

    # Each change has its own lock object, because two threads with the same object would both hold the lock.
    lock = filelock.FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=timeout)
    except filelock.Timeout:
        raise TimeoutError(f"cannot lock {path}: another writer holds the lock for {timeout:g} seconds") from None
    try:
        yield
    finally:
        lock.release()


def _read_json(path: Path) -> Any:
    """Return the JSON value of a file, or that of an empty registry if the file is missing.

    Raises:
        InvalidSchema: if the content is not JSON.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {"schemas": [], "compatibility": {}}
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"{path} is not a schema registry: {error}") from None


def _write_json(path: Path, value: Any) -> None:
    """Replace a file as a whole; the caller holds its lock.

    A reader finds either the old content or the new one. The temporary file has one name, so a writer that was killed
    leaves at most one file, which the next writer overwrites.
    """
    beside = path.with_name(f".{path.name}.tmp")
    try:
        with beside.open("w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            shutil.copymode(path, beside)
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def _checked_subject(subject: str) -> None:
    if not isinstance(subject, str):
        raise TypeError(f"subject must be text, got {quote(subject)}")
    try:
        subject.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"subject must be text without unpaired surrogates, got {quote(subject)}") from None
