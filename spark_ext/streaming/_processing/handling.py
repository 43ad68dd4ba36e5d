"""The rules of `process` for one key: new, duplicate, too late, failed and changed messages."""

from __future__ import annotations

import copy
from asyncio import CancelledError
from datetime import timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid._moments import UNIX_EPOCH
from msgid.processing._json import dumps, loads, text
from msgid.processing.context import Message, fingerprint
from spark_ext.streaming._processing.codec import input_text
from spark_ext.streaming._processing.packing import NO_TIME
from spark_ext.streaming._processing.pages import Entry, mark
from spark_ext.streaming._processing.runs import Segments, forget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msgid.processing.context import Output
    from spark_ext.streaming._pages import Values
    from spark_ext.streaming._processing.codec import Runner
    from spark_ext.streaming._processing.pages import Bucket, KeyState

NEW: Final = "new"
DUPLICATE: Final = "duplicate"
TOO_LATE: Final = "too late"
MALFORMED: Final = "malformed"
FAILED: Final = "failed"
CHANGED: Final = "changed"

_Done = tuple[bytes, "list[tuple[str, str | None, str]]", "list[Output]"]
"""The new state, the outputs as ID, topic and JSON, and the outputs."""
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


Arrival = tuple[int, str, tuple[Any, ...]]
"""A message of a micro-batch: its own time in microseconds since 1970 or `NO_TIME`, its ID, the values of its body."""
_ORDER: Final = itemgetter(0, 1)


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
        self._horizon = now_ms - settings.retention_ms
        self._limit = self._horizon - settings.remember_ms
        self._nested = [self._names[place] for place in nested]
        self.rows: list[OutputRow] = []
        """The rows of the result."""

    def handle(self, key: str, arrivals: list[Arrival]) -> None:
        """Handle the messages of a key, ordered by their times and IDs: rows of a micro-batch come in any order."""
        if len(arrivals) > 1:
            arrivals.sort(key=_ORDER)
        state = self._bucket.key(key)
        changed = forget(self._values, key, state, self._horizon, self._limit)
        segments = Segments(self._values, key, state, self._limit)
        has_older = bool(state.runs or state.forgotten)
        if has_older:
            segments.look_up([arrival[1] for arrival in arrivals])
        recent: dict[str, Entry] | None = None
        fresh: dict[str, Entry] = {}
        marks = []
        for arrival in arrivals:
            id = arrival[1]
            marked = mark(id)
            entry = fresh.get(id)
            if entry is None and state.ids and state.holds(marked):
                if recent is None:
                    recent = {entry.id: entry for entry in state.entries()}
                entry = recent.get(id)
            if entry is None and has_older:
                entry = segments.find(id)
            if entry is not None:
                self._again(key, arrival, entry)
            elif has_older and (stored := segments.forgotten(id)) is not None:
                when = (UNIX_EPOCH + timedelta(milliseconds=stored)).isoformat()
                self._set_aside(key, arrival, TOO_LATE, f"the message was handled at {when}, and that is forgotten")
            else:
                done = self._run(key, arrival, state.state)
                if isinstance(done, str):
                    self._set_aside(key, arrival, FAILED, done)
                else:
                    fresh[id] = self._first(key, arrival, state, done)
                    marks.append(marked)
        if fresh or changed:
            segments.add(list(fresh.values()), marks)
            self._bucket.changed(key, state)

    def _first(self, key: str, arrival: Arrival, state: KeyState, done: _Done) -> Entry:
        """Store the result of a message that was handled for the first time; return its entry."""
        after, outputs, published = done
        if self._settings.keep_outputs:
            entry = Entry(arrival[1], self._now_ms, None, outputs)
        else:
            entry = Entry(arrival[1], self._now_ms, state.state, fingerprint(published))
        state.state = after
        self._publish(key, arrival, outputs, NEW)
        return entry

    def _again(self, key: str, arrival: Arrival, entry: Entry) -> None:
        """Return the rows of a message that was handled before."""
        if not isinstance(entry.answer, bytes):
            self._publish(key, arrival, entry.answer, DUPLICATE)
            return
        done = self._run(key, arrival, entry.before)
        if isinstance(done, str):
            self._set_aside(key, arrival, FAILED, f"the message was handled before, and now: {done}")
        elif fingerprint(done[2]) != entry.answer:
            reason = "the outputs differ from those of the first time: the handler or the message's body has changed"
            self._set_aside(key, arrival, CHANGED, reason)
        else:
            self._publish(key, arrival, done[1], DUPLICATE)

    def _run(self, key: str, arrival: Arrival, state: bytes | None) -> _Done | str:
        """Run the handler; return the new state and the outputs, or why each attempt failed."""
        time, id, values = arrival
        timestamp = None if time == NO_TIME else time
        failure = ""
        for _ in range(self._settings.attempts):
            body = dict(zip(self._names, values, strict=True))
            for name in self._nested:
                body[name] = copy.deepcopy(body[name])
            try:
                before = None if state is None else loads(state)
                after, outputs = self._runner.run(before, Message(id, key, body, timestamp))
                return dumps(after), [(output.id, output.topic, text(output.body)) for output in outputs], outputs
            except (Exception, SystemExit, CancelledError) as error:  # an error of a handler fails only its message
                failure = _words(error)
        return failure

    def _publish(self, key: str, arrival: Arrival, outputs: list[tuple[str, str | None, str]], kind: str) -> None:
        for number, (id, topic, body) in enumerate(outputs):
            self.rows.append((id, number, arrival[1], key, topic, body, kind, None))

    def _set_aside(self, key: str, arrival: Arrival, kind: str, reason: str) -> None:
        body = input_text(dict(zip(self._names, arrival[2], strict=True)))
        self.rows.append((None, None, arrival[1], key, None, body, kind, reason))


def _words(error: BaseException) -> str:
    """Return the type and the text of an error, as text that Spark can store."""
    try:
        text = str(error)
    except Exception:  # a handler's own class of errors can raise here
        text = "its text cannot be made"
    name = type(error).__name__
    return (f"{name}: {text}" if text else name).encode("utf-8", "replace").decode()
