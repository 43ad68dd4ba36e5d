"""Servers that tests start."""

import logging
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


@contextmanager
def running_s3(bucket):
    """Start moto's S3 server on the loopback interface with one bucket, and return the variables of its clients."""
    server_module = pytest.importorskip("moto.server", reason="moto[server] is not installed")
    boto3 = pytest.importorskip("boto3")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",  # of deltalake's client
    }
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    try:
        boto3.client("s3", endpoint_url=environment["AWS_ENDPOINT_URL"], **keys).create_bucket(Bucket=bucket)
        yield environment
    finally:
        server.stop()
