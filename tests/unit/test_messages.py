"""Message states and topic names, which all message formats share."""

import pytest

import msgid
from msgid.messages import normalize_name


@pytest.mark.parametrize(
    ("code", "name"), [(1, "available"), (10, "unavailable"), (20, "poisoned"), (30, "marked_for_deletion")]
)
def test_state_of_a_code_or_a_name_is_the_same(code, name):
    """There are four states, each with a code and a name; other values raise `InvalidMessage`."""
    assert (int(msgid.MessageState.of(name)), str(msgid.MessageState.of(code))) == (code, name)


@pytest.mark.parametrize("value", [0, 2, 255, -1, True, None, "Available", "1", "", 1.0])
def test_state_of_another_value_raises_invalid_message(value):
    with pytest.raises(msgid.InvalidMessage, match="state"):
        msgid.MessageState.of(value)


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("Orders", "orders"),
        ("  my  Topic\t2 ", "my.topic.2"),
        ("a.b-c_d", "a.b-c_d"),
        ("ÄÖ", "äö"),
        ("x" * 255, "x" * 255),
    ],
)
def test_normalize_name_of_a_name_or_its_normal_form_is_the_same(name, normal):
    assert normalize_name(name) == normalize_name(normal) == normal


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "blank"),
        (" \t", "blank"),
        ("a/b", "more than word characters"),
        ("a\x00", "more than word characters"),
        ("x" * 256, "1 to 255 bytes, got 256"),
        ("İ" * 127, "1 to 255 bytes, got 381"),
        ("é" * 128, "1 to 255 bytes, got 256"),
        (None, "a NoneType and not text"),
    ],
)
def test_normalize_name_of_an_invalid_name_raises_invalid_message(name, reason):
    """The length is that of the normal form: 127 times U+0130 is 254 bytes, and 381 in lower case."""
    with pytest.raises(msgid.InvalidMessage, match=reason):
        normalize_name(name)
