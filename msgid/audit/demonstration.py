"""A table to try an audit on: the messages of a simulated cluster, and the truth about every fault in them.

    python -m msgid.audit.demonstration FOLDER [--seed 7]

The cluster has brokers, producers that restart in containers, and a clock that is set back. It loses, repeats and
changes messages.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from msgid._validate import check_installed
from msgid.audit._simulation import demonstration

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

__all__ = ["write"]


def write(folder: str | os.PathLike[str], *, seed: int = 7) -> None:
    """Write the table of a simulated cluster, and the truth about its faults.

    The folder gets two files, and is created if it is missing. ``messages.parquet`` has one row per message, with the
    columns ``id``, ``source``, ``offset``, ``timestamp``, ``landed`` and ``content``. ``truth.json`` has the findings
    and the gaps that an audit of this table must report.

    Args:
        folder: Folder of the two files; files of these names are replaced.
        seed: Any integer; the same seed gives the same rows.

    Raises:
        ImportError: if PyArrow is missing.
        OSError: if the files cannot be written.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> write(folder)
    >>> sorted(path.name for path in Path(folder).iterdir())
    ['messages.parquet', 'truth.json']
    """
    check_installed("the demonstration", "arrow", "pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    cluster = demonstration(seed)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(cluster.columns()), place / "messages.parquet")
    truth = [{"check": check, "scope": scope, "count": n} for (check, scope), n in sorted(cluster.expected.items())]
    gaps = [dict(zip(("kind", "scope", "first", "last"), gap, strict=True)) for gap in sorted(cluster.gaps)]
    text = json.dumps({"seed": seed, "findings": truth, "gaps": gaps}, indent=1)
    (place / "truth.json").write_text(text + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; ``arguments`` replace those of the process."""
    parser = argparse.ArgumentParser(
        prog="python -m msgid.audit.demonstration",
        description="Write the table of a simulated cluster, and the truth about its faults.",
    )
    parser.add_argument("folder", type=Path, help="folder of messages.parquet and truth.json")
    parser.add_argument("--seed", type=int, default=7, help="the same seed gives the same rows (default: 7)")
    chosen = parser.parse_args(arguments)
    write(chosen.folder, seed=chosen.seed)
    print(f"written: {chosen.folder / 'messages.parquet'} and {chosen.folder / 'truth.json'}")


if __name__ == "__main__":
    main()
