"""A network of some milliseconds: TCP is passed on after a delay each way, and counted.

`python -m bench.splinter.proxy 7 127.0.0.1:7001 127.0.0.1:7002` prints one JSON line with the
ports that lead to these addresses. Then it takes commands by line and answers each with a line:
`counts` tells bytes up and down for each address, `delay 27` sets another delay each way.

Connections themselves are made at once: only what travels on them is late. One thread passes on
everything. It sleeps until shortly before a piece is due and looks at the clock from then on, for
who sleeps is woken late, which would count as time of whoever is measured.
"""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from bench.machine import ROOT

PIECE_BYTES = 1 << 18
#: How long before a piece is due nobody sleeps any more.
AWAKE_S = 0.0002


@dataclass(slots=True)
class Way:
    """Bytes that went to one address and came from it."""

    up: int = 0
    down: int = 0


@dataclass(slots=True)
class Network:
    """The delay each way and what was counted."""

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
        return [Way(*item) for item in self._asked("counts")]

    def delay(self, each_way_ms: float) -> None:
        """Another delay from now on."""
        self._asked(f"delay {each_way_ms}")

    def _asked(self, command: str) -> Any:
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._line()

    def _line(self) -> Any:
        return json.loads(self._process.stdout.readline())


@dataclass(slots=True)
class Stream:
    """One direction of one connection, and what is under way there."""

    source: socket.socket
    target: socket.socket
    way: Way
    name: str
    late: deque[tuple[float, bytes]] = field(default_factory=deque)

    def read(self, delay_s: float) -> bool:
        """Take what has come; whether more may come."""
        try:
            piece = self.source.recv(PIECE_BYTES)
        except OSError:
            piece = b""
        self.late.append((time.monotonic() + delay_s, piece))
        setattr(self.way, self.name, getattr(self.way, self.name) + len(piece))
        return bool(piece)

    def write(self) -> bool:
        """Pass on what is due; whether more may follow."""
        while self.late and self.late[0][0] <= time.monotonic():
            _, piece = self.late.popleft()
            try:
                if not piece:
                    self.target.shutdown(socket.SHUT_WR)
                    return False
                self.target.sendall(piece)
            except OSError:
                return False
        return True


def main() -> None:
    """Serve until the standard input ends."""
    network = Network(float(sys.argv[1]) / 1000)
    doors: dict[socket.socket, tuple[tuple[str, int], Way]] = {}
    for address in sys.argv[2:]:
        host, port = address.rsplit(":", 1)
        network.ways.append(Way())
        door = socket.create_server(("127.0.0.1", 0), backlog=64)
        doors[door] = ((host, int(port)), network.ways[-1])
    threading.Thread(target=_pass_on, args=(doors, network), daemon=True).start()
    _say([door.getsockname()[1] for door in doors])
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "delay":
            network.delay_s = float(rest[0]) / 1000
        _say([[way.up, way.down] for way in network.ways])


def _say(figures: Any) -> None:
    print(json.dumps(figures), flush=True)


def _pass_on(
    doors: dict[socket.socket, tuple[tuple[str, int], Way]], network: Network
) -> None:  # fmt: skip
    reading: dict[socket.socket, Stream] = {}
    streams: list[Stream] = []
    while True:
        due = min((item.late[0][0] for item in streams if item.late), default=None)
        rest = None if due is None else max(0.0, due - time.monotonic() - AWAKE_S)
        ready, _, _ = select.select([*doors, *reading], [], [], rest)
        for item in ready:
            if item in doors:
                result = _connected(item, *doors[item])
                streams += result
                reading.update((stream.source, stream) for stream in result)
            elif not reading[item].read(network.delay_s):
                del reading[item]
        streams = [item for item in streams if item.write()]


def _connected(door: socket.socket, to: tuple[str, int], way: Way) -> list[Stream]:
    """Both directions of the next connection."""
    near, _ = door.accept()
    try:
        far = socket.create_connection(to)
    except OSError:
        near.close()
        return []
    for item in (near, far):
        item.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return [Stream(near, far, way, "up"), Stream(far, near, way, "down")]


if __name__ == "__main__":
    main()
