"""What stands in front of a real server: its TLS where it is built without (the wheel's), or
somebody in between who answers otherwise than the server.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

REQUEST = bytes((0, 0, 0, 8, 4, 210, 22, 47))
"""The request for TLS."""
_PATIENCE_S = 10.0
_AT_ONCE = 1 << 16


@dataclass
class Front:
    """Listens on a port of 127.0.0.1. ``answer`` is what it says when it is asked for TLS; with
    ``context`` it then speaks TLS. ``target``: the Unix socket or the port behind it, which is
    asked for TLS itself where ``again`` is true. ``changed`` is given what the server says.
    ``seen`` are the names that clients ask for, and their protocols.
    """

    target: Path | int
    context: ssl.SSLContext | None = None
    answer: bytes = b"S"
    again: bool = False
    changed: Callable[[bytes], bytes] = bytes
    port: int = 0
    seen: list[str | None] = field(default_factory=list)
    opened: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Of a database of the server behind it, by TCP."""
        return f"postgresql://louver@127.0.0.1:{self.port}/postgres"

    def serve(self, listener: socket.socket) -> None:
        """Take clients until the listener is closed."""
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._take, args=(client,), daemon=True).start()

    def _take(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            client.settimeout(_PATIENCE_S)
            self.opened.append(client)
            first = _exactly(client, 8)
            if first == REQUEST:
                client.sendall(self.answer)
                if self.context is None:
                    client.recv(_AT_ONCE)
                    client.close()
                    return
                client = self.context.wrap_socket(client, server_side=True)
                self.opened.append(client)
                first = b""
            self._relay(client, first)

    def _relay(self, client: socket.socket, first: bytes) -> None:
        server = self._server()
        self.opened.append(server)
        server.sendall(first)
        back = threading.Thread(target=_pump, args=(server, client, self.changed), daemon=True)
        back.start()
        _pump(client, server, bytes)

    def _server(self) -> socket.socket:
        if isinstance(self.target, Path):
            server = socket.socket(socket.AF_UNIX)
            server.settimeout(_PATIENCE_S)
            server.connect(str(self.target))
            return server
        server = socket.create_connection(("127.0.0.1", self.target), _PATIENCE_S)
        if not self.again:
            return server
        server.sendall(REQUEST)
        assert _exactly(server, 1) == b"S"
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        return trusting.wrap_socket(server)


def serving(certificate: tuple[Path, Path], **versions: ssl.TLSVersion) -> ssl.SSLContext:
    """TLS of a server with a certificate; `maximum_version` and so on may be set."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    for name, version in versions.items():
        setattr(context, name, version)
    return context


@contextmanager
def running(front: Front) -> Iterator[Front]:
    """The front, on a port of its own, until the block ends."""
    if front.context is not None:
        front.context.set_alpn_protocols(["postgresql"])

        def named(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> None:
            front.seen.append(name)

        front.context.sni_callback = named
    with socket.create_server(("127.0.0.1", 0)) as listener:
        front.port = listener.getsockname()[1]
        worker = threading.Thread(target=front.serve, args=(listener,), daemon=True)
        worker.start()
        try:
            yield front
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            worker.join()
            for connection in front.opened:
                with contextlib.suppress(OSError):
                    connection.close()


def _exactly(connection: socket.socket, count: int) -> bytes:
    read = b""
    while len(read) < count:
        part = connection.recv(count - len(read))
        if not part:
            raise ConnectionResetError
        read += part
    return read


def _pump(source: socket.socket, sink: socket.socket, changed: Callable[[bytes], bytes]) -> None:
    try:
        while part := source.recv(_AT_ONCE):
            sink.sendall(changed(part))
    except (OSError, ValueError):
        pass
    finally:
        for connection in (source, sink):
            with contextlib.suppress(OSError):
                connection.close()
