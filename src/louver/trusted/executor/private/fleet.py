"""All providers of one connection, queried in parallel at one version of the data.

What is sent to one provider is never sent to another, not even after a failure: a repeated question
has fresh shares. Providers that prepared different tables are detected before a share is sent.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Protocol, TypeVar

from louver import errors
from louver.untrusted.engines.engine import Traffic
from louver.wire import reply_sizes
from louver.wire.questions import LEFT_OUT, Ask, Dataset, Prepared, Reply, Shape

ProgressReport = Callable[[str, float], None]
_Result = TypeVar("_Result")
#: The most prepared shapes remembered; a provider limits its own number of tables.
_MOST_SHAPES = 512


#: Names of types are used in local SQL, so a provider may only name these.
_FIELD = re.compile(r"[gpco]\d{1,4}|position")
_TYPE = re.compile(r"[A-Z][A-Z0-9_ ]{0,40}(?:\(\d{1,3}(?:, ?\d{1,3})?\))?")
_CHOICE = r"'(?:[^'\x00]|'')*'"
_ENUM = re.compile(rf"ENUM\({_CHOICE}(?:, {_CHOICE})*\)")


class Channel(Protocol):
    """The connection to one provider, such as `louver.untrusted.engines.providers.Channel`."""

    @property
    def address(self) -> str:
        """Its address, as given by the user."""

    @property
    def traffic(self) -> Traffic:
        """The traffic so far."""

    def describe(self) -> Dataset:
        """Describe the provider's data set."""

    def prepare(self, shape: Shape, version: bytes, hear: ProgressReport | None = None) -> Prepared:
        """Prepare a shape, unless it is already prepared."""

    def answer(self, ask: Ask) -> Reply:
        """Have the provider evaluate shares."""

    def interrupt(self) -> None:
        """Stop the current request; may be called from another thread."""

    def close(self) -> None:
        """Close the connection."""


