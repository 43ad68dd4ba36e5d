"""Parse IDs of any version, and reject all other input."""

import pickle

import pytest
from helpers.strategies import ids, message_ids, v0_ids
from hypothesis import given
from hypothesis import strategies as st

from msgid import layout
from msgid.shared.validate import QUOTED_LENGTH

V1 = "0156F7E71C361B21BC024CCDBE00000000"
V0 = "7F0000010000238F000000000001E240"
V0_IPV6 = "24084004018081003FAA1DDE2B3F898A00002A9F0000000000000CA0"


UUID = "56f7e71c-361b-21bc-024c-cdbe00000000"


def readers(msgid, value):
    """Every public function that reads an ID. The parent of a derived ID can also be a UUID or a value."""
    readers = [msgid.parse, msgid.MessageId, msgid.BrokerOffsetId.parse, msgid.ClientUniqueId.parse, msgid.translate_v0]
    if value == UUID or isinstance(value, msgid.MessageId | msgid.BrokerOffsetId | msgid.ClientUniqueId):
        return readers
    return [*readers, lambda parent: msgid.derive_id(parent, "x")]


HOSTILE = {
    "empty": ("", "must have 32, 34, 56 or 58 hex digits, got 0 characters"),
    "33 digits": (V1[:-1], "33 characters"),
    "35 digits": (V1 + "0", "35 characters"),
    "31 digits": (V0[:-1], "31 characters"),
    "trailing newline": (V1 + "\n", "35 characters"),
    "newline for the last digit": (V1[:-1] + "\n", "must have hex digits only"),
    "space at the end": (V1[:-1] + " ", "must have hex digits only"),
    "spaces at the ends": (" " + V0 + " ", "must have hex digits only"),
    "spaces between bytes": (V1[:16] + " " + V1[17:33] + " ", "must have hex digits only"),
    "tab": (V1[:-1] + "\t", "must have hex digits only"),
    "underscore": (V1[:20] + "_" + V1[21:], "must have hex digits only"),
    "plus": ("+" + V1[1:], "must have hex digits only"),
    "0x": ("0x" + V1[2:], "must have hex digits only"),
    "letter O": (V1[:-1] + "O", "must have hex digits only"),
    "full-width digit": ("０" + V1[1:], "must have hex digits only"),
    "all full-width": ("０１" * 17, "must have hex digits only"),
    "Arabic digits": ("٠١" * 17, "must have hex digits only"),
    "zero-width space": (V1[:-1] + "\u200b", "must have hex digits only"),
    "nul": (V1[:-1] + "\0", "must have hex digits only"),
    "lone surrogate": (V1[:-1] + "\ud800", "must have hex digits only"),
    "braces": ("{" + V1[1:-1] + "}", "must have hex digits only"),
    "uuid": (UUID, "a UUID is not a message ID, but a derived ID"),
    "version 2": ("02" + V1[2:], "unknown version 2"),
    "version 255": ("FF" + V1[2:], "unknown version 255"),
    "58 digits of version 1": ("01" + V0_IPV6, "unknown version 1"),
    "10 kB": ("A" * 10_000, "10000 characters"),
    "16 MB": ("A" * 2**24, "16777216 characters"),
    "no bytes": (b"", "must have 16, 17, 28 or 29 bytes, got 0"),
    "hex as bytes": (V1.encode(), "bytes, got 34"),
    "18 bytes": (bytes(18), "bytes, got 18"),
    "17 bytes of version 2": (b"\2" + bytes(16), "unknown version 2"),
    "29 bytes of version 1": (b"\1" + bytes(28), "unknown version 1"),
    "None": (None, "must be text, bytes or an ID, got NoneType"),
    "number": (1, "got int"),
    "float": (1.5, "got float"),
    "huge number": (10**5000, "got int"),
    "list": ([V1], "got list"),
}


