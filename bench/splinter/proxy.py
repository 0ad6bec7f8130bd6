"""A network of some milliseconds: TCP is passed on after a delay each way, and counted.

`python -m bench.splinter.proxy 7 127.0.0.1:7001 127.0.0.1:7002` prints one JSON line with the
ports that lead to these addresses. Then it takes commands by line and answers each with a line:
`counts` tells bytes up and down for each address, `delay 27` sets another delay each way.

Connections themselves are made at once: only what travels on them is late. Threads sleep until a
piece is due; asyncio's timers would round up to whole milliseconds.
"""

from __future__ import annotations

import json
import queue
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from bench.machine import ROOT

PIECE_BYTES = 1 << 18


@dataclass(slots=True)
class Way:
    """Bytes that went to one address and came from it."""

    up: int = 0
    down: int = 0


@dataclass(slots=True)
class Network:
    """The delay each way and what was counted, shared by all threads."""

    delay_s: float
    ways: list[Way] = field(default_factory=list)


class Proxy:
    """The process, from outside."""

    def __init__(self, addresses: list[str], delay_ms: float) -> None:
        """One port for each address; see `ports`."""
        command = [sys.executable, "-m", "bench.splinter.proxy", str(delay_ms), *addresses]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ports: list[int] = self._line()
        self.pid = self._process.pid

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait(10)

    @property
    def addresses(self) -> list[str]:
        """What to connect to."""
        return [f"127.0.0.1:{port}" for port in self.ports]

    def counts(self) -> list[Way]:
        """Bytes up and down since the start, for each address."""
        return [Way(*one) for one in self._asked("counts")]

    def delay(self, each_way_ms: float) -> None:
        """Another delay from now on."""
        self._asked(f"delay {each_way_ms}")

    def _asked(self, command: str) -> Any:
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._line()

    def _line(self) -> Any:
        return json.loads(self._process.stdout.readline())


def main() -> None:
    """Serve until the standard input ends."""
    sys.setswitchinterval(0.0002)
    network = Network(float(sys.argv[1]) / 1000)
    ports = []
    for address in sys.argv[2:]:
        host, port = address.rsplit(":", 1)
        network.ways.append(Way())
        door = socket.create_server(("127.0.0.1", 0), backlog=64)
        ports.append(door.getsockname()[1])
        given = (door, (host, int(port)), network, network.ways[-1])
        threading.Thread(target=_accept, args=given, daemon=True).start()
    _say(ports)
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "delay":
            network.delay_s = float(rest[0]) / 1000
        _say([[way.up, way.down] for way in network.ways])


def _say(told: Any) -> None:
    print(json.dumps(told), flush=True)


def _accept(door: socket.socket, to: tuple[str, int], network: Network, way: Way) -> None:
    while True:
        near, _ = door.accept()
        far = socket.create_connection(to)
        for one in (near, far):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, target, name in ((near, far, "up"), (far, near, "down")):
            late: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
            reading = (source, late, network, way, name)
            threading.Thread(target=_read, args=reading, daemon=True).start()
            threading.Thread(target=_write, args=(target, late), daemon=True).start()


def _read(
    source: socket.socket,
    late: queue.SimpleQueue[tuple[float, bytes]],
    network: Network,
    way: Way,
    name: str,
) -> None:
    piece = b"-"
    while piece:
        try:
            piece = source.recv(PIECE_BYTES)
        except OSError:
            piece = b""
        setattr(way, name, getattr(way, name) + len(piece))
        late.put((time.monotonic() + network.delay_s, piece))


def _write(target: socket.socket, late: queue.SimpleQueue[tuple[float, bytes]]) -> None:
    while True:
        due, piece = late.get()
        if (rest := due - time.monotonic()) > 0:
            time.sleep(rest)
        try:
            if not piece:
                target.shutdown(socket.SHUT_WR)
                return
            target.sendall(piece)
        except OSError:
            return


if __name__ == "__main__":
    main()
