"""The earlier form of `parse_v0`, which reads each number with ``conv``: the rival in the measurement of `parse_v0`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from msgid import layout
from msgid.ids.checked_bytes import NOT_V0
from spark_ext.columns.building import struct_if
from spark_ext.columns.id_text import is_canonical_v0, is_v0
from spark_ext.columns.identity import hex_text
from spark_ext.columns.reasons import raise_invalid
from spark_ext.columns.v0 import _ipv6

if TYPE_CHECKING:
    from pyspark.sql import Column

TAIL_DIGITS = 2 * layout.TAIL_LENGTH
IPV6_DIGITS = 2 * layout.IPV6_LENGTH


def parse_v0(name: str) -> Column:
    """Return the fields of version-0 IDs, as `spark_ext.parse_v0` does."""
    text = hex_text(name)
    return struct_if(text, is_v0(text), raise_invalid(text, NOT_V0), fields(text))


def decimal(digits: Column) -> Column:
    return F.conv(digits, 16, 10)


def fields(text: Column) -> dict[str, Column]:
    tail = F.right(text, F.lit(TAIL_DIGITS))
    # Without the version byte, the digits before the last 24 are the address.
    bare = F.when(is_canonical_v0(text), F.substring(text, 3, IPV6_DIGITS + TAIL_DIGITS)).otherwise(text)
    address = F.left(bare, F.length(bare) - TAIL_DIGITS)

    def number(start: int, stop: int) -> Column:
        return decimal(F.substring(tail, 2 * start + 1, 2 * (stop - start))).cast("bigint")

    port_field, offset_field = layout.BROKER_FIELDS.values()
    client = {name: number(field.start, field.stop) for name, field in layout.CLIENT_FIELDS.items()}
    port = number(port_field.start, port_field.stop)
    split = offset_field.stop - layout.OFFSET_MAX.bit_length() // 8
    high, offset = number(offset_field.start, split), number(split, offset_field.stop)
    is_broker_shaped = port.between(1, layout.PORT_MAX) & (high == 0)
    ends_in_zero = number(offset_field.stop - 1, offset_field.stop) == 0
    is_ambiguous = is_broker_shaped & (offset >= layout.AMBIGUOUS_OFFSET_MIN) & ends_in_zero
    is_broker = is_broker_shaped & ~is_ambiguous
    ipv4 = F.concat_ws(".", *(decimal(F.substring(address, start, 2)) for start in range(1, 9, 2)))
    return {
        "kind": F.when(is_ambiguous, F.lit(layout.KIND_AMBIGUOUS))
        .when(is_broker, F.lit(layout.KIND_BROKER_OFFSET))
        .otherwise(F.lit(layout.KIND_CLIENT_UNIQUE)),
        "host": F.when(F.length(address) == IPV6_DIGITS, _ipv6(address)).otherwise(ipv4),
        "port": F.when(is_broker, port.cast("int")),
        "offset": F.when(is_broker, offset),
        "pid": F.when(~is_broker, client["pid"].cast("int")),
        "loader_hash": F.when(~is_broker, client["loader_hash"]),
        "elapsed_ms": F.when(~is_broker, client["elapsed_ms"]),
        "counter": F.when(~is_broker, client["counter"].cast("int")),
    }
