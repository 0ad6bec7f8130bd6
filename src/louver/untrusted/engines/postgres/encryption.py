"""How a connection to a host is encrypted: libpq's parameters, without those of its ways that go on
in the open where somebody in between wants it.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from louver.untrusted.engines.postgres.wrong_url import wrong

#: Of a URL, and the variables that stand in for them.
PARAMETERS = {
    "sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY", "channel_binding": "PGCHANNELBINDING",
}  # fmt: skip
_BINDINGS = {"disable": "off", "prefer": "offered", "require": "required"}
_CHECKS = {"require": "nothing", "verify-ca": "authority", "verify-full": "name"}
_HOME = Path(".postgresql")


@dataclass(frozen=True, slots=True)
class Encryption:
    """``tls``: what is checked of the server ("nothing", "authority", "name"), the file of the
    roots (None: the system's), our own certificate and its key; None where none is spoken.
    ``binding`` of a password's proof to it: "off", "offered" or "required".
    """

    tls: tuple[str, str | None, tuple[str, str] | None] | None = None
    binding: str = "off"


def encryption_of(host: str, given: Mapping[str, str]) -> Encryption:
    """What a URL's parameters and the environment say for a host."""
    settings = {name: given.get(name) or os.environ.get(of) for name, of in PARAMETERS.items()}
    binding = _BINDINGS.get(settings["channel_binding"] or "prefer")
    if binding is None:
        raise wrong("channel_binding is one of disable, prefer, require")
    mode = settings["sslmode"] or ("disable" if is_local(host) else "verify-full")
    if mode not in ("disable", *_CHECKS):
        raise wrong(
            f"sslmode is one of disable, require, verify-ca, verify-full: {mode!r:.20} would go on"
            " in the open where somebody in between says that the server has none"
        )
    if mode == "disable" or host.startswith("/"):
        if binding == "required":
            raise wrong("channel_binding=require needs TLS: sslmode=verify-full, and a host")
        return Encryption()
    if mode == "require" and binding != "required":
        raise wrong(
            "sslmode=require does not check who the server is: take verify-full, or add"
            " channel_binding=require, which has the server prove itself by your password"
        )
    roots = settings["sslrootcert"] or _of_home("root.crt") or "system"
    if roots == "system" and mode == "verify-ca":
        raise wrong("sslmode=verify-ca with the system's authorities accepts anybody's server")
    identity = (
        settings["sslcert"] or _of_home("postgresql.crt"),
        settings["sslkey"] or _of_home("postgresql.key"),
    )
    if (identity[0] is None) != (identity[1] is None):
        raise wrong("of sslcert and sslkey one is missing")
    own = (identity[0], identity[1]) if identity[0] and identity[1] else None
    return Encryption((_CHECKS[mode], None if roots == "system" else roots, own), binding)


def is_local(host: str) -> bool:
    """Whether a host is this machine by its very name: names that a resolver decides are not."""
    if host.startswith("/") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _of_home(name: str) -> str | None:
    path = Path.home() / _HOME / name
    return str(path) if path.exists() else None
