"""Providers in this process: everything but the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

from louver.trusted.client.connect_providers import ProviderConnection
from louver.trusted.executor.private.fleet import Fleet
from louver.trusted.executor.private.session import ProviderSession
from louver.untrusted.engines.engine import Traffic
from louver.untrusted.providers.dataset import LoadedData, load
from louver.untrusted.providers.provider import Provider
from louver.untrusted.providers.sandbox import Limits
from louver.untrusted.providers.versions import Versions
from louver.wire import question_codec as codec
from louver.wire.questions import Ask, Dataset, Prepared, Reply, Shape


class LocalChannel:
    """A provider that is a function call away; messages are encoded and decoded all the same."""

    def __init__(self, versions: Versions, folder: str) -> None:
        self.versions, self.address, self.traffic = versions, folder, Traffic()
        self.asks: list[bytes] = []

    def describe(self) -> Dataset:
        return codec.decode(Dataset, codec.encode(self.versions.describe()))

    def prepare(self, shape: Shape, version: bytes, report: Any = None) -> Prepared:
        prepared = self.versions.prepare(shape, version, report)
        return codec.decode(Prepared, codec.encode(prepared))

    def answer(self, ask: Ask) -> Reply:
        self.asks.append(codec.encode(ask))
        reply = self.versions.answer(codec.decode(Ask, self.asks[-1]))
        return codec.decode(Reply, codec.encode(reply))

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        pass


def _same(core: Provider, _loaded: LoadedData) -> Provider:
    return core


def _provider(folder: Path, loaded: LoadedData) -> Provider:
    return Provider(loaded, folder, limits=Limits(threads=1))


@contextmanager
def connected(
    data: Sequence[Path],
    folder: Path,
    parties: int = 2,
    scheme: str = "owf",
    *,
    apart: bool = False,
) -> Iterator[ProviderConnection]:
    """A connection to as many providers of the same files.

    Each of them loads and prepares for itself if they are `apart`. Otherwise the first one's
    tables are those of all: what is tested is what they are asked, and what they answer.
    """
    held: list[Versions] = []
    channels = []
    loaded, core = None, None
    try:
        for number in range(parties):
            versions = Versions(60)
            held.append(versions)
            path = folder / f"cache{number}"
            path.mkdir()
            if loaded is None or core is None or apart:
                loaded = load([str(path) for path in data], path, threads=1)
                core = _provider(path, loaded)
            versions.install(loaded, partial(_same, core))
            channels.append(LocalChannel(versions, f"local:{number}"))
        session = ProviderSession(Fleet(channels), "providers://local", scheme)
        connection = ProviderConnection(cast(Any, session))
        with connection:
            yield connection
    finally:
        for channel in held:
            channel.close()
