"""A network namespace for servers that listen on all addresses, and its ports on 127.0.0.1 outside of it.

A server in the namespace has only a loopback interface of its own, so nothing outside reaches it. As a program, this
module carries connections from sockets that listen outside to the same ports inside.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import shutil
import socket
import struct
import subprocess
import sys

UP = b"up\n"


class Namespace:
    """A network namespace, some of whose ports are also ports of 127.0.0.1.

    Args:
        count: The number of ports.
    """

    def __init__(self, count: int) -> None:
        import pytest

        for program in ("unshare", "nsenter", "setpriv"):
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed")
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        self.ports: list[int] = [held.getsockname()[1] for held in sockets]
        numbers = [str(held.fileno()) for held in sockets]
        command = [
            "unshare",
            "--net",
            "--map-root-user",
            "setpriv",
            "--pdeathsig=KILL",
            sys.executable,
            __file__,
            *numbers,
        ]
        self.process = subprocess.Popen(
            command, pass_fds=[int(n) for n in numbers], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for held in sockets:
            held.close()
        assert self.process.stdout is not None
        if self.process.stdout.readline() != UP:
            self.process.kill()
            pytest.skip(f"this machine refuses a network namespace: {self.process.communicate()[1][-200:]!r}")

    def command(self, command: list[str]) -> list[str]:
        """Return a command that starts in the namespace, under the process ID that the caller sees."""
        return ["nsenter", f"--target={self.process.pid}", "--user", "--net", "--preserve-credentials", *command]

    def end(self) -> None:
        """End the namespace."""
        self.process.kill()
        self.process.communicate()


def answers(port: int) -> bool:
    """Return whether a server behind a port of 127.0.0.1 keeps a connection open."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 2) as probe:
        probe.settimeout(0.3)
        try:
            return probe.recv(1) != b""
        except TimeoutError:
            return True
    return False


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while part := await reader.read(1 << 16):
            writer.write(part)
            await writer.drain()
    writer.close()


async def _forward(sockets: list[socket.socket]) -> None:
    servers = []
    for outside in sockets:
        port = outside.getsockname()[1]

        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int = port) -> None:
            try:
                inside = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                writer.close()
                return
            await asyncio.gather(_pump(reader, inside[1]), _pump(inside[0], writer))

        servers.append(await asyncio.start_server(carry, sock=outside))
    sys.stdout.buffer.write(UP)
    sys.stdout.buffer.flush()
    await asyncio.gather(*(server.serve_forever() for server in servers))


def _loopback_up() -> None:
    """Turn on the loopback interface of this process's namespace."""
    set_flags, is_up = 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh", b"lo", is_up).ljust(40, b"\0"))


if __name__ == "__main__":
    _loopback_up()
    asyncio.run(_forward([socket.socket(fileno=int(number)) for number in sys.argv[1:]]))
