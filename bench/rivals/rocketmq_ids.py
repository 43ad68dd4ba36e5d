"""The official RocketMQ client for Python: its codec of the same 34 digits, in Python."""

DISTRIBUTION = "rocketmq-python-client"
SETUP = """
from rocketmq.v5.util.message_id_codec import MessageIdCodec
codec = MessageIdCodec()
"""
CALLS = {"text": "codec.next_message_id()"}
