"""The table of all schemes, and what of a column is stored under which.

The planner, the ledger, EXPLAIN, advice, the docs and the tests read the rows; `vault.schemes`
fills the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.levels import LEVELS, allows
from louver.trusted.vault.protection import BUNDLES, FILES, ONION, SEALED, Protection, Word
from louver.trusted.vault.scheme_row import (
    BY_FILE,
    BY_ROW,
    COUNT,
    NOTHING_KNOWN,
    PUBLIC,
    ROW_ID,
    ROWS,
    TOTAL,
    Addends,
    Answer,
    Entry,
    Layer,
    Leak,
    Packing,
    Representation,
    Scheme,
    SumPart,
    in_bytes,
)
from louver.trusted.vault.types import has_fixed_length

__all__ = [
    "BUNDLES",
    "BY_FILE",
    "BY_ROW",
    "COUNT",
    "FILES",
    "NOTHING_KNOWN",
    "PUBLIC",
    "ROWS",
    "ROW_ID",
    "TOTAL",
    "Addends",
    "Answer",
    "Entry",
    "Layer",
    "Leak",
    "Packing",
    "Protection",
    "Representation",
    "Scheme",
    "SumPart",
    "in_bytes",
]  # fmt: skip

_ROWS: dict[str, Scheme] = {}
_LEAKS: dict[str, Leak] = {}
_BY_REPRESENTATION: dict[str, Scheme] = {}


def publish(scheme: Scheme) -> None:
    """Put a row into the table; its sentences are known by their names from now on."""
    if scheme.reading and scheme.ceiling != LEVELS[0]:
        raise ValueError(f"a ceiling could take away the copy that reading opens: {scheme.name}")
    if scheme.packs is not None and packing() is not None:
        raise ValueError("a table does not say which scheme its packed columns are of")
    for leak in scheme.leaks():
        if _LEAKS.setdefault(leak.name, leak) != leak:
            raise ValueError(f"two sentences are called {leak.name}")
    _ROWS[scheme.name] = scheme
    _BY_REPRESENTATION.update((other.name, scheme) for other in scheme.representations)


def withdraw(name: str) -> None:
    """Take a row out again."""
    row = _ROWS.pop(name)
    for item in row.representations:
        del _BY_REPRESENTATION[item.name]
    existing_rows = {leak.name for other in rows() for leak in other.leaks()}
    for leak in row.leaks():
        if leak.name not in existing_rows:
            del _LEAKS[leak.name]


def rows() -> Iterable[Scheme]:
    """Every row; of several schemes that answer something the first one is preferred."""
    return _ROWS.values()


def leak(name: str) -> Leak:
    """The sentence of this name."""
    return _LEAKS[name]


def kind_today(kind: str) -> str:
    """The kind of a fact by its name of today."""
    scheme, dot, rest = kind.partition(".")
    return f"{name_today(scheme)}{dot}{rest}"


def name_today(name: str) -> str:
    """The name of a scheme by one that an earlier release used; any other word as it is."""
    return next((row.name for row in rows() if name in row.former), name)


def scheme_of(representation: str) -> Scheme:
    """The scheme of a stored column."""
    return _BY_REPRESENTATION[representation]


def representation(name: str) -> Representation:
    """The representation of this name."""
    return next(other for other in scheme_of(name).representations if other.name == name)


def summing() -> list[Scheme]:
    """The schemes whose values the server adds up, the preferred one first."""
    return [row for row in rows() if row.sums is not None]


def onions() -> list[Scheme]:
    """The schemes whose values lie under layers."""
    return [row for row in rows() if row.layers]


def held(column: Column, protection: Protection) -> list[str]:
    """The representations that a column has: the one map from ceilings to what is stored. Of
    several copies for reading it has that of the scheme that USING names, else the first.
    """
    by_row = [(row, row.applies(column, protection)) for row in rows()]
    copies = [row for row, names in by_row if row.reading and names]
    copies.sort(key=lambda row: row.name != protection.scheme)
    return [name for row, names in by_row if row not in copies[1:] for name in names]


def reading(column: Column) -> Scheme:
    """The scheme of the copy that reading opens, of an encrypted column."""
    return next(
        row for row in rows() if row.reading and row.representations[0].name in column.stored
    )


def read_from(column: Column) -> str:
    """The server's column of the copy that reading opens, of an encrypted column."""
    return column.stored[reading(column).representations[0].name]


