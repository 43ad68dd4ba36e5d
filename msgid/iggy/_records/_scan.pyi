"""The compiled scanner; its functions are the twins of `reference.scan`, `reference.steps` and `checksums.reference_xxh3`."""

VERSION: int

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
def steps(
    data: bytes | bytearray | memoryview, layout: int, place: int, target: int, known: int, /
) -> tuple[int, int, int]: ...
def xxh3(data: bytes | bytearray | memoryview, /) -> int: ...
