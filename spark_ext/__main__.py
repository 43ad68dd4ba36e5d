"""Run the command line ``msgid-spark``, or ``python -m spark_ext``; `spark_ext.cli` defines it."""

from __future__ import annotations

import sys
from pathlib import Path

from msgid.shared.validate import to_install


def main() -> None:
    """Run the command line, or name the packages that it needs in one line."""
    name = "msgid-spark" if Path(sys.argv[0]).stem == "msgid-spark" else "python -m spark_ext"
    try:
        try:
            import click  # noqa: F401
            import pyspark  # noqa: F401
        except ImportError as missing:
            sys.exit(f"{name}: the command line needs {missing.name}: {to_install('spark,cli')}")
        from spark_ext.cli import main as run
    except KeyboardInterrupt:  # while modules are imported
        sys.exit(130)
    run(name)


if __name__ == "__main__":
    main()
