"""Recorded deliveries of real brokers: rows with the ``kind`` of each delivery, and bytes in place of base64."""

import base64
import json
from collections import defaultdict

from helpers.vector_files import FOLDER


def _read(name):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))["rows"]


def _bytes(text):
    return None if text is None else base64.b64decode(text)


ROCKETMQ = [{**row, "body": _bytes(row["body"])} for row in _read("rocketmq_deliveries.json")]
"""Rows of RocketMQ 5.5.0, from push consumers in both modes and from a consumer that pulls."""
KAFKA = [
    {
        **row,
        **{name: _bytes(row[name]) for name in ("key", "value")},
        "headers": [(name, _bytes(value)) for name, value in row["headers"]],
    }
    for row in _read("kafka_deliveries.json")
]
"""Records of Kafka 4.4.0, from share groups and from consumers of their dead letters."""


def kinds_of(rows):
    """Return rows by the kind of their delivery."""
    found = defaultdict(list)
    for row in rows:
        found[row["kind"]].append(row)
    return found
