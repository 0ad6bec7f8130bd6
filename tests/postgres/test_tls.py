"""TLS to PostgreSQL: who is trusted, who is not, and who stands in between."""

from __future__ import annotations

import shutil
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives import hashes

from louver import errors
from louver.untrusted.engines.postgres import open_url
from louver.wire.messages import Statement
from tests.postgres import certificates, servers
from tests.postgres.front import Front, running, serving

SECRET = "correct horse"
HBA = """\
local all secret scram-sha-256
local all all trust
hostssl all certified 127.0.0.1/32 cert
hostssl all all 127.0.0.1/32 scram-sha-256
"""
WHEEL = servers.binaries()["wheel"]
SYSTEM = [name for name in sorted(servers.binaries()) if name != "wheel"]
Open = Callable[..., Front]


def without_tls(data: Path) -> dict[str, str]:
    (data / "pg_hba.conf").write_text(HBA.replace("hostssl", "# "))
    return {"listen_addresses": "127.0.0.1"}


def with_tls(data: Path) -> dict[str, str]:
    """Certificate for localhost alone, so that 127.0.0.1 is another host."""
    certificate, key = certificates.signed(data, ("localhost",), hash_=hashes.SHA384())
    root = certificates.root_file(data)
    for path in (certificate, key, root):
        servers.given(path)
    (data / "pg_hba.conf").write_text(HBA)
    return {
        "ssl": "on", "ssl_cert_file": str(certificate), "ssl_key_file": str(key),
        "ssl_ca_file": str(root), "listen_addresses": "127.0.0.1",
    }  # fmt: skip


def administer(server: servers.Server, sql: str) -> None:
    engine = open_url(server.url())
    engine.run(Statement(sql, kind="write"))
    engine.close()


@pytest.fixture(scope="module")
def plain_server() -> Iterator[servers.Server]:
    """A server that is built without TLS."""
    with servers.started(WHEEL, without_tls, servers.free_port()) as server:
        administer(server, f"CREATE ROLE secret SUPERUSER LOGIN PASSWORD '{SECRET}'")
        yield server


@pytest.fixture(scope="module", params=SYSTEM or [""])
def server(request: pytest.FixtureRequest) -> Iterator[servers.Server]:
    """A server with TLS of its own."""
    if not request.param:
        pytest.skip("the system has no PostgreSQL; the wheel's is built without TLS")
    binary = servers.binaries()[request.param]
    with servers.started(binary, with_tls, servers.free_port()) as running_server:
        for role in ("secret", "certified"):
            administer(running_server, f"CREATE ROLE {role} SUPERUSER LOGIN PASSWORD '{SECRET}'")
        yield running_server


@pytest.fixture
def front(plain_server: servers.Server, tmp_path: Path) -> Iterator[Open]:
    """Opens fronts of the server without TLS, with a certificate for localhost unless others are
    asked for.
    """
    with ExitStack() as stack:

        def open_one(
            *hosts: str, versions: dict[str, ssl.TLSVersion] | None = None, **changes: Any
        ) -> Front:
            pair = certificates.signed(tmp_path / "front", hosts or ("localhost",), **changes)
            context = serving(pair, **(versions or {}))
            return stack.enter_context(running(Front(plain_server.socket, context)))

        yield open_one


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return certificates.root_file(tmp_path / "root")


def url_of(port: int, host: str = "localhost", user: str = servers.USER, **given: Any) -> str:
    parameters = {"sslmode": "verify-full", **given}
    chosen = urlencode({name: str(value) for name, value in parameters.items() if value})
    return f"postgresql://{user}@{host}:{port}/postgres?{chosen}"


def ask(url: str) -> object:
    engine = open_url(url)
    try:
        return engine.value(Statement("SELECT 7"))
    finally:
        engine.close()


def refusal(url: str, code: str = "server.tls") -> str:
    with pytest.raises(errors.OperationalError) as caught:
        ask(url)
    assert caught.value.code == code, caught.value
    return str(caught.value)


