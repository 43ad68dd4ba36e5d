"""One id at a time, as text: msgid against other libraries, in turns in one process.

python bench/single.py [--rounds 15] [--number 20000]
"""

from __future__ import annotations

import argparse

from rivals import rocketmq_codec, stdlib_uuid4, uuid_utils_uuid7
from rounds import alternate, machine, table, versioned

import msgid


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--number", type=int, default=20_000)
    arguments = parser.parse_args()
    calls = {"msgid.generate_hex()": msgid.generate_hex}
    for rival, call in (
        (uuid_utils_uuid7, "str(uuid_utils.uuid7())"),
        (rocketmq_codec, "MessageIdCodec().next_message_id()"),
        (stdlib_uuid4, "str(uuid.uuid4())"),
    ):
        calls[f"{call}, {versioned(rival.DISTRIBUTION) if rival.DISTRIBUTION else 'standard library'}"] = rival.text
    best = alternate(calls, number=arguments.number, rounds=arguments.rounds)
    ours = next(iter(best.values()))
    print(machine())
    print()
    rows = [[name, f"{ns:.0f}", f"{ns / ours:.2f}"] for name, ns in best.items()]
    print(table(["one id as text", "ns", "times msgid"], rows))


if __name__ == "__main__":
    main()
