"""Iggy's messages: the binary formats of every release, JSON, commands and responses.

>>> from msgid import iggy
>>> message = iggy.Message.new(b"orders_data_2", id=7, headers={"kind": "order"}, layout="h64")
>>> iggy.decode(iggy.encode(message, layout="h64")) == message
True

Each release of Iggy writes one of the layouts in `LAYOUTS`. Readers detect the layout by checksum if it is not given.
`read_log` reads files of any size, and `read_tables` reads them into Arrow tables. All integers are little-endian.
`msgid.iggy.commands` has the commands that create streams and topics.
"""

from msgid.iggy.headers import Header, HeaderKey, HeaderKind
from msgid.iggy.json_form import from_json, to_json
from msgid.iggy.log import decode, decode_log, encode, encode_log, read_log
from msgid.iggy.message import Message, checksum, id_text, id_value
from msgid.iggy.poll import PollResponse, decode_poll, encode_poll
from msgid.iggy.records.producers import Producer
from msgid.iggy.send import Partitioning, SendMessages
from msgid.iggy.table import decode_table, read_tables
from msgid.iggy.wire import LAYOUTS

__all__ = [
    "LAYOUTS",
    "Header",
    "HeaderKey",
    "HeaderKind",
    "Message",
    "Partitioning",
    "PollResponse",
    "Producer",
    "SendMessages",
    "checksum",
    "decode",
    "decode_log",
    "decode_poll",
    "decode_table",
    "encode",
    "encode_log",
    "encode_poll",
    "from_json",
    "id_text",
    "id_value",
    "read_log",
    "read_tables",
    "to_json",
]
