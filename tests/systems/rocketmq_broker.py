"""RocketMQ on the loopback interface: name server, and broker and proxy in one process, in a network namespace."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helpers.rocketmq_log import LogRecord, read_log
from systems.maven import class_path
from systems.namespace import Namespace, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

ROCKETMQ = [f"org.apache.rocketmq:rocketmq-{part}:5.5.0" for part in ("namesrv", "broker", "proxy", "tools")]
ROCKETMQ_CLIENT = ["org.apache.rocketmq:rocketmq-client-java:5.2.0"]
"""The client of gRPC has other classes under the names of the servers', so it must not be on their class path."""
NODE_CLIENT = "rocketmq-client-nodejs@1.0.8"
GO_CLIENT = "github.com/apache/rocketmq-client-go/v2@v2.1.3-0.20251226070945-2173d070fd1b"
NAMES = """
listenPort={names}
bindAddress=127.0.0.1
rocketmqHome={folder}
kvConfigPath={folder}/names.json
"""
BROKER = """
brokerClusterName=check
brokerName=broker-a
brokerId=0
brokerIP1=127.0.0.1
namesrvAddr=127.0.0.1:{names}
listenPort={broker}
storePathRootDir={folder}/store
storePathCommitLog={folder}/store/commitlog
mappedFileSizeCommitLog=67108864
mappedFileSizeConsumeQueue=600000
transactionCheckInterval=5000
transactionTimeOut=5000
"""
# The servers end with the tests, also if these are killed.
# Without 1 GB of direct memory, consumers of 5.x get nothing and no error.
JAVA = [
    "setpriv",
    "--pdeathsig=KILL",
    "java",
    "-XX:MaxDirectMemorySize=1g",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
]
CLIENT_ZONE = "Asia/Shanghai"
"""The time zone of the Java clients, in which their IDs count from the first of the month."""
START_SECONDS = 600


