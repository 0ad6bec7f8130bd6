"""The settings of lakes: how new tables are indexed, and how queries use that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from louver import errors
from louver.names import fold


@dataclass(frozen=True, slots=True)
class Option:
    """One setting, for people: its values, its default, its meaning."""

    name: str
    values: str
    default: str
    meaning: str


OPTIONS = (
    Option("lake_pruning", "on, off", "on", "whether queries show tokens to skip files; off reads "
           "every file of a table and shows nothing but that"),
    Option("lake_verify", "on, off", "off", "whether the answer of a pruning service is compared "
           "with a plan made here; it fetches the whole index of the columns that are asked for"),
    Option("lake_plan_only", "on, off", "off", "whether queries stop after the files were chosen: "
           "answers are those of empty tables, `louver lake files` lists the files"),
    Option("lake_snapshot", "a snapshot's number, or a time as '2026-01-31 12:00:00'", "",
           "which past state of every table queries read; reset it for the present"),
    Option("lake_index", "on, off", "on", "whether tables made from now on have an index"),
    Option("lake_filter", "split-block or basic, and a number of bits, as 'split-block 16384'",
           "split-block 16384", "the Bloom filter of new tables; basic keeps fewer files in vain"),
    Option("lake_nulls", "no-value, any-value", "no-value", "how a NULL counts in the index of "
           "tables made from now on"),
    Option("lake_rows_per_file", "a number of rows", "122880", "the most rows that one data file "
           "gets"),
)  # fmt: skip
NAMES = frozenset(option.name for option in OPTIONS)
_SWITCHES = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}


class Options:
    """The settings of one session, as text; `default` where none was given."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}

    def text(self, name: str) -> str:
        """A setting as it was written."""
        return self._given.get(name, _option(name).default)

    def switch(self, name: str) -> bool:
        """A setting that is on or off."""
        return _SWITCHES[fold(self.text(name))]

    def number(self, name: str) -> int:
        """A setting that is a whole number."""
        return int(self.text(name))

    def change(self, name: str, value: str | None, check: Callable[[str, str], None]) -> None:
        """Set or, without a value, reset; a value that is none raises `setting.value`."""
        if value is None:
            self._given.pop(name, None)
            return
        text = value.strip().strip("'\"").strip()
        option = _option(name)
        if option.values == "on, off":
            good = fold(text) in _SWITCHES
        elif name == "lake_rows_per_file":
            good = text.isascii() and text.isdigit() and 0 < int(text) <= 1 << 30
        else:
            good = True
        if not good:
            raise errors.make("setting.value", name=name, value=value, known=option.values)
        check(name, text)
        self._given[name] = text


def _option(name: str) -> Option:
    return next(option for option in OPTIONS if option.name == name)
