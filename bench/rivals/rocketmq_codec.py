"""The official RocketMQ client for Python: its codec of the same 34 digits, in pure Python."""

from rocketmq.v5.util.message_id_codec import MessageIdCodec

DISTRIBUTION = "rocketmq-python-client"

text = MessageIdCodec().next_message_id
