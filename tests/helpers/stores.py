"""Append to stores and read from them like a processor."""

from msgid.processing import Append, Entry

SUM = bytes(16)


def entry(id, state, stored_at=0, **other):
    return Entry(id, state, SUM, stored_at, **other)


def add(store, id, state, *, key="key", handler="h", stored_at=0):
    """Append one entry to the newest state."""
    (found,) = store.read(handler, [(key, id)])
    append = Append(key, found.version, found.state, [entry(id, state, stored_at)], found.held)
    return store.append(handler, [append])[0]


def read(store, id, key="key", handler="h"):
    """Return the reading without the internal part of the store."""
    return store.read(handler, [(key, id)])[0]._replace(held=None)