class RocketMQ:
    """A name server, a broker and its proxy; and Java clients in a process of their own.

    Args:
        class_path: The class path of the servers and of the remoting client.
        client_path: The class path of the client of gRPC.
        folder: An empty folder for settings, data and output.
    """

    name = "broker-a"

    def __init__(self, class_path: str, client_path: str, folder: Path) -> None:
        self._folder = folder
        self._class_path, self._client_path = class_path, f"{client_path}:{class_path}"
        self._namespace = Namespace(3)
        names, broker, proxy = self._namespace.ports
        self.port, self.address, self.names = broker, f"127.0.0.1:{proxy}", f"127.0.0.1:{names}"
        self._addresses = [f"127.0.0.1:{port}" for port in (names, broker, proxy)]
        for file, text in (("names.conf", NAMES), ("broker.conf", BROKER)):
            (folder / file).write_text(text.format(names=names, broker=broker, folder=folder), encoding="utf-8")
        proxy_settings = {"rocketMQClusterName": "check", "proxyMode": "LOCAL", "namesrvAddr": self._addresses[0],
                          "grpcServerPort": proxy, "localServeAddr": "127.0.0.1"}  # fmt: skip
        (folder / "proxy.json").write_text(json.dumps(proxy_settings), encoding="utf-8")
        self._running: dict[str, subprocess.Popen[Any]] = {}

    def _java(self, name: str, heap: str, path: str, *arguments: str, **streams: Any) -> subprocess.Popen[Any]:
        command = [*JAVA, f"-Xmx{heap}", f"-Duser.home={self._folder}", "-cp", path, *arguments]
        environment = {**os.environ, "ROCKETMQ_HOME": str(self._folder)}
        with (self._folder / f"{name}.out").open("ab") as output:
            streams = {"stdout": output, "stderr": output, **streams}
            self._running[name] = subprocess.Popen(
                self._namespace.command(command), cwd=self._folder, env=environment, **streams
            )
        return self._running[name]

    def _wait_for(self, name: str, port: int) -> None:
        end = time.monotonic() + START_SECONDS
        while not answers(port):
            if time.monotonic() > end or self._running[name].poll() is not None:
                raise AssertionError((self._folder / f"{name}.out").read_text(errors="replace")[-2000:])
            time.sleep(0.1)

    def start(self) -> None:
        """Start all servers and wait until they answer."""
        names, broker, proxy = self._namespace.ports
        if "names" not in self._running:
            self._java(
                "names", "128m", self._class_path, "org.apache.rocketmq.namesrv.NamesrvStartup", "-c", "names.conf"
            )
            self._wait_for("names", names)
        settings = ["-pc", str(self._folder / "proxy.json"), "-bc", str(self._folder / "broker.conf")]
        self._java("broker", "512m", self._class_path, "org.apache.rocketmq.proxy.ProxyStartup", *settings)
        self._wait_for("broker", broker)
        self._wait_for("broker", proxy)

    def kill(self) -> None:
        """End the broker and its proxy with SIGKILL."""
        self._running["broker"].kill()
        self._running["broker"].wait()

    def stop(self) -> None:
        """End the broker and its proxy with SIGTERM, or with SIGKILL if they go on for half a minute."""
        self.signal(signal.SIGTERM)
        try:
            self._running["broker"].wait(30)
        except subprocess.TimeoutExpired:
            self.kill()

    def signal(self, number: int) -> None:
        """Send a signal to the broker and its proxy."""
        self._running["broker"].send_signal(number)

    def end(self) -> None:
        """End all processes."""
        for process in self._running.values():
            process.kill()
            process.wait()
        self._namespace.end()

    def python_client(self) -> Any:
        """Return the Python client, which writes its log into the broker's folder."""
        import pytest

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOME", str(self._folder))
            return pytest.importorskip("rocketmq")

    def ask(self, do: str, topic: str, **request: Any) -> Any:
        """Let a Java client do something; `RocketClient.java` lists what."""
        client = self._running.get("client")
        if client is None:
            source = str(Path(__file__).with_name("RocketClient.java"))
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "encoding": "utf-8"}
            zone = f"-Duser.timezone={CLIENT_ZONE}"
            client = self._java("client", "256m", self._client_path, zone, source, *self._addresses, **pipes)
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(json.dumps({"do": do, "topic": topic, **request}) + "\n")
        client.stdin.flush()
        line = client.stdout.readline()
        assert line, (self._folder / "client.out").read_text(errors="replace")[-2000:]
        found = json.loads(line)
        assert "error" not in found, f"{do} of {topic}: {found['error']}"
        return found["answer"]

    def mqadmin(self, *arguments: str) -> str:
        """Run a command of RocketMQ's administration tool, and return its output."""
        tool = ["-Xmx128m", "-cp", self._class_path, "org.apache.rocketmq.tools.command.MQAdminStartup"]
        command = self._namespace.command([*JAVA, f"-Duser.home={self._folder}", *tool, *arguments])
        settings = {"ROCKETMQ_HOME": str(self._folder), "NAMESRV_ADDR": self._addresses[0]}
        return subprocess.check_output(command, cwd=self._folder, env=os.environ | settings, text=True, timeout=120)

    def rows(self, do: str, topic: str, **request: Any) -> list[dict[str, Any]]:
        """Return the rows of a Java consumer, with bodies as bytes."""
        return [{**row, "body": base64.b64decode(row["body"])} for row in self.ask(do, topic, **request)]

    def records(self) -> Iterator[LogRecord]:
        """Yield the records of the broker's commit log."""
        for file in sorted((self._folder / "store" / "commitlog").iterdir()):
            yield from read_log(file.read_bytes())


def started(folder: Path) -> Iterator[RocketMQ]:
    """Yield a running broker, and end it; skip the test if a program or an artifact is missing."""
    servers, client = class_path("rocketmq", ROCKETMQ, "javac"), class_path("rocketmq-client", ROCKETMQ_CLIENT)
    folder.mkdir(exist_ok=True)
    broker = RocketMQ(servers, client, folder)
    try:
        broker.start()
        yield broker
    finally:
        broker.end()
