"""Authorities and certificates for tests, made when they are needed."""

from __future__ import annotations

import datetime
import functools
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Authority:
    """Signs certificates; ``root`` is its own one, in PEM."""

    name: x509.Name
    key: ec.EllipticCurvePrivateKey
    root: bytes


@functools.cache
def authority(name: str = "tests") -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(f"authority of {name}")
    builder = _builder(subject, subject, key, -1, 10).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    root = builder.sign(key, hashes.SHA256())
    return Authority(subject, key, root.public_bytes(serialization.Encoding.PEM))


def signed(
    folder: Path,
    hosts: tuple[str, ...] = (),
    *,
    by: Authority | None = None,
    user: str = "server",
    first_day: int = -1,
    last_day: int = 10,
    hash_: hashes.SHA256 | hashes.SHA384 | None = None,
) -> tuple[Path, Path]:
    """A certificate and its key, as files: for these hosts, or for a user; days from now."""
    by = by or authority()
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_name(user), by.name, key, first_day, last_day)
    if hosts:
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    certificate = builder.sign(by.key, hash_ or hashes.SHA256())
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / f"{user}.crt", folder / f"{user}.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    paths[1].chmod(0o600)
    return paths


def root_file(folder: Path, by: Authority | None = None) -> Path:
    """The file of an authority's own certificate."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "root.crt"
    path.write_bytes((by or authority()).root)
    return path


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    first_day: int,
    last_day: int,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now + first_day * _DAY)
        .not_valid_after(now + last_day * _DAY)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
