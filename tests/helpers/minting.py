"""Shared helpers for tests of generators: ways to make IDs."""

NOON = 1_700_000_000


def mint(generator, how):
    """Make IDs in the named way and return their bytes."""
    if how == "generate":
        return [bytes(generator.generate())]
    if how == "generate_hex":
        return [bytes.fromhex(generator.generate_hex())]
    return [bytes(id) for id in generator.generate_batch(int(how.split()[-1]))]


def place(raw):
    """Return the second and the sequence of an ID from its bytes."""
    return int.from_bytes(raw[9:13], "big"), int.from_bytes(raw[13:], "big")
