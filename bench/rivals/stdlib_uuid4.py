"""The standard library: UUID version 4."""

import uuid

DISTRIBUTION = None


def text():
    return str(uuid.uuid4())
