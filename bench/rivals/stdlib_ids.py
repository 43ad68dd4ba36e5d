"""The standard library: UUID version 4."""

DISTRIBUTION = None
SETUP = """
from uuid import UUID, uuid4
t = str(uuid4())
"""
CALLS = {"text": "str(uuid4())", "value": "uuid4()", "parse": "UUID(t)"}
