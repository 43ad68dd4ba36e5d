"""The rules of `process` for one key: new, duplicate, too late, failed and changed messages."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid._validate import UNIX_EPOCH
from msgid.processing.context import Message, dumps, loads
from spark_ext.streaming._processing.codec import fingerprint, input_text
from spark_ext.streaming._processing.pages import Entry
from spark_ext.streaming._processing.runs import Segments, forget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_ext.streaming._processing.codec import Runner
    from spark_ext.streaming._processing.pages import Bucket, KeyState, Values

__all__ = ["CHANGED", "DUPLICATE", "FAILED", "MALFORMED", "NEW", "TOO_LATE", "Arrival", "Handling", "Settings"]

NEW: Final = "new"
DUPLICATE: Final = "duplicate"
TOO_LATE: Final = "too late"
MALFORMED: Final = "malformed"
FAILED: Final = "failed"
CHANGED: Final = "changed"

OutputRow = tuple[str | None, int | None, str | None, str | None, str | None, str, str, str | None]
"""ID, number, input ID, key, topic, body, kind and reason, as the columns of the result."""


class Settings(NamedTuple):
    """How a query handles messages."""

    columns: tuple[str, ...]
    """The user's columns."""
    body: tuple[int, ...]
    """The places of those columns that are the message's body."""
    retention_ms: int
    remember_ms: int
    attempts: int
    keep_outputs: bool


class Arrival(NamedTuple):
    """A message of a micro-batch."""

    time: int
    """Its own time, microseconds since 1970; the smallest integer if the time is missing."""
    id: str
    has_time: bool
    values: tuple[Any, ...]
    """The values of the body's columns."""


class Handling:
    """Handles the messages of a bucket in one micro-batch.

    Args:
        runner: Runs the handler.
        settings: How it is run.
        values: Where the bucket's state is.
        bucket: The states of the bucket's keys.
        now_ms: The processing time of the micro-batch, which a replay has too, milliseconds since 1970.
        nested: The places in a body of values that a handler could change.
    """

    def __init__(
        self, runner: Runner, settings: Settings, values: Values, bucket: Bucket, now_ms: int, nested: Sequence[int]
    ) -> None:
        self._runner = runner
        self._settings = settings
        self._names = [settings.columns[place] for place in settings.body]
        self._values = values
        self._bucket = bucket
        self._now_ms = now_ms
        self._nested = [self._names[place] for place in nested]
        self.rows: list[OutputRow] = []
        """The rows of the result."""

    def handle(self, key: str, arrivals: list[Arrival]) -> None:
        """Handle the messages of a key, ordered by their times and IDs: rows of a micro-batch come in any order."""
        arrivals.sort(key=lambda arrival: (arrival.time, arrival.id))
        state = self._bucket.key(key)
        horizon = self._now_ms - self._settings.retention_ms
        limit = horizon - self._settings.remember_ms
        changed = forget(self._values, key, state, horizon, limit)
        known = {entry.id: entry for entry in state.recent}
        segments = Segments(self._values, key, state, limit)
        if state.runs or state.forgotten:
            segments.look_up(arrival.id for arrival in arrivals if arrival.id not in known)
        for arrival in arrivals:
            entry = known.get(arrival.id) or segments.find(arrival.id)
            if entry is not None:
                self._again(key, arrival, entry)
            elif (stored := segments.forgotten(arrival.id)) is not None:
                when = (UNIX_EPOCH + timedelta(milliseconds=stored)).isoformat()
                self._set_aside(key, arrival, TOO_LATE, f"the message was handled at {when}, and that is forgotten")
            else:
                made = self._first(key, arrival, state)
                if made is not None:
                    known[arrival.id] = made
                    changed = True
        if changed:
            segments.spill()
            self._bucket.changed(key, state)

    def _first(self, key: str, arrival: Arrival, state: KeyState) -> Entry | None:
        """Handle a message for the first time; return its entry, or None if the handler fails."""
        done = self._run(key, arrival, state.state)
        if isinstance(done, str):
            self._set_aside(key, arrival, FAILED, done)
            return None
        after, outputs = done
        answer = outputs if self._settings.keep_outputs else fingerprint(outputs)
        before = None if self._settings.keep_outputs else state.state
        entry = Entry(arrival.id, self._now_ms, before, answer)
        state.state = after
        state.recent.append(entry)
        self._publish(key, arrival, outputs, NEW)
        return entry

    def _again(self, key: str, arrival: Arrival, entry: Entry) -> None:
        """Answer a message that was handled before."""
        if not isinstance(entry.answer, bytes):
            self._publish(key, arrival, entry.answer, DUPLICATE)
            return
        done = self._run(key, arrival, entry.before)
        if isinstance(done, str):
            self._set_aside(key, arrival, FAILED, f"the message was handled before, and now: {done}")
        elif fingerprint(done[1]) != entry.answer:
            reason = "the outputs differ from those of the first time: the handler or the message's body has changed"
            self._set_aside(key, arrival, CHANGED, reason)
        else:
            self._publish(key, arrival, done[1], DUPLICATE)

    def _run(
        self, key: str, arrival: Arrival, state: bytes | None
    ) -> tuple[bytes, list[tuple[str, str | None, str]]] | str:
        """Run the handler; return the new state and the outputs, or why each attempt failed."""
        timestamp = arrival.time if arrival.has_time else None
        failure = ""
        for _ in range(self._settings.attempts):
            body = dict(zip(self._names, arrival.values, strict=True))
            for name in self._nested:
                body[name] = copy.deepcopy(body[name])
            message = Message(arrival.id, key, body, timestamp)
            try:
                after, outputs = self._runner.run(None if state is None else loads(state), message)
                told = [(output.id, output.topic, dumps(output.body).decode()) for output in outputs]
                return dumps(after), told
            except Exception as error:  # whatever a handler raises is its message's failure alone
                failure = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return failure

    def _publish(self, key: str, arrival: Arrival, outputs: list[tuple[str, str | None, str]], kind: str) -> None:
        for number, (id, topic, body) in enumerate(outputs):
            self.rows.append((id, number, arrival.id, key, topic, body, kind, None))

    def _set_aside(self, key: str, arrival: Arrival, kind: str, reason: str) -> None:
        body = input_text(dict(zip(self._names, arrival.values, strict=True)))
        self.rows.append((None, None, arrival.id, key, None, body, kind, reason))
