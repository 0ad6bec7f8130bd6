"""A provider of public data: `python -m louver.untrusted.servers.provider --data FILE`.

It answers private questions: it receives shares of functions, which reveal neither what is asked
nor the result. It has no key and loads none of Louver's trusted code. Run two, on machines whose
operators do not collude.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import ssl
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

# gRPC's logs of failed handshakes by strangers are not actionable for an operator.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc
from grpc import aio

from louver import coredumps, errors
from louver.untrusted.addresses import host_and_port, is_loopback, joined, read_secret
from louver.untrusted.providers.dataset import LoadedData
from louver.untrusted.providers.folder import Folder
from louver.untrusted.providers.provider import Provider
from louver.untrusted.providers.versions import Answering, Versions
from louver.untrusted.servers.provider_data import Keeper, Make, Talk, facts, printable
from louver.untrusted.servers.provider_options import Limits, add_options
from louver.untrusted.servers.provider_service import Service
from louver.untrusted.servers.record import Record
from louver.wire import question_codec as codec

#: The time for current questions at shutdown, and for everything together.
_ANSWER_SECONDS = 2.0
_GRACE_SECONDS = 3.0
_METADATA_BYTES = 8 << 10


def main(given: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C; the exit code."""
    if given is None:
        coredumps.switch_off()
    options = _parser().parse_args(given)
    logging.basicConfig(level=logging.ERROR, format="%(asctime)s %(message)s", stream=sys.stderr)
    for name in ("grpc", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        return asyncio.run(_serve(options))
    except errors.Error as error:
        if error.code == "interrupted":
            return 0
        text = json.dumps(error.as_dict()) if options.json else printable(f"error: {error}")
        (sys.stdout if options.json else sys.stderr).write(f"{text}\n")
        return 1


async def _serve(options: argparse.Namespace) -> int:
    host, port = host_and_port(options.listen)
    credentials = _credentials(options.certificate, options.key)
    if credentials is None and not is_loopback(host) and not options.insecure:
        raise errors.make("serve.plain", address=options.listen)
    secret = None if options.authorization is None else read_secret(options.authorization)
    limits = Limits.of(options)
    # Read by the compiled evaluation on first use.
    os.environ.setdefault("RAYON_NUM_THREADS", str(limits.cores))
    talk = Talk(as_json=options.json)
    record = None if options.record is None else Record(options.record)
    server = aio.server(options=_settings(limits), maximum_concurrent_rpcs=4 * limits.requests + 64)
    bound = _bound(server, host, port, credentials, options.listen)
    address = joined(host, bound)
    if credentials is None:
        talk.event(_warning(host), event="warning", warning=_warning(host))
    folder = Folder(options.cache)
    versions = Versions(limits.keep_seconds)
    keeper = Keeper(options.data, folder, versions, _maker(folder, limits), talk, limits.cores)
    service = Service(versions, limits, secret, address, record)
    server.add_generic_rpc_handlers((service.handler(),))
    ended = _signals(keeper)
    try:
        await _started(keeper, ended)
        await server.start()
        said = facts(versions)
        tables = ", ".join(f"{table.name} ({table.rows} rows)" for table in _tables(versions))
        talk.event(
            f"serving {tables}\nlistening at {address}", event="listening", address=address,
            secure=credentials is not None, **said,
        )  # fmt: skip
        reloads = asyncio.create_task(keeper.run(options.watch))
        await ended.wait()
        keeper.end()
        reloads.cancel()
        with suppress(asyncio.CancelledError):
            await reloads
    finally:
        ended_all = await _stopped(server, service)
        versions.close()
        folder.close()
    if not ended_all:
        _leave()
    return 0


async def _stopped(server: Any, service: Service) -> bool:
    """Accept no more requests, and end current ones; returns whether all have ended."""
    stopping = asyncio.create_task(server.stop(_GRACE_SECONDS))
    service.end(answers=False)
    await asyncio.wait({stopping}, timeout=_ANSWER_SECONDS)
    service.end(answers=True)
    await stopping
    return await asyncio.to_thread(service.close, _GRACE_SECONDS - _ANSWER_SECONDS)


def _leave() -> None:
    """End the process although a thread still computes; its result is not needed."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


async def _started(keeper: Keeper, ended: asyncio.Event) -> None:
    """Load the data, or end; a signal ends the load."""
    loading = asyncio.create_task(asyncio.to_thread(keeper.first))
    waiting = asyncio.create_task(ended.wait())
    await asyncio.wait({loading, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if ended.is_set():
        keeper.end()
    await loading


def _signals(keeper: Keeper) -> asyncio.Event:
    """SIGTERM and Ctrl-C set the event; SIGHUP reloads the data."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    loop.add_signal_handler(signal.SIGHUP, keeper.requested.set)
    return ended


def _maker(folder: Folder, limits: Limits) -> Make:
    """A function that opens a provider of one version."""

    def make(loaded: LoadedData) -> Answering:
        return Provider(loaded, folder.prepared, limits)

    return make


def _settings(limits: Limits) -> list[tuple[str, int]]:
    return [
        # Two providers on one port would each receive a part of the questions.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", limits.largest_request),
        ("grpc.max_send_message_length", codec.MAX_REPLY_BYTES),
        ("grpc.max_metadata_size", _METADATA_BYTES),
        ("grpc.absolute_max_metadata_size", 2 * _METADATA_BYTES),
        ("grpc.max_concurrent_streams", limits.client_requests + 16),
        ("grpc.max_allowed_incoming_connections", limits.connections),
        ("grpc.server_handshake_timeout_ms", 10_000),
        ("grpc.max_connection_idle_ms", 900_000),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 20_000),
    ]


def _bound(server: Any, host: str, port: int, credentials: Any, shown: str) -> int:
    address = joined(host, port)
    try:
        if credentials is None:
            bound_port = server.add_insecure_port(address)
        else:
            bound_port = server.add_secure_port(address, credentials)
    except RuntimeError as error:
        detail = "the address is in use, or not one of this machine"
        raise errors.make("serve.listen", address=shown, detail=detail) from error
    return int(bound_port)


def _credentials(certificate: str | None, key: str | None) -> Any:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise errors.make("serve.certificate", detail="give both --certificate and --key")
    try:
        # Detects OpenSSL's errors before any client connects.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
        with open(certificate, "rb") as chain, open(key, "rb") as secret:
            return grpc.ssl_server_credentials([(secret.read(), chain.read())])
    except (OSError, ValueError) as error:
        detail = getattr(error, "strerror", None) or type(error).__name__
        raise errors.make("serve.certificate", detail=detail) from error


def _warning(host: str) -> str:
    if is_loopback(host):
        return "without TLS: only programs of this machine can ask"
    return "WITHOUT TLS: an observer of both providers reads the questions"


def _tables(versions: Versions) -> Any:
    return versions.describe().tables


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="louver serve provider", description=__doc__)
    add_options(parser)
    parser.add_argument("--json", action="store_true", help="address, events and errors as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
