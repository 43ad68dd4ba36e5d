"""Iggy's commands and responses that name streams and topics."""

import pytest
from helpers.iggy_frames import COMMANDS

import msgid
from msgid import iggy
from msgid.iggy import commands


def test_commands_of_the_document_encode_to_its_bytes_and_decode():
    made = {
        "create_topic": commands.CreateTopic(1, 2, 3, 10, "test"),
        "create_stream": commands.CreateStream(1, "test"),
        "topic": commands.Topic(2, 3, 10, 1024, 7, "test"),
        "stream": commands.Stream(1, 2, 1024, 7, "test"),
    }
    assert set(made) == set(COMMANDS)
    for name, command in made.items():
        raw = bytes.fromhex(COMMANDS[name]["hex"])
        assert command.encode() == raw
        assert type(command).decode(raw) == command
        for cut in range(len(raw)):
            with pytest.raises(msgid.TruncatedMessage):
                type(command).decode(raw[:cut])
        with pytest.raises(msgid.InvalidMessage, match="1 bytes after the end"):
            type(command).decode(raw + b"x")
    named = commands.CreateTopic("My Stream", 2, 3, 0, " Test ")
    assert commands.CreateTopic.decode(named.encode()) == commands.CreateTopic("my.stream", 2, 3, 0, "test")
    with pytest.raises(msgid.InvalidMessage, match="identifier must be of kind 1 or 2, got 9, at byte 0"):
        commands.CreateTopic.decode(b"\x09" + bytes(20))


CREATED = (
    "01040100000003000000066f7264657273020e0000006d61785f746f7069635f73697a650c080000000004000000000000"
    "020e0000006d6573736167655f6578706972790206000000372064617973"
)


def test_create_topic_with_options_encodes_to_the_bytes_of_the_crate():
    """The bytes are those of the crate iggy_binary_protocol 0.11.1-edge.8 for its own sample."""
    options = {"message_expiry": "7 days", "max_topic_size": iggy.Header.of(1024, iggy.HeaderKind.UINT64)}
    command = commands.CreateTopic(1, None, 3, None, "orders", options)
    raw = command.encode()
    assert raw.hex() == CREATED
    read = commands.CreateTopic.decode(raw, has_options=True)
    assert read._replace(options=None) == command._replace(options=None)
    assert {key: header.value for key, header in read.options.items()} == {
        "message_expiry": "7 days",
        "max_topic_size": 1024,
    }
    plain = commands.CreateTopic("my-stream", None, 1, None, "events", {})
    assert commands.CreateTopic.decode(plain.encode(), has_options=True) == plain
    ends = {
        len(commands.CreateTopic(1, None, 3, None, "orders", part).encode())
        for part in ({}, dict(list(options.items())[1:]))
    }
    for cut in set(range(len(raw))) - ends:  # the length of the options is not written
        with pytest.raises(msgid.InvalidMessage):
            commands.CreateTopic.decode(raw[:cut], has_options=True)


@pytest.mark.parametrize("changed", [{"topic_id": 2}, {"message_expiry": 0}])
def test_create_topic_with_options_and_a_field_of_the_older_command_raises(changed):
    command = commands.CreateTopic(1, None, 3, None, "orders", {})._replace(**changed)
    with pytest.raises(ValueError, match=f"{next(iter(changed))} must be None in a command with options, got"):
        command.encode()
    with pytest.raises((TypeError, ValueError), match="topic_id must be"):
        commands.CreateTopic(1, None, 3, None, "orders").encode()
