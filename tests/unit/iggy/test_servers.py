"""Recordings of running servers: segments, polls, encrypted messages, crashed files, and records of release 0.10."""

import base64
import gzip
import io
import json
import struct
from dataclasses import replace

import pytest
from helpers import vector_files as vectors

import msgid
from msgid import iggy
from msgid.iggy import PollResponse, SendMessages
from msgid.iggy.records import checksums, reference
from msgid.iggy.wire import BATCH256

RECORDED = json.loads((vectors.FOLDER / "iggy_servers.json").read_text())
KEY = bytes(range(32))
RUNS = [(release, kind) for release in RECORDED["servers"] for kind in ("plain", "encrypted")]
each_run = pytest.mark.parametrize(("release", "kind"), RUNS)
PROTOCOL = RECORDED["protocol_0_12_2"]["vectors"]
REFUSED = [vector for vector in PROTOCOL if vector["kind"] == "batch" and "error" in vector["truth"]]


def unpacked(text):
    return gzip.decompress(base64.b64decode(text))


def run_of(release, kind, *, opens=True):
    """The layout and the recording of a server, and the key that opens it."""
    server = RECORDED["servers"][release]
    if opens and kind == "encrypted":
        pytest.importorskip("cryptography")
    return server["layout"], server[kind], KEY if kind == "encrypted" else None


def facts(message):
    """The facts of a message that the recording has; headers as kind and hex digits."""
    return {
        "id": str(message.id),
        "offset": message.offset,
        "timestamp": message.timestamp,
        "origin": message.origin_timestamp,
        "payload": message.payload.hex(),
        "headers": {str(key): [int(header.kind), header.raw.hex()] for key, header in message.headers.items()},
    }


def polled(run):
    return [{key: value for key, value in row.items() if key != "checksum"} for row in run["polled"]]


@each_run
def test_segment_of_a_server_has_what_its_clients_polled(release, kind):
    """Every field of every message, also of encrypted ones, whose key may be base64 as in a configuration."""
    layout, run, key = run_of(release, kind)
    raw = unpacked(run["log_gz"])
    for form in (key, None if key is None else base64.b64encode(key).decode()):
        messages = iggy.decode_log(raw, decrypt=form)
        assert list(map(facts, messages)) == polled(run)
        assert {message.layout for message in messages} == {layout}
        assert all(message.checksum_ok for message in messages)
        assert list(iggy.read_log(io.BytesIO(raw), decrypt=form, chunk=100)) == messages
    if key is None:
        assert [str(message.checksum) for message in messages] == [row["checksum"] for row in run["polled"]]
        assert iggy.encode_log(messages, layout) == raw


@each_run
def test_poll_of_a_server_is_read(release, kind):
    """An encrypting server up to 0.8 sends the checksums of the stored bytes, so that its layout must be named."""
    layout, run, key = run_of(release, kind, opens=False)
    wrong = key is not None and release != "HEAD"
    for name, rows in (("poll_0_100_gz", polled(run)), ("poll_1_2_gz", polled(run)[1:3])):
        raw = unpacked(run[name])
        response = iggy.decode_poll(raw, layout if wrong else "auto")
        assert list(map(facts, response.messages)) == rows
        assert (response.current_offset, response.head, response.incarnation) == (len(run["polled"]) - 1, 16, None)
        assert {message.checksum_ok for message in response.messages} == {not wrong}
        assert iggy.encode_poll(response, layout) == raw
        if wrong:
            with pytest.raises(msgid.InvalidMessage, match="cannot tell the layout"):
                iggy.decode_poll(raw)
    assert iggy.decode_poll(bytes.fromhex(run["poll_empty"])).messages == []


