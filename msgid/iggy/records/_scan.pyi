"""The compiled scanner; `reference.scan` and `checksums.reference_xxh3` are the twins in Python."""

NUMBERS: tuple[int, ...]

def scan(
    data: bytes | bytearray | memoryview,
    layout: int,
    place: int,
    known: int,
    within: int,
    limit: int,
    most: int,
    strict: int,
    /,
) -> tuple[bytes, int, int, int, int, int]: ...
def xxh3(data: bytes | bytearray | memoryview, /) -> int: ...
