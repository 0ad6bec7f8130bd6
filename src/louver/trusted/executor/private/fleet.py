"""All providers of one connection, asked at once and held to one version of the data.

What one provider is sent never goes to another one, also not after a failure: a question that is
asked again has fresh shares. Providers that prepared different tables are found out before a
share leaves.
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

Told = Callable[[str, float], None]
_Found = TypeVar("_Found")
#: Prepared shapes that are remembered; a provider keeps its own number of tables.
_MOST_SHAPES = 512


#: Names of types stand in SQL at home, so a provider may name none but these.
_FIELD = re.compile(r"[gpco]\d{1,4}|position")
_TYPE = re.compile(r"[A-Z][A-Z0-9_ ]{0,40}(?:\(\d{1,3}(?:, ?\d{1,3})?\))?")
_CHOICE = r"'(?:[^'\x00]|'')*'"
_ENUM = re.compile(rf"ENUM\({_CHOICE}(?:, {_CHOICE})*\)")


class Channel(Protocol):
    """The way to one provider; `louver.untrusted.engines.providers.Channel` is one."""

    @property
    def place(self) -> str:
        """Its address, as the user gave it."""

    @property
    def traffic(self) -> Traffic:
        """What has crossed so far."""

    def describe(self) -> Dataset:
        """What the provider holds."""

    def prepare(self, shape: Shape, version: bytes, told: Told | None = None) -> Prepared:
        """Have a shape prepared, or find it so."""

    def answer(self, ask: Ask) -> Reply:
        """Have shares evaluated."""

    def interrupt(self) -> None:
        """Stop what is under way; may be called from another thread."""

    def close(self) -> None:
        """Hang up."""


class Fleet:
    """The providers of one connection, in the order of the parties of a share."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        """Ask every provider what it holds; they must be different machines with common data."""
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
        """How many providers there are."""
        return len(self.channels)

    @property
    def traffic(self) -> Traffic:
        """What has crossed so far, to and from all of them."""
        told = [channel.traffic for channel in self.channels]
        return Traffic(
            sum(one.statements for one in told), sum(one.bytes_out for one in told),
            sum(one.bytes_in for one in told),
        )  # fmt: skip

    def refresh(self) -> None:
        """Agree on the newest version that all of them hold; what was prepared on another one is
        forgotten.
        """
        found = self._all([channel.describe for channel in self.channels])
        for (i, one), (j, other) in combinations(enumerate(found), 2):
            if one.instance == other.instance:
                raise errors.make(
                    "provider.same", first=self.channels[i].place, second=self.channels[j].place
                )
        dataset, self.version = self._common(found)
        self.dataset = _usable(dataset)
        self._known.clear()

    def _common(self, found: Sequence[Dataset]) -> tuple[Dataset, bytes]:
        """The newest version that all hold. What its tables are, all must say alike: by a column of
        another name or type, one of them alone could make a question another one.
        """
        first = self.channels[0].place
        for version in found[0].versions:
            if not all(version in other.versions for other in found):
                continue
            tables = [one.tables_of(version) for one in found]
            for place, other in enumerate(tables):
                if other is None or other != tables[0]:
                    raise errors.make(
                        "provider.differ", first=first, second=self.channels[place].place,
                        detail="they list different tables for the same version",
                    )  # fmt: skip
            return replace(found[0], tables=tables[0] or (), older=()), version
        held = set(found[0].versions)
        others = [n for n, one in enumerate(found) if not held & set(one.versions)] or [1]
        raise errors.make(
            "provider.differ", first=first, second=self.channels[others[0]].place,
            detail="they have no version of the data in common",
        )  # fmt: skip

    def prepared(self, shape: Shape, told: Told | None = None) -> Prepared:
        """The prepared form of a shape; asked of all providers once, and equal at all of them.
        `told` hears, from other threads, how far the slowest of them has come.
        """
        known = self._known.get(shape)
        if known is not None:
            return known
        calls = [partial(channel.prepare, shape, self.version) for channel in self.channels]
        if told is not None:
            calls = _told_of_slowest(calls, told)
        found = self._all(calls)
        for place, other in enumerate(found[1:], 1):
            if other != found[0]:
                raise errors.make(
                    "provider.differ", first=self.channels[0].place,
                    second=self.channels[place].place,
                    detail="they prepared different tables for the same question",
                )  # fmt: skip
        codes = found[0].codes
        types = [field.type for field in found[0].fields] + [code.type for code in codes.equal]
        types += [] if codes.interval is None else [codes.interval.type]
        names = [field.name for field in found[0].fields]
        fits = all(map(_TYPE.fullmatch, types)) and all(map(_FIELD.fullmatch, names))
        fits &= len(codes.equal) == len(shape.equal)
        fits &= (codes.interval is None) == (not shape.interval)
        if found[0].version != self.version or not fits:
            raise errors.make(
                "provider.reply",
                place=self.channels[0].place,
                detail="a preparation that was not requested",
            )
        while len(self._known) >= _MOST_SHAPES:
            self._known.pop(next(iter(self._known)))
        self._known[shape] = found[0]
        return found[0]

    def is_prepared(self, shape: Shape) -> Prepared | None:
        """The prepared form if it is known; nothing is asked."""
        return self._known.get(shape)

    def ask(self, asks: Sequence[Ask], parts: Sequence[int]) -> list[list[bytes]]:
        """One round: one message to each provider. Answers by part, then by provider.

        Args:
            asks: for each provider its own.
            parts: how many bytes each part of a reply has.

        Raises:
            errors.Error: `provider.reply`, if one is longer or shorter; what a provider fails with.
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
                    "provider.reply", place=channel.place, detail=error.message
                ) from error
        return [list(one) for one in zip(*cut, strict=True)]

    def interrupt(self) -> None:
        """Stop what is under way."""
        for channel in self.channels:
            channel.interrupt()

    def close(self) -> None:
        """Hang up everywhere."""
        for channel in self.channels:
            channel.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _all(self, calls: Sequence[Callable[[], _Found]]) -> list[_Found]:
        """Call all at once; the first failure in their order is raised when all have ended."""
        under_way: list[Future[_Found]] = [self._pool.submit(call) for call in calls]
        try:
            for one in under_way:
                one.exception()
        except KeyboardInterrupt:
            self.interrupt()
            raise
        return [one.result() for one in under_way]


def _told_of_slowest(
    calls: Sequence[Callable[..., Prepared]], told: Told
) -> list[partial[Prepared]]:
    """Preparations whose progress is told as one: that of the one which is behind the others."""
    behind, lock = [(0.0, "waiting")] * len(calls), threading.Lock()

    def hear(place: int, stage: str, share: float) -> None:
        with lock:
            behind[place] = (share, stage)
            share, stage = min(behind)
            told(stage, share)

    def run(place: int, call: Callable[..., Prepared]) -> Prepared:
        found = call(partial(hear, place))
        hear(place, "done", 1.0)
        return found

    return [partial(run, place, call) for place, call in enumerate(calls)]


def _usable(dataset: Dataset) -> Dataset:
    """Columns of other than plain types, which no question can be about, marked as such."""
    tables = [
        replace(table, columns=tuple((name, _usable_type(type_)) for name, type_ in table.columns))
        for table in dataset.tables
    ]
    return replace(dataset, tables=tuple(tables))


def _usable_type(type_: str) -> str:
    return type_ if _TYPE.fullmatch(type_) or _ENUM.fullmatch(type_) else LEFT_OUT
