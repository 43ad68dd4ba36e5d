"""c-uuid-v7: UUID version 7 in C."""

DISTRIBUTION = "c_uuid_v7"
SETUP = """
from c_uuid_v7 import UUID, uuid7
t = str(uuid7())
"""
CALLS = {"text": "str(uuid7())", "value": "uuid7()", "parse": "UUID(t)"}
