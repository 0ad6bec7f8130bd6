"""The pruning service: who may come in, and how it begins and ends."""

from __future__ import annotations

import datetime
import http.client
import ipaddress
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from louver import errors
from louver.untrusted.engines.lake import LakeEngine
from louver.untrusted.lake.http import HttpObjects, Service
from louver.untrusted.lake.remote import RemoteWarehouse
from louver.untrusted.servers import prune
from tests.lake.conftest import Filled
from tests.lake.services import raw, serving
from tests.sources import ROOT


@pytest.fixture(scope="module")
def secret(folder: Path) -> Path:
    path = folder / "secret"
    path.write_text("correct-horse-battery-staple\n")
    path.chmod(0o600)
    return path


def test_a_shared_secret(folder: Path, filled: Filled, secret: Path) -> None:
    word = secret.read_text().strip()
    with serving(folder / "lake", "--authorization", str(secret)) as running:
        for given in (None, "wrong" * 5, word[:-1], word.upper()):
            with pytest.raises(errors.OperationalError) as denied:
                HttpObjects(Service(running.url, given)).list("louver").__next__()
            assert denied.value.code == "serve.denied"
            with pytest.raises(errors.OperationalError):
                RemoteWarehouse(Service(running.url, given))
        headers = {"Authorization": f"Basic {word}"}
        assert raw(running, "GET", "/v1/config", headers=headers)[0] == 401
        warehouse = RemoteWarehouse(Service(running.url, word))
        assert "t5" in warehouse.tables()
        assert LakeEngine("", running.url, word).table_names() == []
        assert word not in repr(Service(running.url, word))
    assert running.output == "trusted: []\n"


def test_secrets_that_are_refused(
    folder: Path, secret: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loose = folder / "loose"
    loose.write_text("correct-horse-battery-staple")
    loose.chmod(0o644)
    short = folder / "short"
    short.write_text("short")
    short.chmod(0o600)
    for path in (loose, short, folder / "missing"):
        assert refusal(capsys, folder, "--authorization", str(path)) == "serve.secret"
    # It is sent to nobody where others read it on the way.
    with pytest.raises(errors.InterfaceError):
        Service("lake+http://elsewhere.example:80", "correct-horse-battery-staple")


def refusal(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> str:
    """The code with which the service refuses to begin."""
    assert prune.main([str(folder / "lake"), "--json", *options]) == 1
    return str(json.loads(capsys.readouterr().out)["code"])


def test_the_command_becomes_the_service(folder: Path, filled: Filled) -> None:
    command = [sys.executable, "-m", "louver.trusted.apps.cli", "--json", "serve", "prune"]
    done = subprocess.run(
        [*command, str(folder / "lake"), "--listen", "0.0.0.0:0"],
        capture_output=True, text=True, timeout=600, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["code"] == "serve.plain"
    begun = subprocess.Popen(
        [*command, str(folder / "lake"), "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert begun.stdout is not None
    url = json.loads(begun.stdout.readline())["url"]
    assert "t5" in RemoteWarehouse(Service(url)).tables()
    begun.send_signal(signal.SIGINT)
    assert begun.communicate(timeout=600) == ("", "")
    assert begun.returncode == 0


def test_addresses_that_are_refused(
    folder: Path, filled: Filled, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(capsys, folder, "--listen", "0.0.0.0:0") == "serve.plain"
    assert refusal(capsys, folder, "--listen", "[::]:0") == "serve.plain"
    (folder / "duck/lake").mkdir(parents=True)
    with serving(folder / "lake") as running:
        assert refusal(capsys, folder, "--listen", f"127.0.0.1:{running.port}") == "serve.listen"
    assert refusal(capsys, folder, "--listen", "nonsense") == "serve.listen"
    assert refusal(capsys, folder, "--certificate", "x") == "serve.certificate"
    assert refusal(capsys, folder, "--certificate", "x", "--key", "y") == "serve.certificate"
    assert refusal(capsys, folder / "none") == "lake.io"
    assert refusal(capsys, folder, "--properties", str(folder / "none")) == "lake.io"
    properties = folder / "properties.toml"
    properties.write_text('format = "ducklake"')
    assert refusal(capsys, folder / "duck", "--properties", str(properties)) == "usage"
    properties.write_text("no toml")
    assert refusal(capsys, folder, "--properties", str(properties)) == "lake.io"


#: Waits for requests under way for longer than TLS waits for a farewell.
PATIENT = "from louver.untrusted.servers import prune; prune._GRACE_SECONDS = 100"


def test_tls(folder: Path, filled: Filled, secret: Path) -> None:
    certificate, key = folder / "cert.pem", folder / "key.pem"
    make_certificate(certificate, key)
    word = secret.read_text().strip()
    with serving(
        folder / "lake", "--listen", "127.0.0.1:0", "--certificate", str(certificate),
        "--key", str(key), "--authorization", str(secret), before=PATIENT,
    ) as running:  # fmt: skip
        assert running.url.startswith("https://")
        warehouse = RemoteWarehouse(Service(f"lake+{running.url}", word, str(certificate)))
        assert "t5" in warehouse.tables()
        assert warehouse.table("t5").current_snapshot() is not None
        with pytest.raises(errors.OperationalError) as strange:
            RemoteWarehouse(Service(running.url, word))
        assert strange.value.code == "serve.unreachable"
        begin = time.monotonic()
        running.end()
        assert time.monotonic() - begin < 25, "it awaits the farewells of idle clients"
    assert running.code == 0
    assert running.output == "trusted: []\n"


def make_certificate(certificate: Path, key: Path) -> None:
    private_key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private_key, hashes.SHA256())
    )
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    kind, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key.write_bytes(private_key.private_bytes(serialization.Encoding.PEM, kind, plain))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_it_is_told(folder: Path, filled: Filled, number: int) -> None:
    with serving(folder / "lake") as running:
        client = http.client.HTTPConnection("127.0.0.1", running.port)
        client.request("GET", "/v1/config")
        assert client.getresponse().read()
        begin = time.monotonic()
        running.end(number)
        assert running.code == 0
        assert time.monotonic() - begin < 60
    with pytest.raises(errors.OperationalError) as gone:
        RemoteWarehouse(Service(running.url))
    assert gone.value.code == "serve.unreachable"
