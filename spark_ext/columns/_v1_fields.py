"""The fields of version-1 IDs, from their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgid import layout
from spark_ext.columns._crc import WORD_WIDTH, look_up, octet, word
from spark_ext.columns._dialect import F
from spark_ext.columns._expressions import named_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

SQL_NAME = "_msgid_v1_fields"
"""The name of the SQL function of all fields."""
_NODE = layout.FIELDS["node"]
_OCTETS = [f"octet{place}" for place in range(_NODE.start, _NODE.stop)]
_NUMBERS = ("pid", "seconds", "sequence")
SQL_PARAMETERS = {**dict.fromkeys(_OCTETS, "INT"), **dict.fromkeys(_NUMBERS, "BIGINT")}
"""The parameters of that function. Spark computes the arguments of a function once."""
SQL_OF_BYTES = "_msgid_v1_of_bytes"
"""The name of the SQL function that reads the bytes of an ID and calls that function."""
_MAC = [f"{byte:02x}:" for byte in range(256)]
_MAC_END = [f"{byte:02x}" for byte in range(256)]
_ORIGINS = [layout.origin_of(byte << 40) for byte in range(256)]  # by the first byte of a node


def parts_of(raw: Column) -> dict[str, Column]:
    """Read the bytes of the node, each as an index of `look_up`, and four bytes from the start of each number."""
    octets = (octet(F.substring(raw, place + 1, 1)) for place in range(_NODE.start, _NODE.stop))  # counted from 1
    numbers = (word(F.substring(raw, layout.FIELDS[name].start + 1, WORD_WIDTH)) for name in _NUMBERS)
    return dict(zip(SQL_PARAMETERS, (*octets, *numbers), strict=True))


def fields_of(parts: Mapping[str, Column]) -> dict[str, Column]:
    """Return the fields of an ID by the parts that `parts_of` read."""
    octets, seconds = [parts[name] for name in _OCTETS], parts["seconds"]
    return {
        "version": F.lit(layout.VERSION_1),
        "mac": F.concat(*(look_up(one, _MAC) for one in octets[:-1]), look_up(octets[-1], _MAC_END)),
        "pid": F.shiftright(parts["pid"], 8 * (WORD_WIDTH - layout.FIELDS["pid"].width)).cast("int"),
        "seconds": seconds,
        "time": F.timestamp_seconds(seconds + layout.EPOCH_UNIX),
        "sequence": parts["sequence"],
        "origin": look_up(octets[0], _ORIGINS),
    }


def fields_struct(*parts: Column) -> Column:
    """Return the fields of a version-1 ID as a struct: the body of the SQL function that others call."""
    found = fields_of(dict(zip(SQL_PARAMETERS, parts, strict=True)))
    # A parameter alone has metadata, which makes another type of the struct: Spark would then convert each row.
    return named_fields({name: field.bitwiseOR(0) if name in _NUMBERS[1:] else field for name, field in found.items()})


def struct_of_bytes(raw: Column) -> Column:
    """Return the fields of the 17 bytes of an ID, NULL for NULL: the body of another SQL function."""
    return F.when(raw.isNotNull(), F.call_function(SQL_NAME, *parts_of(raw).values()))
