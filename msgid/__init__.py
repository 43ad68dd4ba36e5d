"""Message identifiers: mint, read, translate and derive them.

>>> import msgid
>>> id = msgid.parse("0156F7E71C361B21BC024CCDBE00000000")
>>> id.mac, id.pid, id.time.year, id.sequence
('56:f7:e7:1c:36:1b', 8636, 2022, 0)

An id's life, module by module: its layout (`msgid.layout`), the value (`msgid.identifier`), the rule it is minted by
(`msgid.minting`), the generators (`msgid.generator`) with their node (`msgid.node`) and batches (`msgid.batch`), the
older forms (`msgid.v0`), reading any of them (`msgid.parsing`), and ids made from other things (`msgid.derived`).
What ids travel in: Iggy's messages (`msgid.iggy`) and Danube's (`msgid.danube`), with their state (`msgid.state`),
names (`msgid.names`) and schemas (`msgid.schemas`). What becomes of messages: `msgid.retention` and `msgid.cleaner`
remove them when they expire, `msgid.processing` handles each of them once.
"""

from msgid._native import BACKEND as backend
from msgid.batch import IdBatch
from msgid.columns import IdColumns, parse_batch
from msgid.derived import derive_id, position_id
from msgid.errors import InvalidMessage, InvalidMessageId, TruncatedMessage
from msgid.generator import Generator, explain_node, generate, generate_batch, generate_hex
from msgid.identifier import MessageId
from msgid.names import normalize_name
from msgid.node import NodeChoice
from msgid.parsing import is_valid, parse, translate_v0
from msgid.state import MessageState
from msgid.v0 import BrokerOffsetId, ClientUniqueId

__all__ = [
    "BrokerOffsetId",
    "ClientUniqueId",
    "Generator",
    "IdBatch",
    "IdColumns",
    "InvalidMessage",
    "InvalidMessageId",
    "MessageId",
    "MessageState",
    "NodeChoice",
    "TruncatedMessage",
    "backend",
    "derive_id",
    "explain_node",
    "generate",
    "generate_batch",
    "generate_hex",
    "is_valid",
    "normalize_name",
    "parse",
    "parse_batch",
    "position_id",
    "translate_v0",
]

__version__ = "0.1.0"