def share_of(column: Column) -> str:
    """The server's column of shares; "" where there is none."""
    names = (row.representations[0].name for row in rows() if row.shares)
    return next((column.stored[name] for name in names if name in column.stored), "")


def has_shares(table: Table) -> bool:
    """Whether a column of the table is stored as shares, which need helpers beside them."""
    return any(share_of(column) for column in table.columns)


def packing() -> Scheme | None:
    """The scheme that packs several columns, of which there is one at most."""
    return next((row for row in rows() if row.packs is not None), None)


def asks_packing(protection: Protection) -> bool:
    """Whether the entry of the scheme that packs has its word."""
    row = packing()
    entry = row.policy if row is not None else None
    return entry is not None and word(protection, entry.name) in entry.words


def packed(table: Table, column: Column) -> list[tuple[str, str]]:
    """The representations of a column that are the table's, with the server's columns."""
    row = packing()
    if row is None:
        return []
    name = row.representations[0].name
    return [(name, stored) for stored, ids in table.packs.items() if column.id in ids]


def tagged(table: Table, column: Column) -> list[str]:
    """The representations that say which key a row has, where a column is in such a key."""
    names = [item.name for row in rows() if row.tags for item in row.representations]
    return names if any(column.id in ids for ids in table.tags.values()) else []


def tagging() -> Scheme | None:
    """The scheme whose tags a server keeps apart, of which there is one at most."""
    return next((row for row in rows() if row.tags), None)


def lacks(column: Column, protection: Protection) -> bool:
    """Whether schemes that a column has would store more of it today."""
    fresh = (name for name in held(column, protection) if name not in column.stored)
    return any(scheme_of(name).representations[0].name in column.stored for name in fresh)


def key_within(table: Table, ids: Collection[int]) -> tuple[str, list[int]] | None:
    """The shortest key with tags of which all columns are among these, given by id: the server's
    column and the ids of the key's.
    """
    whole = [(stored, key) for stored, key in table.tags.items() if set(key) <= set(ids)]
    return min(whole, key=lambda item: len(item[1]), default=None)


def may_meet(left: Column, right: Column) -> bool:
    """Whether a server may see which values of two columns are equal: both are plain, or both have
    one ceiling of at least `equality`.
    """
    if left.encrypted and right.encrypted:
        return left.ceiling == right.ceiling and allows(left.ceiling, "equality")
    return not left.encrypted and not right.encrypted


def tells_rows(column: Column) -> bool:
    """Whether rows can be distinguished by what is stored of a column: by its plain values, or by
    the lengths of ciphertexts; rewriting a row then does not hide it. A file does not show the
    length of a single value.
    """
    if not column.encrypted:
        return True
    files = (row.representations[0].name for row in rows() if row.reading == BY_FILE)
    # A table that is only planned has nothing stored yet, and may tell.
    in_files = any(name in column.stored for name in files)
    return not in_files and not has_fixed_length(column.type)


def answering(operation: str) -> list[tuple[str, Answer]]:
    """The representations that answer an operation, the preferred one first."""
    return [
        (row.representations[0].name, row.answers[operation])
        for row in rows()
        if operation in row.answers
    ]


def answered(column: Column, operation: str) -> tuple[str, Answer] | None:
    """The stored representation that answers an operation of a column; None where none does."""
    return next((pair for pair in answering(operation) if pair[0] in column.stored), None)


def using_words() -> tuple[str, ...]:
    """The words after USING, and of policy files."""
    return (*(row.name for row in rows() if row.using), *BUNDLES)


def using(word: str) -> Scheme | None:
    """The scheme that USING names; None for a word that stands for several."""
    return next((row for row in rows() if row.using and row.name == word), None)


def profiles() -> dict[str, str]:
    """What ENC alone means by profile: the words after USING."""
    rows_own = {row.profile: row.name for row in rows() if row.profile}
    return {"sealed": SEALED, "cryptdb": ONION, **rows_own}


