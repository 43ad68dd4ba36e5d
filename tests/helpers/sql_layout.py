"""SQL formatted for review: one part per line, the long tables as a checksum."""

import re
import zlib

WIDTH = 110
NOTES = """\
-- What `spark_ext.register` runs, written by: pytest tests/unit/test_sql_functions.py --update-golden
-- Shortened: a table of 256 entries is its ends and the CRC-32 of its entries.
"""
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'")
_TABLE = re.compile(r"split\('([^']{500,})', ','\)")
_BREAK = re.compile(r", | (?=(?:WHEN|THEN|ELSE|END|AND|OR(?! REPLACE)|RETURN)\b)")


def laid_out(sql):
    """Return a statement, formatted and shortened as `NOTES` explains."""
    return "\n".join(_lines(shortened(sql), 0))


def shortened(sql):
    """Return a statement on one line with its tables shortened."""
    return _TABLE.sub(_checksum, sql)


def _checksum(match):
    entries = match[1].split(",")
    checksum = zlib.crc32(match[1].encode())
    return f"split(/* {len(entries)} entries: {entries[0]} to {entries[-1]}; CRC-32 {checksum:08X} */)"


def _lines(sql, indent):
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
    stop = next(place for place in range(start + 1, len(sql)) if masked[place] == ")" and depths[place] == 0)
    end = stop + 1 + sql[stop + 1 :].startswith(",")
    inner, rest = _lines(sql[start + 1 : stop], indent + 1), _lines(sql[end:], indent)
    return [" " * indent + sql[: start + 1], *inner, " " * indent + sql[stop:end], *rest]
