"""fastuuid7: UUID version 7 in Rust, with batches."""

DISTRIBUTION = "fastuuid7"
SETUP = "from fastuuid7 import uuid7, uuid7_bytes_many, uuid7_str, uuid7_str_many"
CALLS = {
    "text": "uuid7_str()",
    "value": "uuid7()",
    "batch bytes": "uuid7_bytes_many(n)",
    "batch text": "uuid7_str_many(n)",
    "batch list": "uuid7_str_many(n)",
}
