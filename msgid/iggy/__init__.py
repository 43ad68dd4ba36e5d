"""Iggy's messages: bytes of the wire and of segment files, JSON, commands and responses.

>>> from msgid import iggy
>>> message = iggy.Message.new(b"orders_data_2", id=7, timestamp=1692643862990111, headers={"kind": "order"})
>>> iggy.decode(iggy.encode(message)) == message
True

The numbers of the layout are in `msgid.iggy.wire`, headers in `msgid.iggy.headers`, one message in
`msgid.iggy.message`, many in `msgid.iggy.log` (files of any size) and `msgid.iggy.table` (Arrow), JSON in
`msgid.iggy.json_form`, the rest in `msgid.iggy.commands`. All integers are little-endian.
"""

from msgid.iggy.commands import CreateStream, CreateTopic, Stream, Topic
from msgid.iggy.headers import Header, HeaderKind
from msgid.iggy.json_form import from_json, messages_from_json, to_json
from msgid.iggy.log import PollResponse, decode_log, decode_poll, encode_log, encode_poll, read_log
from msgid.iggy.message import Message, checksum, decode, encode, id_text, id_value
from msgid.iggy.table import decode_table, read_tables
from msgid.iggy.wire import LAYOUTS

__all__ = [
    "LAYOUTS",
    "CreateStream",
    "CreateTopic",
    "Header",
    "HeaderKind",
    "Message",
    "PollResponse",
    "Stream",
    "Topic",
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
    "messages_from_json",
    "read_log",
    "read_tables",
    "to_json",
]
