"""The command ``msgid``; what it does is in `msgid.cli`, which needs Click and Rich."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say in one line what to install for it."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ImportError as missing:
        sys.exit(f"msgid: the command line needs {missing.name}: pip install 'msgid[cli]'")
    from msgid.cli import msgid

    msgid(prog_name="msgid")


if __name__ == "__main__":
    main()
