"""How a provider is started: TLS, secrets, what is wrong with its options, its folder."""

from __future__ import annotations

import argparse
import datetime
import socket
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from louver import errors
from louver.untrusted.addresses import host_and_port, is_loopback, joined
from louver.untrusted.engines.providers import Channel
from louver.untrusted.servers import provider, provider_options
from tests.providers.services import ask_of, prepared, serving, starting, write
from tests.sources import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "t.parquet", 100)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, and its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from ipaddress import ip_address

    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "provider")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = (folder / "certificate.pem", folder / "key.pem")
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


def test_tls_and_a_shared_secret(data: Path, tmp_path: Path) -> None:
    chain, key = certificate(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("s3cret-s3cret-s3cret\n")
    secret.chmod(0o600)
    options = (f"--certificate={chain}", f"--key={key}", f"--authorization={secret}")
    with serving(data, *options) as running:
        assert running.events[-1]["secure"] is True
        given = {"certificates": str(chain), "secure": True}
        channel = running.channel(authorization="s3cret-s3cret-s3cret", **given)
        shape = prepared(channel)
        assert channel.answer(ask_of(shape, b"ab")).data == b"ba"
        for authorization in (None, "s3cret-s3cret-s3creT"):
            with pytest.raises(errors.OperationalError) as denied:
                running.channel(authorization=authorization, **given).describe()
            assert denied.value.code == "serve.denied"
        # Authorities that did not sign it, no TLS where TLS is spoken.
        for other in ({"secure": True}, {"secure": False}):
            with pytest.raises(errors.OperationalError) as caught:
                running.channel(**other).describe()
            assert caught.value.code == "provider.unreachable"
            assert other["secure"] or "tls=on" in caught.value.message
        assert channel.answer(ask_of(shape, b"ab")).data == b"ba"
    assert "s3cret" not in running.output


def test_a_secret_does_not_cross_a_network_in_the_clear(tmp_path: Path) -> None:
    with pytest.raises(errors.InterfaceError) as caught:
        Channel("192.0.2.1:7001", None, "s3cret-s3cret-s3cret", secure=False)
    assert caught.value.code == "serve.plain"
    (tmp_path / "none.pem").write_text("nothing")
    for name in ("none.pem", "missing.pem"):
        with pytest.raises(errors.OperationalError) as refused:
            Channel("192.0.2.1:7001", str(tmp_path / name))
        assert refused.value.code == "provider.authorities"


def test_asking_without_tls_is_warned_of_once() -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(3):
            Channel("127.0.0.1:2").close()
        Channel("192.0.2.1:2", secure=False).close()
    assert [warning.category for warning in warned] == [errors.LeakageWarning] * 2
    assert all("without TLS" in str(warning.message) for warning in warned)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--listen=0.0.0.0:0"], "serve.plain"),
        (["--listen=nonsense"], "serve.listen"),
        (["--listen=192.0.2.1:7001", "--insecure"], "serve.listen"),
        (["--certificate=missing.pem"], "serve.certificate"),
        (["--certificate=missing.pem", "--key=missing.pem"], "serve.certificate"),
        (["--authorization=missing"], "serve.secret"),
        (["--data=missing.parquet"], "provider.data"),
        (["--cache=/proc/none"], "provider.data"),
        (["--record=/proc/none"], "provider.data"),
    ],
)
def test_what_cannot_be_served_is_said(data: Path, options: list[str], code: str) -> None:
    with starting(f"--data={data}", *options) as running:
        said = running.event("listening")
        assert (said["ok"], said["code"]) == (False, code)
        assert said["fix"]
        running.process.wait(30)
    assert running.code == 1
    assert "Traceback" not in running.output


def test_a_port_that_is_taken(data: Path) -> None:
    with (
        serving(data) as running,
        starting(f"--data={data}", f"--listen={running.address}") as other,
    ):
        assert other.event("listening")["code"] == "serve.listen"
        other.process.wait(30)


def test_a_cache_folder_is_of_one_provider(data: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with serving(data, f"--cache={cache}") as running:
        assert len(list(cache.glob("data-*.duckdb"))) == 1
        with starting(f"--data={data}", f"--cache={cache}") as other:
            assert other.event("listening")["code"] == "provider.data"
            other.process.wait(30)
        running.process.kill()
        running.process.wait()
        running.code = -9
    assert len(list(cache.glob("data-*.duckdb"))) == 1, "a killed provider removes nothing"
    with serving(data, f"--cache={cache}"):
        assert len(list(cache.glob("data-*.duckdb"))) == 1, "the next one does"
    assert not list(cache.glob("data-*.duckdb"))


def test_the_command_becomes_the_provider(data: Path) -> None:
    command = [sys.executable, "-m", "louver.trusted.apps.cli", "serve", "provider"]
    done = subprocess.run(
        [*command, "--data", str(data), "--listen", "0.0.0.0:0", "--json"],
        capture_output=True, text=True, cwd=ROOT, timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, '"serve.plain"' in done.stdout) == (1, True), done
    wrong = subprocess.run(
        [*command, "--listen", "127.0.0.1:0"],
        capture_output=True, text=True, cwd=ROOT, timeout=600, check=False,
    )  # fmt: skip
    assert (wrong.returncode, "--data" in wrong.stderr) == (2, True)


def test_options_cross_to_the_process() -> None:
    parser = argparse.ArgumentParser()
    provider_options.add_options(parser)
    parser.add_argument("--json", action="store_true")
    for given in (
        ["--data=a.csv"],
        ["--data=-a b.csv", "--data", "x=*.csv", "--insecure", "--json", "--watch=0.5"],
        ["--data=a", "--threads=3", "--asks=7", "--keep-seconds=1.5", "--cache=c", "--record=r"],
        ["--data=a", "--certificate=c", "--key=k", "--authorization=s", "--listen=[::1]:0"],
    ):
        options = parser.parse_args(given)
        assert parser.parse_args(provider_options.words(options)) == options
        assert provider_options.Limits.of(options).cores >= 1
    for wrong in ("--asks=0", "--threads=-1", "--watch=0", "--memory=x", "--keep-seconds=nan"):
        with pytest.raises(SystemExit):
            parser.parse_args(["--data=a", wrong])


def test_another_family_of_addresses(data: Path) -> None:
    """An IPv6 address is in brackets wherever it is written, and nowhere else."""
    assert host_and_port("[::1]:7001") == ("::1", 7001)
    assert joined(*host_and_port("[::1]:7001")) == "[::1]:7001"
    assert is_loopback("::1")
    assert not is_loopback("::")

    class Server:
        given = ""

        def add_insecure_port(self, address: str) -> int:
            self.given = address
            return 4_711

    server = Server()
    assert provider._bound(server, "::1", 0, None, "[::1]:0") == 4_711
    assert server.given == "[::1]:0"
    with starting(f"--data={data}", "--listen=[::1]:0") as running:
        said = running.event("listening")
        if not here("::1"):
            # A machine without such addresses: the provider says so, and which one it was.
            assert (said["code"], "[::1]:0" in said["error"]) == ("serve.listen", True)
            return
        assert said["address"].startswith("[::1]:")
        channel = Channel(said["address"])
        assert channel.answer(ask_of(prepared(channel), b"ab")).data == b"ba"
        channel.close()


def here(address: str) -> bool:
    """Whether this machine has an address of IPv6."""
    try:
        socket.create_server((address, 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True
