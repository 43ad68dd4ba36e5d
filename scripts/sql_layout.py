"""The file of the SQL functions: one part of a body per line, so that a diff shows what a change does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spark_ext.sql.registration import Definition

WIDTH: Final = 110
_TEXT: Final = re.compile(r"'(?:[^'\\]|\\.)*'")
_BREAK: Final = re.compile(r", | (?=(?:WHEN|THEN|ELSE|END|AND|OR)\b)")
_HEAD: Final = """\
-- The SQL functions, which `spark_ext.register` creates. Written by: python scripts/sql_functions.py
"""


def file_of(definitions: Iterable[Definition]) -> str:
    """Return the text of the file, which `spark_ext.sql.registration.definitions` reads."""
    return "\n".join([_HEAD, *map(_entry, definitions)])


def _entry(one: Definition) -> str:
    comment = one.comment.replace("\\", r"\\").replace("'", r"\'")
    kind = "" if one.deterministic else ", not deterministic"
    return "\n".join(
        [
            f"-- returns {one.returns}{kind}",
            f"CREATE OR REPLACE TEMPORARY FUNCTION {one.name}({one.parameters})",
            f"COMMENT '{comment}'",
            "RETURN",
            *laid_out(one.body),
            ";",
            "",
        ]
    )


def laid_out(sql: str) -> list[str]:
    """Return the lines of an expression; only its white space changes."""
    return _lines(sql, 1)


def _lines(sql: str, indent: int) -> list[str]:
    sql = sql.strip()
    if indent + len(sql) <= WIDTH:
        return [" " * indent + sql] if sql else []
    depths, depth = [], 0
    masked = _TEXT.sub(lambda match: "q" * len(match[0]), sql)  # a bracket in a text is not counted
    for char in masked:
        depth -= char == ")"
        depths.append(depth)
        depth += char == "("
    cuts = [match.end() for match in _BREAK.finditer(masked) if depths[match.start()] == 0]
    if cuts:
        parts = [sql[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(sql)], strict=True)]
        return [line for part in parts for line in _lines(part, indent)]
    start = masked.find("(")
    if start < 0:
        return [" " * indent + sql]
    stop = next(index for index in range(start + 1, len(sql)) if masked[index] == ")" and depths[index] == 0)
    end = stop + 1 + sql[stop + 1 :].startswith(",")
    inner, rest = _lines(sql[start + 1 : stop], indent + 1), _lines(sql[end:], indent)
    return [" " * indent + sql[: start + 1], *inner, " " * indent + sql[stop:end], *rest]