def test_a_server_that_is_who_it_should_be(front: Open, root: Path, key_file: Path) -> None:
    open_front = front()
    url = url_of(open_front.port, sslrootcert=root)
    with servers.connect(url, keys=key_file, profile="cryptdb") as con:
        con.execute("CREATE OR REPLACE TABLE t (i INTEGER ENC, s VARCHAR ENC)")
        con.execute("INSERT INTO t SELECT i, repeat('x', 900) || i FROM range(4000) AS r(i)")
        assert con.execute("SELECT sum(i), max(length(s)) FROM t").fetchall() == [(7998000, 904)]
        con.execute("DROP TABLE t")
    assert set(open_front.seen) == {"localhost"}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions(front: Open, root: Path, version: ssl.TLSVersion) -> None:
    versions = {"minimum_version": version, "maximum_version": version}
    assert ask(url_of(front(versions=versions).port, sslrootcert=root)) == 7


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_versions_are_refused(front: Open, root: Path) -> None:
    old = ssl.TLSVersion.TLSv1_1
    port = front(versions={"minimum_version": old, "maximum_version": old}).port
    refusal(url_of(port, sslrootcert=root))


def test_an_authority_that_nobody_named(front: Open, tmp_path: Path) -> None:
    other = certificates.root_file(tmp_path / "other", certificates.authority("others"))
    port = front("localhost", "127.0.0.1").port
    for mode in ("verify-ca", "verify-full"):
        text = refusal(url_of(port, sslrootcert=other, sslmode=mode))
        assert "not signed by an authority" in text
    assert "not signed by an authority" in refusal(url_of(port, sslrootcert="system"))


def test_another_host(front: Open, root: Path) -> None:
    port = front("db.example").port
    text = refusal(url_of(port, sslrootcert=root))
    assert "not for localhost" in text
    assert "db.example" in text
    assert ask(url_of(port, sslrootcert=root, sslmode="verify-ca")) == 7
    assert "not for 127.0.0.1" in refusal(url_of(front().port, "127.0.0.1", sslrootcert=root))
    assert ask(url_of(front("127.0.0.1").port, "127.0.0.1", sslrootcert=root)) == 7


def test_times(front: Open, root: Path) -> None:
    for days, part in (((-9, -1), "expired"), ((2, 9), "not valid yet")):
        port = front(first_day=days[0], last_day=days[1]).port
        for mode in ("verify-ca", "verify-full"):
            assert part in refusal(url_of(port, sslrootcert=root, sslmode=mode))


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (b"N", "does not speak TLS"), (b"E", "not a PostgreSQL server"),
        (b"HTTP/1.1 400 Bad Request\r\n", "not a PostgreSQL server"),
        (b"SR\0\0\0\x08\0\0\0\0", "between"), (b"NR\0\0\0\x08\0\0\0\0", "does not speak TLS"),
        (b"E\0\0\0\x20SFATAL\0C28000\0Mthe server says\0\0", "not a PostgreSQL server"),
    ],
)  # fmt: skip
def test_no_answer_but_one_byte_leads_to_a_session(
    plain_server: servers.Server, root: Path, answer: bytes, part: str
) -> None:
    """Bytes that stand behind it would be taken for the server's, within TLS (CVE-2021-23222)."""
    with running(Front(plain_server.socket, answer=answer)) as open_front:
        text = refusal(url_of(open_front.port, sslrootcert=root))
        assert part in text
        assert "the server says" not in text


def test_bytes_that_come_later_than_the_answer(plain_server: servers.Server, root: Path) -> None:
    """What is not a record ends the handshake."""
    with running(Front(plain_server.socket, answer=b"S")) as open_front:
        refusal(url_of(open_front.port, sslrootcert=root))


def test_a_server_without_tls(plain_server: servers.Server, root: Path) -> None:
    assert "ssl = on" in refusal(url_of(plain_server.port, sslrootcert=root))


