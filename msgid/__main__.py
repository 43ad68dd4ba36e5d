"""The command ``msgid``. Its subcommands are in `msgid.cli`, which needs Click and Rich."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from msgid import __version__
from msgid.ids._native import version_line
from msgid.shared.validate import to_install


def main() -> None:
    """Run the command line; if a required package is missing, exit with its name."""
    if sys.argv[1:] == ["--version"]:  # does not need Click or Rich
        print(version_line(__version__))
        return
    for package in ("click", "rich"):
        if find_spec(package) is None:
            sys.exit(f"msgid: the command line needs {package}: {to_install('cli')}")
    try:
        from msgid.cli import msgid as run

        run(prog_name="msgid")
    except KeyboardInterrupt:  # while modules are imported
        sys.exit(130)


if __name__ == "__main__":
    main()
