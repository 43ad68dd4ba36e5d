"""The guide about RocketMQ's clients: each block runs against the broker, and prints what the guide shows."""

import doctest

import pytest
from helpers import markdown

pytestmark = [pytest.mark.systems, pytest.mark.skipif(not markdown.PAGES.exists(), reason="outside the repository")]

ADDRESS = '"127.0.0.1:8081"'
TOPICS = {"orders": "NORMAL", "parcels": "NORMAL", "payments": "TRANSACTION"}
GROUPS = ("shipping", "counting", "booking")


def test_guide_to_the_python_client(rocketmq, monkeypatch, tmp_path):
    """Own IDs, a redelivered message, an output that is sent twice, receipts and transactions."""
    rocketmq.python_client()
    page = markdown.PAGES / "guides" / "rocketmq-clients.md"
    text = page.read_text(encoding="utf-8")
    for topic, kind in TOPICS.items():
        assert f"-t {topic} -a +message.type={kind}" in text
        rocketmq.ask("create", topic, type=kind, queues=2)
    for group in GROUPS:
        assert f"updateSubGroup -n NAMESERVER -c CLUSTER -g {group}\n" in text
        rocketmq.mqadmin("updateSubGroup", "-c", "check", "-g", group)
    assert text.count(ADDRESS) == 1
    copy = tmp_path / page.name
    copy.write_text(text.replace(ADDRESS, repr(rocketmq.address)), encoding="utf-8")
    assert not any(block.mark == "not run" for block in markdown.blocks(copy))
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.FAIL_FAST  # a later block may wait for what an earlier one sends
    markdown.run(copy, {}, doctest.DocTestRunner(optionflags=flags))
