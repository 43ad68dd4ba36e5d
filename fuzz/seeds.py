"""The first inputs of each program, from the recorded messages in ``tests/vectors`` and frames of every layout."""

from __future__ import annotations

import base64
import gzip
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helpers.iggy_files import messages

from msgid import iggy
from msgid.processing.strict_json import dumps

if TYPE_CHECKING:
    from collections.abc import Iterator

VECTORS = Path(__file__).parents[1] / "tests" / "vectors"
MOST = 6000
"""The bytes of a seed; libFuzzer is slower on longer ones."""
POLL, FROM_JSON, LIST_OF_JSON, COMMAND, DANUBE = 5, 6, 7, 8, 9
DANUBE_JSON, DANUBE_ID, AVRO, JSON, RECORD, PROPERTIES, STATE = 10, 11, 12, 13, 14, 15, 16


def vectors(name: str) -> Any:
    """Return a file of recorded messages."""
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


def recorded(value: Any, layout: str | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield the layout and the bytes of every log, poll and message in a file of vectors."""
    if isinstance(value, list):
        for item in value:
            yield from recorded(item, layout)
    if not isinstance(value, dict):
        return
    layout = value.get("layout", layout)
    for name, item in value.items():
        if not isinstance(item, str) or layout not in iggy.LAYOUTS:
            yield from recorded(item, layout)
        elif name.endswith("_gz"):
            yield layout, gzip.decompress(base64.b64decode(item))
        elif name == "hex":
            yield layout, bytes.fromhex(item)


def frames() -> Iterator[tuple[str, bytes]]:
    """Yield the layout and the bytes of logs, recorded and written here."""
    for file in sorted(VECTORS.glob("iggy*.json")):
        yield from recorded(json.loads(file.read_text(encoding="utf-8")))
    chance = random.Random(1)
    for layout in iggy.LAYOUTS:
        for count in (1, 2, 5):
            yield layout, iggy.encode_log(messages(chance, layout, count), layout)


def scan() -> Iterator[bytes]:
    """Yield the seeds of `scan.c` and `compare_scan.py`."""
    for layout, data in frames():
        yield bytes([iggy.LAYOUTS[layout].code, 0]) + data


def ids() -> Iterator[bytes]:
    """Yield the seeds of `ids.c`: texts of IDs."""
    for line in (VECTORS / "real_ids.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        yield line.partition("\t")[0].encode()


def compare_ids() -> Iterator[bytes]:
    """Yield the seeds of `compare_ids.py`: bytes of several lengths, from which it draws its values."""
    chance = random.Random(1)
    for length in (40, 200, 700):
        for _ in range(16):
            yield chance.randbytes(length)


def readers() -> Iterator[bytes]:
    """Yield the seeds of `readers.py`: the reader, its option, and the bytes."""
    numbers = {layout: 1 + index for index, layout in enumerate(iggy.LAYOUTS)}
    for layout, data in frames():
        for reader in range(POLL + 1):
            yield bytes([reader, numbers[layout]]) + data
        yield bytes([1, 0]) + data
    for message in vectors("iggy.json")["messages"]:
        if "json" in message:
            yield bytes([FROM_JSON, 0]) + json.dumps(message["json"]).encode()
            yield bytes([LIST_OF_JSON, 0]) + json.dumps([message["json"]]).encode()
    for option, command in enumerate(vectors("iggy.json")["commands"]):
        yield bytes([COMMAND, option]) + bytes.fromhex(command["hex"])
    for message in vectors("danube_broker.json")["messages"]:
        yield bytes([DANUBE, 0]) + bytes.fromhex(message["hex"])
    yield bytes([DANUBE_JSON, 0]) + b'{"request_id": 7, "payload": "aGk=", "publish_time": 5, "producer_name": "p"}'
    yield bytes([DANUBE_ID, 0]) + b"topic:_/default/events_producer:_9_topic_offset:_42"
    yield bytes([AVRO, 0]) + b"\2\2\2a\2" + bytes(10)
    yield bytes([AVRO, 1]) + b"\2\2\4" + bytes(3)
    yield bytes([JSON, 0]) + b'{"a": "aaaa", "b": 1.5}'
    yield bytes([JSON, 1]) + b'{"next": {"next": null}}'
    for option, record in enumerate(
        (vectors("kafka_deliveries.json"), vectors("rocketmq_servers.json")["redelivered"])
    ):
        for value in objects(record):
            yield bytes([RECORD, option]) + json.dumps(value).encode()
    for record in vectors("rocketmq_servers.json")["redelivered"]:
        yield bytes([PROPERTIES, 0]) + json.dumps(record["properties"]).encode()
    for value in ({"a": [1, 2.5, None, True, "x"]}, (1, b"ab"), {1: 2}, float("inf")):
        yield bytes([STATE, 0]) + dumps(value)


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects with an offset in a file of records."""
    if isinstance(value, dict) and {"offset", "queueOffset"} & value.keys():
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from objects(item)


SEEDS = {"scan": scan, "ids": ids, "compare_scan": scan, "compare_ids": compare_ids, "readers": readers}


def write(program: str, folder: Path) -> None:
    """Write the seeds of a program into its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS[program]()):
        (folder / f"seed-{number:03}").write_bytes(seed[:MOST])
