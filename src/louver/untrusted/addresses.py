"""How a service is reached: its address, and the secret that it shares with its clients."""

from __future__ import annotations

import stat
from ipaddress import ip_address
from pathlib import Path

from louver import errors


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_and_port(text: str) -> tuple[str, int]:
    """The parts of HOST:PORT (an IPv6 address in brackets); `serve.listen` for anything else."""
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdecimal() or int(port) > 65_535:
        raise errors.make("serve.listen", address=text, detail="write HOST:PORT")
    return host.strip("[]"), int(port)


def joined(host: str, port: int) -> str:
    """HOST:PORT, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def read_secret(path: str) -> str:
    """The shared secret in a file; `serve.secret` unless only its owner can read it."""
    file = Path(path).expanduser()
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        detail = getattr(error, "strerror", None) or "not text"
        raise errors.make("serve.secret", path=path, detail=detail) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise errors.make("serve.secret", path=path, detail=f"mode {mode & 0o777:04o}")
    if not 16 <= len(text) <= 1_024 or not text.isprintable() or " " in text:
        raise errors.make("serve.secret", path=path, detail="its length or form is not valid")
    return text
