"""Addresses of machines, as people write them."""

from __future__ import annotations

from ipaddress import ip_address

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
