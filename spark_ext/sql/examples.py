"""One example of each SQL function: a call, and its result as text, with times in UTC."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
    "msgid_position": ("msgid_position('kafka://orders/3', 1234, 1648047038)", "013B0121EF30BE0000024CCDBE000004D2"),
    "msgid_derive": (
        "msgid_derive('0156F7E71C361B21BC024CCDBE00000007', 'invoice')",
        "014FC1DBF6558F1AE2024CCDBE24D71D0F",
    ),
    "msgid_derive_at": (
        "msgid_derive_at('74b158ca-ddb3-498f-b0a9-9eec1c6197ae', 'invoice', 1648047038)",
        "01DF2BEBB496D4B448024CCDBEF5D12B8E",
    ),
    "msgid_parse": ("msgid_parse('0156F7E71C361B21BC024CCDBE00000007').pid", "8636"),
    "msgid_try_parse": ("msgid_try_parse('n/a')", None),
    "msgid_is_valid": ("msgid_is_valid('7F0000010000238F000000000001E240')", "true"),
    "msgid_kind": ("msgid_kind('7F0000010000238F000000000001E240')", "v0-broker-offset"),
    "msgid_time": ("msgid_time('0156F7E71C361B21BC024CCDBE00000007')", "2022-03-23 14:50:38"),
    "msgid_mac": ("msgid_mac('0156F7E71C361B21BC024CCDBE00000007')", "56:f7:e7:1c:36:1b"),
    "msgid_origin": ("msgid_origin('0156F7E71C361B21BC024CCDBE00000007')", "mac"),
    "msgid_time_key": ("hex(msgid_time_key('0156F7E71C361B21BC024CCDBE00000007'))", "024CCDBE0000000756F7E71C361B21BC"),
    "msgid_to_binary": (
        "hex(msgid_to_binary('0156F7E71C361B21BC024CCDBE00000007'))",
        "0156F7E71C361B21BC024CCDBE00000007",
    ),
    "msgid_from_binary": (
        "msgid_from_binary(X'0156F7E71C361B21BC024CCDBE00000007')",
        "0156F7E71C361B21BC024CCDBE00000007",
    ),
    "msgid_to_uuid": ("msgid_to_uuid('0156F7E71C361B21BC024CCDBE00000007')", "56f7e71c-361b-21bc-024c-cdbe00000007"),
    "msgid_from_uuid": (
        "msgid_from_uuid('56f7e71c-361b-21bc-024c-cdbe00000007')",
        "0156F7E71C361B21BC024CCDBE00000007",
    ),
    "msgid_parse_v0": ("msgid_parse_v0('7F0000010000238F000000000001E240').host", "127.0.0.1"),
    "msgid_try_parse_v0": ("msgid_try_parse_v0('0156F7E71C361B21BC024CCDBE00000007')", None),
    "msgid_translate_v0": (
        "msgid_translate_v0('7F0000010000238F000000000001E240')",
        "007F0000010000238F000000000001E240",
    ),
    "msgid_try_translate_v0": ("msgid_try_translate_v0('0156F7E71C361B21BC024CCDBE00000007')", None),
    "msgid_v0_time": (
        "msgid_v0_time('C0A8F001103E214D29547ACFD6E30000', 1648047038, 'UTC')",
        "2022-02-24 20:20:41.315",
    ),
    "msgid_message_state": ("msgid_message_state(10)", "unavailable"),
    "msgid_checksum_ok": ("msgid_checksum_ok(X'616263', 891568578)", "true"),
    "msgid_from_iggy_id": (
        "msgid_from_iggy_id(X'AE97611CEC9EA9B08F49B3DDCA58B174')",
        "01AE97611CEC9EA9B08F49B3DDCA58B174",
    ),
    "msgid_is_expired": ("msgid_is_expired(1648047038, 3600, 1648060000)", "true"),
    "msgid_to_iggy_id": (
        "hex(msgid_to_iggy_id('74b158ca-ddb3-498f-b0a9-9eec1c6197ae'))",
        "74B158CADDB3498FB0A99EEC1C6197AE",
    ),
}
"""The call and its result by the name of the function; None is NULL."""


def example_of(name: str) -> str:
    """Return the example of a function in one line; nothing for a function without one."""
    if name not in EXAMPLES:
        return ""
    call, result = EXAMPLES[name]
    return f"{call} = {'NULL' if result is None else result}"