def details(column: Column, tables: Iterable[Table]) -> dict[str, Word]:
    """What a policy would say of a column beyond scheme and ceiling, by entry (`policy_words`). The
    column's own is among the tables.
    """
    stored = {*column.stored, *(name for table in tables for name, _ in packed(table, column))}
    could = held(_bare(column), Protection(True, column.scheme, column.ceiling))
    said: dict[str, Word] = {}
    for row in rows():
        entry, name = row.policy, row.representations[0].name
        if entry is None:
            continue
        has = any(item.name in stored for item in row.representations)
        if is_flag(entry.words):
            said[entry.name] = has
        elif has and (text := entry.says(column)) is not None:
            said[entry.name] = text
        elif not has and entry.off is not None and name in could:
            said[entry.name] = entry.off
    return said


def needed(
    column: Column, tables: Iterable[Table], serves: Callable[[Scheme], bool], *, tiles: bool
) -> dict[str, Word]:
    """What has to be written of a column for it to have the schemes that it has, by entry: where
    that is not meant anyway by a server that ``serves`` some schemes and has tiles or not.
    """
    meant = Protection(True, column.scheme, column.ceiling, words=usual(column.scheme, tiles=tiles))
    anyway = {name for name in held(_bare(column), meant) if serves(scheme_of(name))}
    own, said = details(column, tables), dict[str, Word]()
    for row in rows():
        entry = row.policy
        if entry is None or own.get(entry.name) not in entry.words:
            continue
        text, comes = own[entry.name], row.representations[0].name in anyway
        if is_flag(entry.words):
            differs = text != comes
        else:
            differs = comes if text == entry.off else text != word(meant, entry.name)
        if differs:
            said[entry.name] = text
    return said


def carried(
    own: Mapping[str, Word], defaults: Mapping[str, Word], rule: Mapping[str, Word]
) -> dict[str, Word]:
    """The words of a column that is to stay what it is (``own``: `details`). What it has it keeps;
    a scheme that it does without comes only by a ``rule``, not by default.
    """
    off = {row.policy.off for row in rows() if row.policy is not None} - {None}
    without = {name: text for name, text in own.items() if text in off}
    has = {name: text for name, text in own.items() if text and text not in off}
    return explicit({**defaults, **without, **rule, **has})


def alike(owns: Sequence[Mapping[str, Word]]) -> dict[str, Word]:
    """What all of some columns say (`details`) of schemes that a column may do without."""
    names = [row.policy.name for row in rows() if row.policy is not None and row.policy.off]
    said = {name: {own.get(name) for own in owns} for name in names if owns}
    return {name: text for name, (text, *more) in said.items() if text is not None and not more}


def _bare(column: Column) -> Column:
    return replace(column, stored={}, layers={}, coarse=0)


def policy_words() -> dict[str, tuple[Word, ...]]:
    """What policy files may say of a column beyond its scheme, by entry; the first word of an entry
    is what is meant where nothing is said.
    """
    by_name: dict[str, tuple[Word, ...]] = {}
    for row in rows():
        if row.policy is not None:
            by_name[row.policy.name] = (*by_name.get(row.policy.name, ()), *row.policy.words)
    return by_name


def is_flag(words: tuple[Word, ...]) -> bool:
    """Whether an entry is true or false."""
    return all(isinstance(text, bool) for text in words)


def word(protection: Protection, name: str) -> Word:
    """What an entry says of a column, or means where nothing is said."""
    said = protection.words.get(name)
    return policy_words()[name][0] if said is None else said


def usual(using: str, *, tiles: bool = False) -> dict[str, Word]:
    """What the word after USING says beside itself, by entry; where values are in tiles or not."""
    entries = [row.policy for row in rows() if row.policy is not None]
    tiled = {e.name: e.tiled for e in entries if tiles and e.tiled is not None}
    return tiled | {entry.name: entry.bundles[using] for entry in entries if using in entry.bundles}


def explicit(words: Mapping[str, Word]) -> dict[str, Word]:
    """The words that are not meant anyway."""
    known = policy_words()
    return {name: text for name, text in words.items() if text != known[name][0]}
