"""IDs of this library, on the backend that `msgid.backend` names."""

DISTRIBUTION = "msgid"
SETUP = """
from msgid import generate, generate_batch, generate_hex, is_valid, parse
t = generate_hex()
"""
CALLS = {
    "text": "generate_hex()",
    "value": "generate()",
    "parse": "parse(t)",
    "check": "is_valid(t)",
    "batch bytes": "generate_batch(n).to_bytes()",
    "batch text": "generate_batch(n).to_hex_bytes()",
    "batch list": "generate_batch(n).hex()",
}