def test_files_that_cannot_be_used(front: Open, root: Path, tmp_path: Path) -> None:
    port = front().port
    empty, nothing = tmp_path / "empty", tmp_path / "nothing"
    empty.touch()
    assert "no certificate" in refusal(url_of(port, sslrootcert=empty))
    assert "nothing" in refusal(url_of(port, sslrootcert=nothing))
    certificate, key = certificates.signed(tmp_path, user="certified")
    other, other_key = certificates.signed(tmp_path, user="other")
    own: dict[str, Any] = {"sslrootcert": root, "sslcert": certificate, "sslkey": key}
    assert ask(url_of(port, **own)) == 7
    assert "do not fit" in refusal(url_of(port, **{**own, "sslkey": other_key}))
    shutil.copyfile(other, other_key)
    assert "not a key" in refusal(url_of(port, **{**own, "sslkey": other_key}))
    key.chmod(0o644)
    assert "chmod 600" in refusal(url_of(port, **own))


def test_no_password_that_binds(front: Open, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server behind knows nothing of the TLS in front of it."""
    monkeypatch.setenv("PGPASSWORD", SECRET)
    given: dict[str, Any] = {"sslrootcert": root, "channel_binding": "require"}
    port = front().port
    assert "asks for no password" in refusal(url_of(port, **given))
    assert "no channel binding" in refusal(url_of(port, user="secret", **given))
    assert ask(url_of(port, user="secret", sslrootcert=root)) == 7


@pytest.mark.parametrize(
    "given",
    [
        {"sslmode": "verify-full"}, {"sslmode": "verify-ca"}, {"channel_binding": "disable"},
        {"channel_binding": "require"},
        {"sslmode": "require", "channel_binding": "require", "sslrootcert": ""},
    ],
)  # fmt: skip
def test_a_server_of_the_system(
    server: servers.Server, root: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    given = {"sslrootcert": str(root), **given}
    assert ask(url_of(server.port, user="secret", **given)) == 7
    monkeypatch.setenv("PGPASSWORD", "wrong")
    refusal(url_of(server.port, user="secret", **given), "server.denied")


def test_our_own_certificate(server: servers.Server, root: Path, tmp_path: Path) -> None:
    port = server.port
    certificate, key = certificates.signed(tmp_path, user="certified")
    own: dict[str, Any] = {"sslrootcert": root, "sslcert": certificate, "sslkey": key}
    assert ask(url_of(port, user="certified", **own)) == 7
    refusal(url_of(port, user="certified", sslrootcert=root), "server.denied")
    strange = certificates.authority("strangers")
    certificate, key = certificates.signed(tmp_path / "strange", user="certified", by=strange)
    own = {"sslrootcert": root, "sslcert": certificate, "sslkey": key}
    assert "ended the handshake" in refusal(url_of(port, user="certified", **own))


def test_who_stands_in_between_with_a_good_certificate(
    server: servers.Server, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proof of the password is bound to the certificate that the client saw."""
    monkeypatch.setenv("PGPASSWORD", SECRET)
    context = serving(certificates.signed(tmp_path, ("localhost",)))
    with running(Front(server.port, context, again=True)) as between:
        url = url_of(between.port, user="secret", sslrootcert=root)
        refusal(url, "server.denied")
        assert ask(url + "&channel_binding=disable") == 7
        required = url_of(between.port, user="secret", sslmode="require", channel_binding="require")
        refusal(required, "server.denied")


def test_an_offer_that_somebody_takes_away(
    server: servers.Server, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who would have bound the proof says so within it."""
    monkeypatch.setenv("PGPASSWORD", SECRET)

    def poorer(said: bytes) -> bytes:
        return said.replace(b"SCRAM-SHA-256-PLUS\0", b"SCRAM-SHA-256-XXXX\0")

    context = serving(certificates.signed(tmp_path, ("localhost",)))
    front = Front(server.port, context, again=True, changed=poorer)
    with running(front) as between:
        refusal(url_of(between.port, user="secret", sslrootcert=root), "server.denied")


def test_a_statement_is_cancelled(
    server: servers.Server, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request to cancel goes through TLS as well."""
    monkeypatch.setenv("PGPASSWORD", SECRET)
    engine = open_url(url_of(server.port, user="secret", sslrootcert=root))
    assert engine.value(Statement("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))
    timer = threading.Timer(0.3, engine.interrupt)
    timer.start()
    with pytest.raises(errors.OperationalError) as caught:
        engine.query(Statement("SELECT pg_sleep(20)"))
    assert caught.value.code == "interrupted"
    timer.join()
    assert engine.value(Statement("SELECT 7")) == 7
    engine.close()
