"""uuid-utils: UUID version 7 in Rust."""

import uuid_utils

DISTRIBUTION = "uuid-utils"


def text():
    return str(uuid_utils.uuid7())
