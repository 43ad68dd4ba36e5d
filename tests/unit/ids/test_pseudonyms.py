"""Pseudonyms hide the address of a machine and keep all else that an ID says."""

import pytest
from helpers.strategies import ids
from hypothesis import given
from hypothesis import strategies as st

import msgid
from msgid import layout

KEY = b"a key of the tests"


@given(ids, st.binary(min_size=16, max_size=40))
def test_pseudonym_keeps_kind_and_all_fields_but_the_address(id, key):
    """The bytes after the address, the kind, and the length stay; a node without a card's address stays whole."""
    hidden = msgid.pseudonymize(id, key)
    assert (type(hidden), hidden.kind, len(bytes(hidden))) == (type(id), id.kind, len(bytes(id)))
    rest = layout.BODY_LENGTH - 6 if isinstance(id, msgid.MessageId) else layout.TAIL_LENGTH
    assert bytes(hidden)[-rest:] == bytes(id)[-rest:]
    if isinstance(id, msgid.MessageId):
        assert hidden.origin == ("random" if id.origin == "mac" else id.origin)
    assert bytes(msgid.pseudonymize(id.canonical.lower(), key)) == bytes(hidden)


@given(st.sets(st.integers(0, layout.NODE_MAX), min_size=2, max_size=20))
def test_different_nodes_have_different_pseudonyms(nodes):
    made = [msgid.MessageId.from_fields(node=node, pid=1, seconds=2, sequence=3) for node in nodes]
    assert len({msgid.pseudonymize(id, KEY) for id in made}) == len(nodes)


def test_pseudonyms_of_two_keys_cannot_be_joined():
    id = "0156F7E71C361B21BC024CCDBE00000000"
    assert msgid.pseudonymize(id, KEY) != msgid.pseudonymize(id, KEY + b"!")


@pytest.mark.parametrize(("key", "error"), [("text", TypeError), (b"short", ValueError), (None, TypeError)])
def test_wrong_key_raises(key, error):
    """A key is bytes, and too many to try."""
    with pytest.raises(error, match="key must"):
        msgid.pseudonymize("0156F7E71C361B21BC024CCDBE00000000", key)


def test_pseudonym_of_no_id_raises():
    with pytest.raises(msgid.InvalidMessageId, match="no-id"):
        msgid.pseudonymize("no-id", KEY)