@pytest.mark.parametrize("release", RECORDED["servers"])
def test_encrypted_segment_without_its_key_is_read_as_it_is_stored(release):
    """The payload has 28 more bytes. Headers from 0.8 on are malformed; the error says that they may be encrypted."""
    layout, run, _ = run_of(release, "encrypted", opens=False)
    raw, errors = unpacked(run["log_gz"]), []
    messages = list(iggy.read_log(io.BytesIO(raw), malformed=errors.append))
    sizes = {row["offset"]: len(row["payload"]) // 2 + 28 for row in run["polled"]}
    assert {message.offset: len(message.payload) for message in messages}.items() <= sizes.items()
    assert len(messages) + len(errors) == len(sizes)
    assert bool(errors) is iggy.LAYOUTS[layout].typed_keys
    assert all(str(error.reason).endswith("so perhaps encrypted") for error in errors)
    pytest.importorskip("pyarrow")
    found = iggy.decode_table(raw)
    assert [one.error.reason for one in found.malformed] == [error.reason for error in errors]


@pytest.mark.parametrize("release", RECORDED["servers"])
def test_message_that_the_key_does_not_open_is_an_error_of_its_own(release):
    """Another key, a wrong byte and a message that was never encrypted; reading goes on after each."""
    _, run, key = run_of(release, "encrypted")
    raw, errors = unpacked(run["log_gz"]), []
    assert list(iggy.read_log(io.BytesIO(raw), decrypt=bytes(32), malformed=errors.append)) == []
    assert len(errors) == len(run["polled"])
    assert {error.reason.split(":")[1] for error in errors} == {" another key, or no encrypted bytes"}
    changed = bytearray(raw)
    changed[-1] ^= 1
    with pytest.raises(msgid.InvalidMessage, match="cannot decrypt a message with a wrong checksum"):
        iggy.decode_log(bytes(changed), decrypt=key)
    with pytest.raises(msgid.InvalidMessage, match="cannot decrypt"):
        iggy.decode_log(unpacked(RECORDED["servers"][release]["plain"]["log_gz"]), decrypt=key)


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), "no base64!", base64.b64encode(bytes(16)).decode(), 7])
def test_key_of_another_form_is_refused_without_being_quoted(key):
    """The key is a secret."""
    with pytest.raises(ValueError, match=r"^decrypt must be a key of 32 bytes, or its base64 text$"):
        iggy.decode_log(b"", decrypt=key)


def test_crashed_files_of_a_server_on_spark_have_each_byte_in_a_row(tmp_path):
    """The torn bytes are one poisoned row. An offset that the server gave twice stands twice: the audit finds it."""
    pytest.importorskip("pyspark")
    pytest.importorskip("pyarrow")
    from spark_ext.formats.iggy_source import IggyReader

    torn, back = RECORDED["crashes"]["torn_middle"], RECORDED["crashes"]["step_back_0.8.0"]
    expected = {"torn": torn["offsets_before"] + [None] + torn["offsets_after"], "back": back["offsets"]}
    for name, crash in (("torn", torn), ("back", back)):
        path = tmp_path / name / f"{0:020d}.log"
        path.parent.mkdir()
        path.write_bytes(unpacked(crash["log_gz"]))
        reader = IggyReader({"path": str(path)})
        rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
        assert [row["offset"] for row in rows] == expected[name]
        wrong = [(row["position"], len(row["original"]), row["state"]) for row in rows if row["reason"] is not None]
        size = torn["valid_again_at"] - torn["torn_at"]
        assert wrong == ([(torn["torn_at"], size, "poisoned")] if name == "torn" else [])


def each_vector(kind, vectors=PROTOCOL):
    """Return a decorator that runs a test for each vector of a kind."""
    found = [pytest.param(one, id=one["name"]) for one in vectors if one["kind"] == kind]
    return pytest.mark.parametrize("vector", found)


@each_vector("batch", [one for one in PROTOCOL if one not in REFUSED])
def test_batch_of_release_0_10_is_read_checked_and_written(vector):
    """With and without a producer; its checksum covers the producer's numbers."""
    raw, truth = bytes.fromhex(vector["hex"]), vector["truth"]
    messages = iggy.decode_log(raw)
    for message, row in zip(messages, truth["messages"], strict=True):
        assert (str(message.id), message.offset, message.payload.hex()) == (row["id"], row["offset"], row["payload"])
        assert (message.timestamp, message.origin_timestamp) == (row["timestamp"], row["origin_timestamp"])
        assert (str(message.checksum), message.checksum_ok) == (row["checksum"], True)
        batch = message.batch
        assert (str(batch.checksum), batch.checksum_ok) == (truth["batch_checksum"], True)
        assert (None if batch.producer is None else batch.producer._asdict()) == truth["producer"]
    assert iggy.encode_log(messages, "batch256") == raw


