"""Carriers of IDs, the functions that take them, and the page of the documentation with the result of each pair.

A carrier is one line of a list, and so is an entry point. A cell is "same", if the function gives the same result
for the carrier as for a list of the same IDs as text; "not an ID", if the function does not read the value as an ID; or
"refused", if an error of one line names the type and the cure.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "pages" / "carriers.md"
SAME, REFUSED, NO_ID = "same", "refused", "not an ID"
CURES = re.compile(r"cast it|as text|pass (its|one|another)|write text|rtrim")

V1 = "0156F7E71C361B21BC024CCDBE00000007"
V0 = "7F0000010000238F000000000001E240"
UUID = "74b158ca-ddb3-498f-b0a9-9eec1c6197ae"
DIGITS = "01560000000000000000000000000000" + "07"
"""A version-1 ID whose digits are all decimal, which engines read as a number."""


class Carrier(NamedTuple):
    """A form of a column of IDs."""

    name: str
    ids: tuple[str, ...]
    """The IDs that it holds, as text."""
    make: object
    """Returns the column."""


def is_refusal(error, column=None):
    """Return whether an error is one line with the column, its type and the cure."""
    text = str(error)
    return "\n" not in text and bool(CURES.search(text)) and (column is None or f"'{column}'" in text)


def section_of(name):
    """Return the rows of a table of the page: a dict of carriers to a dict of entry points to cells."""
    lines = PAGE.read_text(encoding="utf-8").partition(f"## {name}\n")[2].partition("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    head, *rows = cells or [[]]
    return {row[0].strip(): dict(zip(head[1:], row[1:], strict=True)) for row in rows[1:]}


def check(name, cells, request):
    """Check a table of the page, or its columns in ``cells``; with ``--update-golden`` write them first.

    A cell is one of the words that the page explains; any other cell is the text of a fault.
    """
    wrong = [cell for row in cells.values() for cell in row.values() if cell not in (SAME, REFUSED, NO_ID, "-")]
    assert not wrong, "\n".join(wrong)
    if request.config.getoption("--update-golden"):
        _write_section(name, cells)
    page = section_of(name)
    assert {carrier: {entry: row[entry] for entry in cells[carrier]} for carrier, row in page.items()} == cells


def _write_section(name, cells):
    """Write the columns of the table of a section anew; other columns, which other tests write, stay."""
    text = PAGE.read_text(encoding="utf-8")
    before, found, rest = text.partition(f"## {name}\n")
    assert found, f"the page must have a section {name!r}"
    intro = rest.partition("\n## ")[0].partition("\n|")[0].rstrip()
    after = rest.partition("\n## ")
    old = section_of(name)
    merged = {carrier: {**old.get(carrier, {}), **row} for carrier, row in cells.items()}
    entries = list(dict.fromkeys(entry for row in merged.values() for entry in row))
    lines = [["carrier", *entries], ["---"] * (1 + len(entries))]
    lines += [[carrier, *(row.get(entry, "") for entry in entries)] for carrier, row in merged.items()]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    PAGE.write_text(f"{before}## {name}\n{intro}\n\n{table}\n{after[1]}{after[2]}", encoding="utf-8")
