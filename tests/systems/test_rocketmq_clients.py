"""RocketMQ's clients in Node.js and Go: the IDs that they return, and the rows that the broker wrote of them."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from systems.maven import CACHE
from systems.rocketmq_broker import GO_CLIENT, NODE_CLIENT
from systems.test_rocketmq import audited, checks, in_log, landed, offset_id, topic_of, words, written_again

import msgid
from msgid.audit import doctor
from msgid.rocketmq import Record

pytestmark = [pytest.mark.systems, pytest.mark.variants]  # they install packages of npm and Go

COUNT = 6
CLIENTS = Path(__file__).parent / "clients"


def lines(command, **settings):
    """Run a command, and return the lines of its output."""
    ran = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=600, **settings)
    assert ran.returncode == 0, (command, ran.stderr[-2000:])
    return ran.stdout.split("\n")[:-1]


def folder_of(name, *programs):
    """Return an empty folder, which stays between runs; skip the test without a program."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    folder = CACHE / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def node():
    """Return the command of the Node.js client."""
    folder = folder_of("rocketmq-node", "node", "npm")
    shutil.copy(CLIENTS / "send.js", folder)
    if not (folder / "node_modules" / NODE_CLIENT.split("@")[0]).exists():
        lines(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", NODE_CLIENT], cwd=folder)
    return ["node", folder / "send.js"]


@pytest.fixture(scope="module")
def go():
    """Return the command of the Go client."""
    folder = folder_of("rocketmq-go", "go")
    shutil.copy(CLIENTS / "send.go", folder)
    if not (folder / "go.mod").exists():
        lines(["go", "mod", "init", "clients"], cwd=folder)
        lines(["go", "get", GO_CLIENT], cwd=folder)
    lines(["go", "mod", "tidy"], cwd=folder)
    lines(["go", "build", "-o", "send", "send.go"], cwd=folder)
    return [folder / "send"]


def test_ids_of_the_node_client_are_those_of_its_rows(rocketmq, node):
    """The broker keeps the ID that the client returned, and the doctor names the client."""
    topic = topic_of(rocketmq)
    ids = lines([*node, rocketmq.address, topic, COUNT])
    rows = landed(rocketmq, topic, words("node", COUNT))
    by_body = {row["body"].decode(): Record.of(row) for row in rows}
    assert [by_body[body].original for body in words("node", COUNT)] == ids
    assert checks(audited(rows)) == written_again(rows)
    assert "Node.js" in str(doctor(ids))


def test_batch_of_the_go_client_has_no_ids(rocketmq, go):
    """A single message has an ID with lower-case digits. The place of a message of a batch is its ID."""
    topic = topic_of(rocketmq)
    results = [json.loads(line) for line in lines([*go, rocketmq.names, topic, COUNT])]
    sent = landed(rocketmq, topic, [*words("single", COUNT), *words("batch", COUNT)])
    rows = {row["body"].decode(): Record.of(row) for row in sent}
    in_broker = in_log(rocketmq, topic)
    for body, result in zip(words("single", COUNT), results, strict=False):
        assert rows[body].original == result["msgId"] == result["msgId"][:-16].upper() + result["msgId"][-16:].lower()
        assert result["offsetMsgId"] == offset_id(rocketmq, in_broker[body.encode()])
    assert results[-1]["msgId"] == ""
    places = [offset_id(rocketmq, in_broker[body.encode()]) for body in words("batch", COUNT)]
    assert results[-1]["offsetMsgId"].split(",") == places
    for body in words("batch", COUNT):
        assert "UNIQ_KEY" not in in_broker[body.encode()].properties
        place = rows[body]
        assert place.message_id() == str(msgid.position_id(place.source, place.offset, place.stored))
