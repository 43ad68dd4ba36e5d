"""The tables in tests/vectors: real IDs from public logs, and the output of RocketMQ's own Java for them."""

import base64
import csv
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
PROGRAMS = TESTS / "programs"
README = TESTS.parent / "README.md"
FOLDER = TESTS / "vectors"
REAL_IDS_FILE = FOLDER / "real_ids.tsv"


def _kind_of(origin):
    """Return the kind that `parse` must return for an ID of an origin in the table."""
    if origin.startswith("v1"):
        return "v1"
    if "offset" in origin:
        return "v0-broker-offset"
    return "v0-ambiguous" if "cpp_LE" in origin else "v0-client-unique"


class RealId(NamedTuple):
    """A real ID, the kind that `parse` must return, and the output of RocketMQ's Java."""

    id: str
    kind: str
    java_decoded: str
    """``host|port|offset`` of MessageDecoder.decodeMessageId, or ``!`` and an exception."""
    java_ip: str
    """MessageClientIDSetter.getIPStrFromID."""
    java_pid: int
    """MessageClientIDSetter.getPidFromID."""


class UniqIdTime(NamedTuple):
    """The result of MessageClientIDSetter.getNearlyTimeFromID for an ID, a time zone and a time."""

    zone: str
    id: str
    now: datetime
    born: datetime


def _rows(name):
    with open(FOLDER / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def from_ms(ms):
    """Return the exact datetime of a number of Unix milliseconds."""
    return datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=int(ms))


REAL_IDS = [
    RealId(row["id"], _kind_of(row["kind"]), row["java_decode_message_id"], row["java_ip"], int(row["java_pid"]))
    for row in _rows("real_ids.tsv")
]
UNIQ_ID_TIMES = [
    UniqIdTime(row["timezone"], row["id"], from_ms(row["now_ms_before"]), from_ms(row["born_ms"]))
    for row in _rows("uniq_id_times.tsv")
]


ROCKETMQ = json.loads((FOLDER / "rocketmq_servers.json").read_text(encoding="utf-8"))
"""Records by clients and the broker of RocketMQ 5.4.0 of the messages that the clients sent."""


def redelivered(columns):
    """Return the rows that consumers of RocketMQ 5.4.0 got, redelivered ones included, as an Arrow table."""
    import pyarrow as pa

    def value(row, name):
        if name == "body":
            return base64.b64decode(row[name])
        return json.dumps(row[name]) if name == "properties" else row[name]

    return pa.table({name: [value(row, name) for row in ROCKETMQ["redelivered"]] for name in columns})


class ServerId(NamedTuple):
    """The ID of a message that a client sent to RocketMQ 5.4.0, and what client and broker recorded of it."""

    client: str
    tz: str | None
    """The time zone of the client's JVM; None for IDs that do not depend on it."""
    pid: int
    number: int
    """The number of the message among those of its process."""
    topic: str
    queue: int
    queue_offset: int
    id: str
    before: datetime
    """The client's clock just before the send."""
    after: datetime
    """The client's clock just after it."""
    born: datetime
    stored: datetime
    offset_id: str
    """The broker's own ID of the message."""
    physical: int
    """The offset in the broker's commit log."""


SERVER_IDS = [
    ServerId(**{**row, **{name: from_ms(row[name]) for name in ("before", "after", "born", "stored")}})
    for row in ROCKETMQ["ids"]
]
