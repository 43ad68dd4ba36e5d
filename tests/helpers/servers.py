"""Servers that tests start."""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def running_postgres():
    """Start a real PostgreSQL server and return its connection string; skip the test if PostgreSQL is not installed."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    initdb = shutil.which("initdb") or next((str(place / "initdb") for place in places), None)
    if initdb is None or sys.platform == "win32":
        pytest.skip("no PostgreSQL server is installed")
    # Not in pytest's folders: another user cannot read them, and the path of a socket has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="msgid-"))
    binaries, data = Path(initdb).parent, folder / "data"
    as_user = []
    if os.geteuid() == 0:  # the server does not run as root
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")

    def call(program, *arguments):
        subprocess.run([*as_user, str(binaries / program), *arguments], check=True, capture_output=True, cwd=folder)

    try:
        call("initdb", "-D", str(data), "-A", "trust", "-U", "msgid", "--no-sync")
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(folder)
        pytest.skip(f"PostgreSQL cannot be started: {getattr(error, 'stderr', error)}")
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    call("pg_ctl", "-D", str(data), "-w", "-o", options, "-l", str(folder / "log"), "start")
    try:
        yield f"host={folder} user=msgid dbname=postgres"
    finally:
        call("pg_ctl", "-D", str(data), "-m", "immediate", "stop")
        shutil.rmtree(folder)
