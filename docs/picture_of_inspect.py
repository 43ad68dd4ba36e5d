"""Draw what `msgid inspect` prints as an SVG file, without fonts from elsewhere.

python docs/picture_of_inspect.py
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

import msgid
from msgid.shared.command_line import drawn

TARGET = Path(__file__).parent / "pages" / "images" / "inspect.svg"
IDS = ("0156F7E71C361B21BC024CCDBE00000000", "C0A8F001103E214D29547ACFD6E30000")


def main() -> None:
    """Write the picture."""
    console = Console(record=True, width=100, file=io.StringIO())
    for text in IDS:
        id = msgid.parse(text)
        console.print(Text.assemble(id.kind, "  ", (id.hex, "bold")))
        for line in drawn(id):
            console.print(Text.from_ansi(line))
    svg = console.export_svg(title=f"msgid inspect {IDS[0][:8]}... {IDS[1][:8]}...", unique_id="inspect")
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    TARGET.write_text(svg.replace("Fira Code", "ui-monospace"), encoding="utf-8")


if __name__ == "__main__":
    main()