@pytest.mark.parametrize(("value", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_invalid_id_in_every_reader_raises_one_clear_line(msgid, value, reason):
    """Every reader rejects malformed input with `InvalidMessageId`, which quotes the shortened input and the reason."""
    assert not msgid.is_valid(value)
    for read in readers(msgid, value):
        with pytest.raises(msgid.InvalidMessageId) as caught:
            read(value)
        message = str(caught.value)
        assert reason in message
        assert message.startswith("invalid message id ")
        assert "\n" not in message
        assert len(message) < 100 + 10 * QUOTED_LENGTH  # a character outside ASCII takes up to ten characters
        assert message.isascii()
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_is_valid_of_a_hostile_object_never_raises(msgid):
    """A value whose own methods raise is not a valid ID, and quoting it does not raise."""

    class Hostile:
        def __repr__(self):
            raise RuntimeError

    class HostileText(str):
        __slots__ = ()

        def __len__(self):
            raise RuntimeError

    assert not msgid.is_valid(Hostile())
    assert not msgid.is_valid(HostileText(V1))
    with pytest.raises(msgid.InvalidMessageId, match="<Hostile>"):
        msgid.parse(Hostile())


@given(st.one_of(st.text(), st.binary(), st.text("0123456789abcdefABCDEF", max_size=60), st.none(), st.integers()))
def test_is_valid_of_any_value_agrees_with_parse(msgid, value):
    try:
        msgid.parse(value)
    except msgid.InvalidMessageId:
        assert not msgid.is_valid(value)
    else:
        assert msgid.is_valid(value)


@given(ids)
def test_parse_of_every_kind_reads_back(msgid, id):
    """``parse(str(x)) == x`` for version 1, and for version 0 if the rule decides for the kind of ``x``.

    Some bytes are valid as both kinds; then the result has the same bytes and the kind of the rule.
    """
    back = msgid.parse(str(id))
    assert bytes(back) == bytes(id)
    if id.version == 0:
        tail = bytes(id)[-12:]
        words = [int.from_bytes(part, "big", signed=True) for part in (tail[:4], tail[4:])]
        rule = layout.v0_kind(*words)
        assert back.kind == rule
        assert (back == id) == (isinstance(id, msgid.BrokerOffsetId) == (rule == "v0-broker-offset"))
    else:
        assert back == id
    # Each form of a parsed ID parses to the same value.
    for form in (str(back), str(back).lower(), bytes(back), back.canonical, bytes.fromhex(back.canonical)):
        assert msgid.parse(form) == back


@given(v0_ids)
def test_translate_v0_of_a_version_0_id_loses_nothing(msgid, id):
    """The canonical form is ``00`` and the ID's digits; it keeps all bytes, a second translation changes nothing."""
    canonical = msgid.translate_v0(str(id))
    assert canonical == id.canonical == "00" + str(id)
    assert str(msgid.parse(canonical)) == str(id)
    assert msgid.translate_v0(canonical) == msgid.translate_v0(canonical.lower()) == canonical
    assert type(id).parse(canonical) == id


@given(message_ids)
def test_translate_v0_of_version_1_raises_invalid_message_id(msgid, id):
    with pytest.raises(msgid.InvalidMessageId, match="must be of version 0, got version 1"):
        msgid.translate_v0(str(id))


@pytest.mark.parametrize(
    ("port", "offset", "kind"),
    [
        (0, 0, "v0-client-unique"),
        (1, 0, "v0-broker-offset"),
        (65535, 0, "v0-broker-offset"),
        (65536, 0, "v0-client-unique"),
        (-1, 0, "v0-client-unique"),
        (10911, 2**40 - 1, "v0-broker-offset"),
        (10911, 2**40 - 256, "v0-broker-offset"),
        (10911, 2**40, "v0-ambiguous"),
        (10911, 2**40 + 1, "v0-broker-offset"),
        (10911, 2**40 + 256, "v0-ambiguous"),
        (10911, 2**48 - 1, "v0-broker-offset"),
        (10911, 2**48 - 256, "v0-ambiguous"),
        (10911, 2**48, "v0-client-unique"),
        (10911, -1, "v0-client-unique"),
        (10911, -(2**63), "v0-client-unique"),
        (65536, 2**40, "v0-client-unique"),
    ],
)
def test_kind_of_version_0_follows_port_and_offset(msgid, port, offset, kind):
    """A broker offset needs a valid port and 48 bits; from 2**40 on, a zero byte at the end makes it ambiguous."""
    for address in (bytes(4), bytes(16)):
        raw = address + port.to_bytes(4, "big", signed=True) + offset.to_bytes(8, "big", signed=True)
        id = msgid.parse(raw)
        assert id.kind == kind
        assert isinstance(id, msgid.BrokerOffsetId) == (kind == "v0-broker-offset")
        assert getattr(id, "ambiguous", False) == (kind == "v0-ambiguous")


@pytest.mark.parametrize(
    "text", ["0156f7E71C361B21BC024CCDBE0000000A", "AbCdEf0123456789" * 2, "00" + "9aF" * 18 + "00"]
)
def test_each_character_at_each_place_is_a_digit_or_invalid(msgid, text):
    """The 22 hex digits are read at every position; all other characters are rejected, even with a similar code."""
    digits = set("0123456789abcdefABCDEF")
    for place in range(2, len(text)):
        for code in range(0x180):
            changed = text[:place] + chr(code) + text[place + 1 :]
            assert msgid.is_valid(changed) == (chr(code) in digits)
        for digit in digits:
            changed = text[:place] + digit + text[place + 1 :]
            assert str(msgid.parse(changed)).endswith(changed.upper()[2:])


@pytest.mark.parametrize("name", ["parse", "is_valid", "translate_v0"])
def test_reader_takes_its_value_by_name_too(msgid, name):
    reader = getattr(msgid, name)
    text = "7F0000010000238F000000000001E240"
    assert reader(value=text) == reader(text)
    for arguments, named in (((), {}), ((text, text), {}), ((text,), {"value": text}), ((), {"text": text})):
        with pytest.raises(TypeError, match=rf"{name}\(\)"):
            reader(*arguments, **named)


@pytest.mark.parametrize("name", ["parse", "is_valid", "translate_v0"])
def test_reader_says_where_it_is_defined(msgid, name):
    """The compiled readers name the public module of their reference, and are pickled by that name."""
    reader = getattr(msgid, name)
    assert (reader.__module__, reader.__qualname__) == ("msgid.ids.parsing", name)
    assert pickle.loads(pickle.dumps(reader)) is reader


def test_error_of_an_invalid_id_pickles_with_its_parts(msgid):
    with pytest.raises(msgid.InvalidMessageId) as caught:
        msgid.parse("xyz")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.shown, again.reason, str(again)) == ("'xyz'", caught.value.reason, str(caught.value))
    assert isinstance(again, ValueError)