class Fleet:
    """The providers of one connection, in the order of the parties of a share."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        """Ask every provider for its data set; they must be different machines with common data."""
        if len(channels) < 2:
            raise errors.make("provider.few", count=len(channels))
        self.channels = list(channels)
        self._pool = ThreadPoolExecutor(len(channels), thread_name_prefix="louver-provider")
        self._known: dict[Shape, Prepared] = {}
        self.rounds = 0
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise

    @property
    def parties(self) -> int:
        """The number of providers."""
        return len(self.channels)

    @property
    def traffic(self) -> Traffic:
        """The traffic so far, to and from all of them."""
        counts = [channel.traffic for channel in self.channels]
        return Traffic(
            sum(count.statements for count in counts), sum(count.bytes_out for count in counts),
            sum(count.bytes_in for count in counts),
        )  # fmt: skip

    def refresh(self) -> None:
        """Choose the newest version that all of them hold, and forget what was prepared on another
        version.
        """
        datasets = self._all([channel.describe for channel in self.channels])
        for (i, first), (j, other) in combinations(enumerate(datasets), 2):
            if first.instance == other.instance:
                raise errors.make(
                    "provider.same", first=self.channels[i].address, second=self.channels[j].address
                )
        dataset, self.version = self._common(datasets)
        self.dataset = _usable(dataset)
        self._known.clear()

    def _common(self, datasets: Sequence[Dataset]) -> tuple[Dataset, bytes]:
        """The newest common version. All providers must describe its tables alike: by naming a
        column or a type differently, one of them could change the meaning of a question.
        """
        first = self.channels[0].address
        for version in datasets[0].versions:
            if not all(version in other.versions for other in datasets):
                continue
            tables = [dataset.tables_of(version) for dataset in datasets]
            for number, other in enumerate(tables):
                if other is None or other != tables[0]:
                    raise errors.make(
                        "provider.differ", first=first, second=self.channels[number].address,
                        detail="they list different tables for the same version",
                    )  # fmt: skip
            return replace(datasets[0], tables=tables[0] or (), older=()), version
        held = set(datasets[0].versions)
        others = [n for n, dataset in enumerate(datasets) if not held & set(dataset.versions)] or [
            1
        ]
        raise errors.make(
            "provider.differ", first=first, second=self.channels[others[0]].address,
            detail="they have no version of the data in common",
        )  # fmt: skip

    def prepared(self, shape: Shape, hear: ProgressReport | None = None) -> Prepared:
        """The prepared form of a shape; requested from all providers once, and equal at all of
        them. `hear` receives the progress of the slowest one, from other threads.
        """
        known = self._known.get(shape)
        if known is not None:
            return known
        calls = [partial(channel.prepare, shape, self.version) for channel in self.channels]
        if hear is not None:
            calls = _slowest_progress(calls, hear)
        replies = self._all(calls)
        for number, other in enumerate(replies[1:], 1):
            if other != replies[0]:
                raise errors.make(
                    "provider.differ", first=self.channels[0].address,
                    second=self.channels[number].address,
                    detail="they prepared different tables for the same question",
                )  # fmt: skip
        codes = replies[0].codes
        types = [field.type for field in replies[0].fields] + [code.type for code in codes.equal]
        types += [] if codes.interval is None else [codes.interval.type]
        names = [field.name for field in replies[0].fields]
        fits = all(map(_TYPE.fullmatch, types)) and all(map(_FIELD.fullmatch, names))
        fits &= len(codes.equal) == len(shape.equal)
        fits &= (codes.interval is None) == (not shape.interval)
        if replies[0].version != self.version or not fits:
            raise errors.make(
                "provider.reply",
                place=self.channels[0].address,
                detail="a preparation that was not requested",
            )
        while len(self._known) >= _MOST_SHAPES:
            self._known.pop(next(iter(self._known)))
        self._known[shape] = replies[0]
        return replies[0]

    def is_prepared(self, shape: Shape) -> Prepared | None:
        """The prepared form if it is known; no request is sent."""
        return self._known.get(shape)

    def ask(self, asks: Sequence[Ask], parts: Sequence[int]) -> list[list[bytes]]:
        """One round: one message to each provider. Returns replies by part, then by provider.

        Args:
            asks: one for each provider.
            parts: the number of bytes of each part of a reply.

        Raises:
            errors.Error: `provider.reply` if a part is longer or shorter; a provider's own errors.
        """
        if len(asks) != self.parties:
            raise errors.make(
                "internal", detail="the number of shares does not match the number of providers"
            )
        self.rounds += 1
        calls = [
            partial(channel.answer, ask) for channel, ask in zip(self.channels, asks, strict=True)
        ]
        cut = []
        for channel, reply in zip(self.channels, self._all(calls), strict=True):
            try:
                cut.append(reply_sizes.cut(reply.data, parts))
            except errors.Error as error:
                raise errors.make(
                    "provider.reply", place=channel.address, detail=error.message
                ) from error
        return [list(part) for part in zip(*cut, strict=True)]

    def interrupt(self) -> None:
        """Stop the current requests."""
        for channel in self.channels:
            channel.interrupt()

    def close(self) -> None:
        """Close all connections."""
        for channel in self.channels:
            channel.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _all(self, calls: Sequence[Callable[[], _Result]]) -> list[_Result]:
        """Call all in parallel; when all have ended, the first failure in their order is raised."""
        under_way: list[Future[_Result]] = [self._pool.submit(call) for call in calls]
        try:
            for job in under_way:
                job.exception()
        except KeyboardInterrupt:
            self.interrupt()
            raise
        return [job.result() for job in under_way]


def _slowest_progress(
    calls: Sequence[Callable[..., Prepared]], report: ProgressReport
) -> list[partial[Prepared]]:
    """Report the progress of several preparations as one: that of the slowest."""
    behind, lock = [(0.0, "waiting")] * len(calls), threading.Lock()

    def hear(number: int, stage: str, share: float) -> None:
        with lock:
            behind[number] = (share, stage)
            share, stage = min(behind)
            report(stage, share)

    def run(number: int, call: Callable[..., Prepared]) -> Prepared:
        prepared = call(partial(hear, number))
        hear(number, "done", 1.0)
        return prepared

    return [partial(run, number, call) for number, call in enumerate(calls)]


def _usable(dataset: Dataset) -> Dataset:
    """Mark columns of nested types, which no question supports, as such."""
    tables = [
        replace(table, columns=tuple((name, _usable_type(type_)) for name, type_ in table.columns))
        for table in dataset.tables
    ]
    return replace(dataset, tables=tuple(tables))


def _usable_type(type_: str) -> str:
    return type_ if _TYPE.fullmatch(type_) or _ENUM.fullmatch(type_) else LEFT_OUT
