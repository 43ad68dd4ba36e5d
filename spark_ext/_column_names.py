"""Names of columns: find the column that a text names, and make unused names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUOTED: Final = re.compile(r"`((?:[^`]|``)+)`")


def named_column(df: DataFrame, name: str) -> str | None:
    """Return the column for a text: its exact name, in backticks, or in another case; None if the column is missing."""
    quoted = _QUOTED.fullmatch(name)
    for wanted in (name, quoted[1].replace("``", "`")) if quoted else (name,):
        if wanted in df.columns:
            return wanted
        found = [column for column in df.columns if column.lower() == wanted.lower()]
        if len(found) == 1:
            return found[0]
    return None


def free_name(df: DataFrame, wanted: str) -> str:
    """Return an unused name that is similar to the wanted name; upper and lower case do not matter."""
    taken = {column.lower() for column in df.columns}
    while wanted.lower() in taken:
        wanted += "_"
    return wanted
