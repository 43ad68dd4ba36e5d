"""fastuuidv7: UUID version 7 in C."""

DISTRIBUTION = "fastuuidv7"
SETUP = "from fastuuidv7 import uuid7, uuid7_str"
CALLS = {"text": "uuid7_str()", "value": "uuid7()"}
