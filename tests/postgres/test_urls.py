"""URLs of PostgreSQL servers: hosts, passwords, and how connections are encrypted."""

from __future__ import annotations

from pathlib import Path

import pytest

from louver import errors
from louver.untrusted.engines.postgres import address
from louver.untrusted.engines.postgres.encryption import Encryption

SYSTEM = Encryption(("name", None, None), "offered")


@pytest.fixture(autouse=True)
def nothing_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither variables nor files of whoever runs the tests."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("SSLMODE", "SSLROOTCERT", "SSLCERT", "SSLKEY", "CHANNELBINDING", "PASSWORD"):
        monkeypatch.delenv(f"PG{name}", raising=False)


def password_of(url: str) -> str | None:
    (host,) = address.target_of(url).hosts
    return host.password


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://ann@db:5433/sales", ([("db", 5433)], "ann", "sales")),
        ("postgres://ann@db/s%20x", ([("db", 5432)], "ann", "s x")),
        ("postgresql://ann@[::1]:9/x", ([("::1", 9)], "ann", "x")),
        ("postgresql:///x?host=/run/pg&port=7&user=bob", ([("/run/pg", 7)], "bob", "x")),
        ("postgresql://a,b:2/x?user=u", ([("a", 5432), ("b", 2)], "u", "x")),
        ("postgresql:///x?host=a,/run/b&port=7,8&user=u", ([("a", 7), ("/run/b", 8)], "u", "x")),
        ("postgresql:///x?host=a,b&port=7&user=u", ([("a", 7), ("b", 7)], "u", "x")),
        ("postgresql://db?user=eve", ([("db", 5432)], "eve", "eve")),
    ],
)
def test_urls(url: str, expected: tuple[object, ...]) -> None:
    target = address.target_of(url)
    hosts = [(host.name, host.port) for host in target.hosts]
    assert (hosts, target.user, target.database) == (expected[0], *expected[1:])


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:secret@db/x", "postgresql://db/x?password=secret", "postgresql://db:x/y",
        "postgresql://db:0/y", "postgresql://a,,b/x", "postgresql://a,b/x?port=1,2,3",
        "postgresql://a/x?target_session_attrs=standby", "postgresql://db/x?sslmodus=1",
        "postgresql://[::1/x", "postgresql://db/x#y", "postgresql://db/x%00", "postgresql://db/x?y",
    ],
)  # fmt: skip
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(errors.InterfaceError) as caught:
        address.target_of(url)
    assert caught.value.code == "url.format"
    assert "secret" not in str(caught.value)


def test_passwords_come_from_the_environment_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "passwords"
    file.write_text("# none\nother:*:*:*:x\ndb:5432:*:ann:a\\:b\\\\c\n*:*:*:*:last\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    monkeypatch.delenv("PGPASSWORD", raising=False)
    assert password_of("postgresql://ann@db/x") == "a:b\\c"
    target = address.target_of("postgresql://bob@db,other/x")
    assert [host.password for host in target.hosts] == ["last", "x"]
    assert "last" not in repr(target)
    file.chmod(0o644)
    assert password_of("postgresql://bob@db/x") is None
    monkeypatch.setenv("PGPASSWORD", "given")
    assert password_of("postgresql://bob@db/x") == "given"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://db/x", SYSTEM),
        ("postgresql://192.0.2.1/x", SYSTEM),
        ("postgresql://localhost.example/x", SYSTEM),
        ("postgresql:///x?host=/run/pg", Encryption()),
        ("postgresql:///x?host=/run/pg&sslmode=verify-full", Encryption()),
        ("postgresql://localhost/x", Encryption()),
        ("postgresql://127.8.0.1/x", Encryption()),
        ("postgresql://[::1]/x", Encryption()),
        ("postgresql://localhost/x?sslmode=verify-full", SYSTEM),
        ("postgresql://db/x?sslmode=disable", Encryption()),
        ("postgresql://db/x?sslrootcert=/ca", Encryption(("name", "/ca", None), "offered")),
        (
            "postgresql://db/x?sslmode=verify-ca&sslrootcert=/ca&channel_binding=disable",
            Encryption(("authority", "/ca", None), "off"),
        ),
        (
            "postgresql://db/x?sslmode=require&channel_binding=require",
            Encryption(("nothing", None, None), "required"),
        ),
        (
            "postgresql://db/x?sslcert=/c&sslkey=/k&sslrootcert=system",
            Encryption(("name", None, ("/c", "/k")), "offered"),
        ),
    ],
)
def test_encryption(url: str, expected: Encryption) -> None:
    (host,) = address.target_of(url).hosts
    assert host.encryption == expected


@pytest.mark.parametrize(
    ("parameters", "part"),
    [
        ("sslmode=prefer", "in the open"), ("sslmode=allow", "in the open"),
        ("sslmode=require", "channel_binding=require"), ("sslmode=verify-ca", "anybody"),
        ("sslmode=verify-ca&sslrootcert=system", "anybody"), ("sslcert=/c", "missing"),
        ("sslkey=/k", "missing"), ("channel_binding=yes", "channel_binding"),
        ("sslmode=disable&channel_binding=require", "needs TLS"),
    ],
)  # fmt: skip
def test_encryption_that_is_refused(parameters: str, part: str) -> None:
    with pytest.raises(errors.InterfaceError, match=part) as caught:
        address.target_of(f"postgresql://db/x?{parameters}")
    assert caught.value.code == "url.format"


def test_encryption_of_the_environment_and_of_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / ".postgresql"
    folder.mkdir()
    names = ("root.crt", "postgresql.crt", "postgresql.key")
    for name in names:
        (folder / name).touch()
    roots, certificate, key = (str(folder / name) for name in names)
    (host,) = address.target_of("postgresql://db/x").hosts
    assert host.encryption == Encryption(("name", roots, (certificate, key)), "offered")
    monkeypatch.setenv("PGSSLMODE", "verify-ca")
    monkeypatch.setenv("PGCHANNELBINDING", "require")
    (host,) = address.target_of("postgresql://db/x?sslrootcert=/ca").hosts
    assert host.encryption == Encryption(("authority", "/ca", (certificate, key)), "required")
