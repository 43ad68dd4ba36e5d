"""Idempotent processing: handlers for which reprocessing a message changes nothing.

Each business key has a sequence of states, and each state has the ID of the message that made it. A redelivered message
is handled against the state it saw the first time. So it has the same outputs, and no new state is stored.

>>> def count(state, message, context):
...     state = {"seen": (state or {"seen": 0})["seen"] + 1}
...     context.publish({"number": state["seen"]})
...     return state
>>> published = []
>>> processor = Processor(MemoryStore(), count, published.extend)
>>> order = Message("0156F7E71C361B21BC024CCDBE00000000", "customer 7", {"amount": 3})
>>> processor.handle(order).kind, processor.handle(order).kind
('new', 'duplicate')
>>> published[0] == published[1], published[0].body
(True, {'number': 1})

IDs are compared by value: another spelling of an ID or a UUID names the same message. Any other text is an ID too.

`Processor` and `AsyncProcessor` handle messages. A handler takes new IDs, random numbers and the time from its
`Context`. A `MemoryStore`, a `SqliteStore` or a `PostgresStore` stores the states. `msgid.processing.store` describes
the entries, how long they are kept, and when a message is too late. It has the values that a `Store` takes and returns.
"""

from msgid.processing.async_processor import AsyncProcessor
from msgid.processing.context import Context, Handler, Output, run
from msgid.processing.errors import (
    BatchFailed,
    ChangedBody,
    ChangedOutputs,
    InvalidStore,
    MissingTime,
    TooLate,
    TooManyFailures,
)
from msgid.processing.flow import DeadLetter, Outcome
from msgid.processing.memory import MemoryStore
from msgid.processing.postgres import PostgresStore
from msgid.processing.processor import Processor
from msgid.processing.sqlite import SqliteStore
from msgid.processing.store import Store
from msgid.processing.strict_json import dumps, loads
from msgid.shared.handler_message import Message

__all__ = [
    "AsyncProcessor",
    "BatchFailed",
    "ChangedBody",
    "ChangedOutputs",
    "Context",
    "DeadLetter",
    "Handler",
    "InvalidStore",
    "MemoryStore",
    "Message",
    "MissingTime",
    "Outcome",
    "Output",
    "PostgresStore",
    "Processor",
    "SqliteStore",
    "Store",
    "TooLate",
    "TooManyFailures",
    "dumps",
    "loads",
    "run",
]
