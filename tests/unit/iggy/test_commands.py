"""Iggy's commands and responses that name streams and topics."""

import pytest
from helpers.iggy_frames import COMMANDS

import msgid
from msgid import iggy


def test_commands_of_the_document_encode_to_its_bytes_and_decode():
    made = {
        "create_topic": iggy.CreateTopic(1, 2, 3, 10, "test"),
        "create_stream": iggy.CreateStream(1, "test"),
        "topic": iggy.Topic(2, 3, 10, 1024, 7, "test"),
        "stream": iggy.Stream(1, 2, 1024, 7, "test"),
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
    named = iggy.CreateTopic("My Stream", 2, 3, 0, " Test ")
    assert iggy.CreateTopic.decode(named.encode()) == iggy.CreateTopic("my.stream", 2, 3, 0, "test")
    with pytest.raises(msgid.InvalidMessage, match="identifier must be of kind 1 or 2, got 9, at byte 0"):
        iggy.CreateTopic.decode(b"\x09" + bytes(20))
