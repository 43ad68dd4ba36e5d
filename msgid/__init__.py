"""Message IDs: generate, parse, translate and derive them.

>>> import msgid
>>> id = msgid.parse("0156F7E71C361B21BC024CCDBE00000000")
>>> id.mac, id.pid, id.time.year, id.sequence
('56:f7:e7:1c:36:1b', 8636, 2022, 0)

`msgid.layout` defines the bytes of an ID; `msgid.ids` makes and parses IDs. `msgid.iggy`, `msgid.danube`,
`msgid.kafka` and `msgid.rocketmq` are the message formats that contain IDs. `msgid.messages` is their shared part, and
`msgid.schemas` validates payloads. `msgid.retention` deletes expired messages. `msgid.processing` runs idempotent
handlers.
"""

from msgid.errors import InvalidMessage, InvalidMessageId, TruncatedMessage
from msgid.ids._native import BACKEND as backend
from msgid.ids.batch import IdBatch
from msgid.ids.bulk import IdColumns, parse_batch
from msgid.ids.derived import derive_id, position_id
from msgid.ids.generator import Generator, explain_node, generate, generate_batch, generate_hex, reseed
from msgid.ids.message_id import MessageId
from msgid.ids.parsing import is_valid, parse, translate_v0
from msgid.ids.pseudonyms import pseudonymize
from msgid.ids.v0 import BrokerOffsetId, ClientUniqueId
from msgid.messages import MessageState

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
    "TruncatedMessage",
    "backend",
    "derive_id",
    "explain_node",
    "generate",
    "generate_batch",
    "generate_hex",
    "is_valid",
    "parse",
    "parse_batch",
    "position_id",
    "pseudonymize",
    "reseed",
    "translate_v0",
]

__version__ = "0.3.0.dev0"
