"""uuid-utils: UUID version 7 in Rust."""

DISTRIBUTION = "uuid-utils"
SETUP = """
from uuid_utils import UUID, uuid7
t = str(uuid7())
"""
CALLS = {"text": "str(uuid7())", "value": "uuid7()", "parse": "UUID(t)"}
