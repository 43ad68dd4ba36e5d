"""RocketMQ's commit log, read as its ``MessageDecoder`` and ``CommitLog`` write it."""

import ipaddress
import struct
import zlib
from typing import NamedTuple

MAGIC = -626843481
MAGIC_OF_LONG_TOPICS = -626843477
BORN_ON_IPV6 = 1 << 4
STORED_ON_IPV6 = 1 << 5
TOPIC_LENGTH = {MAGIC: ">B", MAGIC_OF_LONG_TOPICS: ">H"}


class LogRecord(NamedTuple):
    """One message of a commit log."""

    size: int
    topic: str
    queue: int
    queue_offset: int
    position: int
    sys_flag: int
    flag: int
    born: int
    """Milliseconds since 1970."""
    born_host: tuple[str, int]
    stored: int
    """Milliseconds since 1970."""
    store_host: tuple[str, int]
    reconsume: int
    prepared: int
    body_crc: int
    body: bytes
    properties: dict[str, str]

    def row(self, broker):
        """Return the record as a row of RocketMQ's connector for Spark."""
        return {
            "topic": self.topic,
            "flag": self.flag,
            "body": self.body,
            "properties": self.properties,
            "brokerName": broker,
            "queueId": self.queue,
            "queueOffset": self.queue_offset,
            "bornTimestamp": self.born,
            "storeTimestamp": self.stored,
        }


class _Reader:
    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def take(self, length):
        self.at += length
        assert self.at <= len(self.raw), "a record is shorter than its fields"
        return self.raw[self.at - length : self.at]

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def host(self, is_ipv6):
        address = ipaddress.ip_address(self.take(16 if is_ipv6 else 4))
        return str(address), self.number(">i")


def read_record(raw, start=0):
    """Return the record that begins at a place of a commit log; None at the end of the written part."""
    size, magic = struct.unpack_from(">ii", raw, start) if len(raw) >= start + 8 else (0, 0)
    if magic not in TOPIC_LENGTH:
        return None
    reader = _Reader(raw[start + 8 : start + size])
    crc, queue, flag, queue_offset, position, sys_flag, born = struct.unpack(">iiiqqiq", reader.take(40))
    born_host = reader.host(sys_flag & BORN_ON_IPV6)
    stored = reader.number(">q")
    store_host = reader.host(sys_flag & STORED_ON_IPV6)
    reconsume, prepared = reader.number(">i"), reader.number(">q")
    body = reader.take(reader.number(">i"))
    assert zlib.crc32(body) & 0x7FFFFFFF == crc, "the checksum of a body is wrong"
    topic = reader.take(reader.number(TOPIC_LENGTH[magic])).decode()
    pairs = reader.take(reader.number(">H")).decode().split("\2")
    properties = dict(pair.split("\1", 1) for pair in pairs if pair)
    return LogRecord(
        size, topic, queue, queue_offset, position, sys_flag, flag, born, born_host, stored, store_host, reconsume,
        prepared, crc, body, properties,
    )  # fmt: skip


def read_log(raw):
    """Yield the records of a commit-log file up to the end of the written part."""
    at = 0
    while (record := read_record(raw, at)) is not None:
        yield record
        at += record.size
