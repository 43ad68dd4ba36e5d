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

TYPE_CHECKING = False  # the import of `typing` would take longer than that of this module
if TYPE_CHECKING:
    from msgid.errors import InvalidMessage, InvalidMessageId, TruncatedMessage
    from msgid.ids._native import BACKEND as backend
    from msgid.ids.batch import IdBatch
    from msgid.ids.bulk import parse_batch
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

# A module is imported when one of its names is first used (PEP 562).
_HOMES = {
    "BrokerOffsetId": "ids.v0",
    "ClientUniqueId": "ids.v0",
    "Generator": "ids.generator",
    "IdBatch": "ids.batch",
    "InvalidMessage": "errors",
    "InvalidMessageId": "errors",
    "MessageId": "ids.message_id",
    "MessageState": "messages",
    "TruncatedMessage": "errors",
    "backend": "ids._native",
    "derive_id": "ids.derived",
    "explain_node": "ids.generator",
    "generate": "ids.generator",
    "generate_batch": "ids.generator",
    "generate_hex": "ids.generator",
    "is_valid": "ids.parsing",
    "parse": "ids.parsing",
    "parse_batch": "ids.bulk",
    "position_id": "ids.derived",
    "pseudonymize": "ids.pseudonyms",
    "reseed": "ids.generator",
    "translate_v0": "ids.parsing",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = import_module(f"{__name__}.{_HOMES[name]}")
    value = globals()[name] = getattr(home, "BACKEND" if name == "backend" else name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__version__ = "0.3.0.dev0"
