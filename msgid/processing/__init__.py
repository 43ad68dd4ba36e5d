"""Handlers whose reprocessing changes nothing (the state-based consistent messaging article).

Every business key has a stream of states, each with the id of the message that made it. A message that comes again is
handled on the state that it was handled on the first time, and so gives the same outputs; nothing is stored.

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

A handler's context (`msgid.processing.context`), the processor (`msgid.processing.processor`), what it stores
(`msgid.processing.store`) and where: `msgid.processing.memory`, `msgid.processing.sqlite`, `msgid.processing.postgres`.
"""

from msgid.processing.context import Context, Handler, Message, Output
from msgid.processing.memory import MemoryStore
from msgid.processing.postgres import PostgresStore
from msgid.processing.processor import Outcome, Processor, TooLate
from msgid.processing.sqlite import SqliteStore
from msgid.processing.store import Store, Version

__all__ = [
    "Context",
    "Handler",
    "MemoryStore",
    "Message",
    "Outcome",
    "Output",
    "PostgresStore",
    "Processor",
    "SqliteStore",
    "Store",
    "TooLate",
    "Version",
]