@each_vector("batch", REFUSED)
@pytest.mark.parametrize("pure", [False, True])
def test_batch_of_release_0_10_with_a_wrong_producer_section_is_refused(vector, pure):
    """Other flags, reserved bytes and numbers out of range are refused; a changed number breaks the checksum."""
    raw = bytes.fromhex(vector["hex"])
    if not pure and checksums.native is None:
        pytest.skip("the scanner is not compiled")
    scan = reference.scan if pure else checksums.native.scan
    rows, *_, stop, at, _ = scan(raw, BATCH256, 0, len(raw), 0, 1 << 30, 1 << 30, -1)
    if "checksum" in vector["name"]:
        assert rows
        assert [message.checksum_ok for message in iggy.decode_log(raw, "batch256")] == [False]
    else:
        assert not rows
        assert stop
        assert 52 <= at < 256
        with pytest.raises(msgid.InvalidMessage):
            iggy.decode_log(raw, "batch256")
    with pytest.raises(msgid.InvalidMessage, match="cannot tell the layout"):
        iggy.decode_log(raw)


@each_vector("poll")
def test_poll_of_release_0_10_is_told_from_earlier_ones(vector):
    """Its head has 24 more bytes; also if the caller says so."""
    raw, truth = bytes.fromhex(vector["hex"]), vector["truth"]
    for head in (None, 40):
        response = iggy.decode_poll(raw, head=head)
        assert response.head == 40
        names = ("current_offset", "incarnation", "owner_generation", "metadata_op")
        assert [getattr(response, name) for name in names] == [truth[name] for name in names]
        assert response.partition == truth["partition_id"]
        assert [message.payload.hex() for message in response.messages] == [row["payload"] for row in truth["messages"]]
        assert iggy.encode_poll(response, "batch256") == raw
    with pytest.raises(msgid.InvalidMessage):
        iggy.decode_poll(raw, head=16)


def test_poll_with_a_head_of_another_size_is_refused():
    """A wrong size, and fields of a head that do not belong together."""
    with pytest.raises(ValueError, match="head must be one of 16, 40, got 24"):
        iggy.decode_poll(bytes(24), head=24)
    with pytest.raises(msgid.TruncatedMessage, match="the head needs 40 bytes, and 16 are left"):
        iggy.decode_poll(bytes(16), head=40)
    with pytest.raises(msgid.InvalidMessage, match="8 bytes after the end"):
        iggy.decode_poll(bytes(24))
    with pytest.raises(msgid.TruncatedMessage, match="a count of 1 messages"):
        iggy.decode_poll(struct.pack("<IQI24x", 0, 0, 1))
    for fields in ((1, 1, [], 1), (1, 1, [], None, 1, 1)):
        with pytest.raises(ValueError, match="a poll response must have all of"):
            iggy.encode_poll(PollResponse(*fields), "m45")


@each_vector("send")
def test_request_of_release_0_10_is_read_and_written(vector):
    raw, truth = bytes.fromhex(vector["hex"]), vector["truth"]
    request = SendMessages.decode(raw, "batch256")
    assert (request.stream, request.topic, request.partitioning.partition) == tuple(
        truth[name] for name in ("stream", "topic", "partition")
    )
    producers = {message.batch.producer for message in request.messages}
    assert [None if one is None else list(one) for one in producers] == [truth.get("producer")]
    assert request.encode("batch256") == raw


def test_producer_number_out_of_range_is_not_written():
    (message,) = iggy.decode_log(bytes.fromhex(PROTOCOL[1]["hex"]))
    for name, most in (("producer_id", 2**63 - 1), ("epoch", 2**15 - 1), ("base_sequence", 2**31 - 1)):
        for value in (-1, most + 1):
            producer = message.batch.producer._replace(**{name: value})
            changed = replace(message, batch=message.batch._replace(producer=producer))
            with pytest.raises(ValueError, match=f"{name} must be 0 to {most}, got {value}"):
                iggy.encode(changed, "batch256")
