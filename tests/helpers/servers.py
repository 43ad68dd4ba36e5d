"""Servers that tests start."""

import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


class PostgresServer:
    """A PostgreSQL server in a folder of its own; the test is skipped if PostgreSQL is not installed.

    Args:
        port: A port on the loopback interface; without one, the server listens on a socket in its folder.
    """

    def __init__(self, port=None):
        places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
        initdb = shutil.which("initdb") or next((str(place / "initdb") for place in places), None)
        if initdb is None or sys.platform == "win32":
            pytest.skip("no PostgreSQL server is installed")
        # Not in pytest's folders: another user cannot read them, and the path of a socket has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="msgid-"))
        self.binaries, self.data, self.port = Path(initdb).resolve().parent, self.folder / "data", port
        self.as_user = []
        if os.geteuid() == 0:  # the server does not run as root
            self.as_user = ["runuser", "-u", "postgres", "--"]
            shutil.chown(self.folder, "postgres")
        self.address = f"host={self.folder if port is None else '127.0.0.1'} user=msgid dbname=postgres"
        self.address += "" if port is None else f" port={port}"

    def call(self, program, *arguments):
        command = [*self.as_user, str(self.binaries / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)

    def control(self, *arguments):
        self.call("pg_ctl", "-D", str(self.data), "-w", *arguments)

    def create(self):
        try:
            self.call("initdb", "-D", str(self.data), "-A", "trust", "-U", "msgid", "--no-sync")
        except (OSError, subprocess.CalledProcessError) as error:
            shutil.rmtree(self.folder)
            pytest.skip(f"PostgreSQL cannot be started: {getattr(error, 'stderr', error)}")

    def start(self):
        listens = "''" if self.port is None else f"127.0.0.1 -c port={self.port}"
        options = f"-c listen_addresses={listens} -c unix_socket_directories={self.folder} -c fsync=off"
        self.control("-o", options, "-l", str(self.folder / "log"), "start")

    def remove(self):
        if (self.data / "postmaster.pid").exists():
            self.control("-m", "immediate", "stop")
        shutil.rmtree(self.folder)


@contextmanager
def running_postgres():
    """Start a real PostgreSQL server and return its connection string; skip the test if PostgreSQL is not installed."""
    server = PostgresServer()
    server.create()
    server.start()
    try:
        yield server.address
    finally:
        server.remove()


@contextmanager
def running_pair():
    """Start a PostgreSQL server and a standby that streams from it; return both."""
    with socket.socket() as first, socket.socket() as second:
        for one in (first, second):
            one.bind(("127.0.0.1", 0))
        servers = [PostgresServer(one.getsockname()[1]) for one in (first, second)]
    primary, standby = servers
    primary.create()
    try:
        primary.start()
        copy = ["-R", "-X", "stream", "-c", "fast", "-h", "127.0.0.1", "-p", str(primary.port), "-U", "msgid"]
        standby.call("pg_basebackup", "-D", str(standby.data), *copy)
        standby.start()
        yield primary, standby
    finally:
        for server in servers:
            server.remove()


def _listens(path):
    """Return whether a server accepts connections on a socket; the file appears before it does."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


@contextmanager
def running_pool(conninfo):
    """Start PgBouncer in transaction mode before a PostgreSQL server, with two connections, and return its address."""
    from psycopg.conninfo import conninfo_to_dict

    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("PgBouncer is not installed")
    server = conninfo_to_dict(conninfo)
    path = server.get("options", "").removeprefix("-c search_path=") or "public"
    folder = Path(tempfile.mkdtemp(prefix="msgid-"))
    (folder / "pool.ini").write_text(
        f"""[databases]
{server["dbname"]} = host={server["host"]} user={server["user"]} pool_size=2 connect_query='SET search_path = {path}'
[pgbouncer]
unix_socket_dir = {folder}
listen_port = 6432
auth_type = any
pool_mode = transaction
server_fast_close = 1
"""
    )
    as_user = []
    if os.geteuid() == 0:  # the pool does not run as root
        as_user = ["-u", "postgres"]
        shutil.chown(folder, "postgres")
    with open(folder / "log", "wb") as log:
        pool = subprocess.Popen([program, *as_user, str(folder / "pool.ini")], stdout=log, stderr=log)
    try:
        path = folder / ".s.PGSQL.6432"
        end = time.monotonic() + 30
        while not _listens(path):
            if pool.poll() is not None or time.monotonic() > end:
                raise OSError((folder / "log").read_text())
            time.sleep(0.01)
        yield f"host={folder} port=6432 user=msgid dbname={server['dbname']}"
    finally:
        pool.kill()
        pool.wait()
        shutil.rmtree(folder)


class _SilentNetwork:
    """Forwards bytes to a server until a client has sent a word: from then on nothing passes, and nothing is closed."""

    def __init__(self, folder, server):
        self.word, self.silent, self._sockets = None, threading.Event(), []
        self._server, self._listener = server, socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{folder}/.s.PGSQL.5432")
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, server = self._listener.accept()[0], socket.socket(socket.AF_UNIX)
                self._sockets += [client, server]
                server.connect(self._server)
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source, sink):
        with suppress(OSError):
            while data := source.recv(65536):
                if not self.silent.is_set():
                    sink.sendall(data)
                    if self.word and self.word in data:
                        self.silent.set()
            sink.shutdown(socket.SHUT_WR)

    def close(self):
        for one in (self._listener, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@contextmanager
def silent_network(conninfo):
    """Return a network before a PostgreSQL server, with its ``address``."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    folder = tempfile.mkdtemp(prefix="msgid-")
    network = _SilentNetwork(folder, f"{conninfo_to_dict(conninfo)['host']}/.s.PGSQL.5432")
    network.address = make_conninfo(conninfo, host=folder)
    try:
        yield network
    finally:
        network.close()
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
