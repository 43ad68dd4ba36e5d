"""The guides against a running broker: their blocks run as they stand, but for the address."""

from __future__ import annotations

import time

from helpers import markdown

ADDRESSES = ('{"test.mock.num.brokers": 1}', '"broker:9092"')
"""The words of a guide that name the broker: one inside the process of the example, or one of a cluster."""


def run(page, address, names):
    """Run the blocks of a page that stands in the guides; return the number of its lines that name a broker."""
    text = "\n".join(block.example for block in markdown.blocks(markdown.PAGES / "guides" / page))
    count = sum(text.count(word) for word in ADDRESSES)
    text = text.replace(ADDRESSES[0], repr({"bootstrap.servers": address})).replace(ADDRESSES[1], repr(address))
    markdown.run_text(text, page, names)
    return count


def empty(broker):
    """Delete the topics of a broker, which other examples have made."""
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": broker.address})

    def topics():
        return [name for name in client.list_topics(timeout=30).topics if not name.startswith("__")]

    names = topics()
    for done in client.delete_topics(names).values() if names else ():
        done.result(60)
    until = time.monotonic() + 60
    while topics():
        assert time.monotonic() < until, topics()
        time.sleep(0.1)
