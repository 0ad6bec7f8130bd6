"""What ENC means where the SQL does not say: the profile, and a policy file per table and column.

A policy is TOML, one section per table and one entry per column; docs/reference/policy.md
describes it. It is applied at CREATE TABLE and ADD COLUMN, to what the SQL leaves open.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from louver import errors
from louver.names import fold
from louver.trusted.backends.backend import Backend
from louver.trusted.planner.sql.declarations import Declared
from louver.trusted.vault import scheme as schemes
from louver.trusted.vault.levels import LEVELS, allows
from louver.trusted.vault.protection import BUNDLES, FILES, PLAIN, SEALED, Protection, Word

NO_DEFAULT = "none"
"""The default encryption of columns of which nothing is said, where they stay plain."""
ANY = "*"
"""The section for every table, or the entry for every column."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a policy says of one column; empty strings where it is silent."""

    scheme: str = ""
    ceiling: str = ""
    plain: bool = False
    join: str = ""
    words: Mapping[str, Word] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Policy:
    """A profile, and rules by table and column (lower case, `*` for any)."""

    profile: str = SEALED
    rules: Mapping[tuple[str, str], Rule] = field(default_factory=dict)
    #: how tables are stored; as files, all of their columns are encrypted
    storage: str = "server"
    #: whether sealed values are stored in tiles, where other words are usual (`Entry.tiled`)
    tiles: bool = False

    def __post_init__(self) -> None:
        """Refuse a profile that does not exist."""
        if self.profile not in schemes.profiles():
            known = ", ".join(schemes.profiles())
            raise errors.make("profile.unknown", profile=self.profile, known=known)

    def stored_on(self, backend: Backend) -> Policy:
        """The same policy where tables are stored as this backend does."""
        return replace(self, storage=backend.storage, tiles=backend.has_tiles)

    @staticmethod
    def read(
        path: str | os.PathLike[str], profile: str | None = None, default: str = SEALED
    ) -> Policy:
        """The policy of a TOML file; `profile` goes before the one that the file names, `default`
        is that of a file which names none.
        """
        path_text = os.fspath(path)
        try:
            text = Path(path_text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            detail = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise errors.make("policy.file", path=path_text, detail=detail) from None
        try:
            body = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise errors.make("policy.format", path=path_text, detail=str(error)) from None
        return Policy.parse(body, path_text, profile, default)

    @staticmethod
    def parse(
        body: Mapping[str, Any], path: str, profile: str | None = None, default: str = SEALED
    ) -> Policy:
        """The policy of a parsed TOML document; every word is checked."""
        rules: dict[tuple[str, str], Rule] = {}
        named = default
        for section, entries in body.items():
            if section == "profile" and isinstance(entries, str):
                named = entries
                continue
            if not isinstance(entries, dict):
                raise _format(path, f"{section} is not a section; write [{section}]")
            table = fold(section).removeprefix("main.")
            for column, value in entries.items():
                rules[table, fold(column)] = _rule(path, f"{section}.{column}", value)
        return Policy(profile or named, rules)

    def rule(self, table: str, column: str) -> Rule | None:
        """The rule of a column: its own, its table's, that of every table, or none.

        ``table`` is a label: the name, with the schema in front where that is not `main`.
        """
        table, column = fold(table), fold(column)
        places = ((table, column), (table, ANY), (ANY, column), (ANY, ANY))
        return next((self.rules[position] for position in places if position in self.rules), None)

    def protection(
        self,
        table: str,
        column: str,
        type_: str,
        declared: Declared | None,
        default: str = NO_DEFAULT,
    ) -> Protection:
        """How a column is to be kept: the SQL first, then the rule, then the profile. ``default``
        is the profile of columns of which neither SQL nor rule says anything, if there is one.
        """
        rule = self.rule(table, column)
        if declared is None and rule is None and default != NO_DEFAULT:
            given = Declared(column, "", "")
            return replace(self, profile=default).protection(table, column, type_, given)
        if self.storage == FILES:
            return _in_files(table, column, declared, rule)
        if declared is None and (rule is None or rule.plain):
            return PLAIN
        scheme = declared.scheme if declared else ""
        ceiling = declared.ceiling if declared else ""
        if rule is not None and not rule.plain:
            # A rule's ceiling was written for the rule's scheme, not for another one.
            if not ceiling and scheme in ("", rule.scheme):
                ceiling = rule.ceiling
            scheme = scheme or rule.scheme
        if declared is not None and declared.scheme:
            _require_stored(table, column, type_, scheme)
        existing_rows = self._resolved(table, column, type_, scheme, ceiling)
        return self.detailed(existing_rows, table, column, declared)

    def inherited(self, scheme: str, ceiling: str, type_: str) -> Protection:
        """How a column is kept that takes over the protection of those that it is computed from:
        their scheme, if they have one and it stores such values under the ceiling.
        """
        row = schemes.using(scheme)
        fits = row.takes(type_) and allows(ceiling, row.ceiling) if row else scheme in BUNDLES
        if self.storage == FILES or not fits:
            return self.derived(ceiling)
        return Protection(True, scheme, ceiling, words=self._usual(scheme))

    def derived(self, ceiling: str) -> Protection:
        """How a column is kept that is computed from encrypted ones."""
        if self.storage == FILES:
            return Protection(True, FILES, ceiling)
        scheme = schemes.profiles()[self.profile]
        scheme = scheme if scheme in BUNDLES else SEALED
        return Protection(True, scheme, ceiling, words=self._usual(scheme))

    def detailed(
        self,
        protection: Protection,
        table: str,
        column: str,
        declared: Declared | None = None,
        own: Mapping[str, Word] | None = None,
    ) -> Protection:
        """What the SQL or a rule says beyond scheme and ceiling; ``own`` is what the column has
        had until now.
        """
        if self.storage == FILES:
            return protection
        rule = self.rule(table, column) or Rule()
        if declared is not None and declared.options:
            given = _entries(f"{table}.{column}", declared.options)
            join = str(given.pop("join", rule.join))
            rule = replace(rule, join=join, words={**rule.words, **given})
        words = schemes.carried(own or {}, self._usual(protection.scheme), rule.words)
        return replace(protection, join=rule.join, words=words)

    def _usual(self, scheme: str) -> dict[str, Word]:
        """What is meant beside a scheme where nothing is said."""
        return schemes.usual(scheme, tiles=self.tiles)

    def _resolved(
        self, table: str, column: str, type_: str, scheme: str, ceiling: str
    ) -> Protection:
        if not scheme:
            scheme = self._bare(ceiling)
        row = schemes.using(scheme)
        if row is None:
            return Protection(True, scheme, ceiling or BUNDLES[scheme])
        if ceiling and not allows(ceiling, row.ceiling):
            raise errors.make(
                "enc.ceiling",
                table=table,
                column=column,
                scheme=scheme,
                level=row.ceiling,
                ceiling=ceiling,
            )
        if row.takes(type_):
            return Protection(True, scheme, ceiling or row.ceiling)
        return Protection(True, SEALED, ceiling or BUNDLES[SEALED])

    def _bare(self, ceiling: str) -> str:
        """The scheme of an ENC that names none."""
        scheme = schemes.profiles()[self.profile]
        row = schemes.using(scheme)
        fits = row is None or not ceiling or allows(ceiling, row.ceiling)
        return scheme if fits else SEALED


def _require_stored(table: str, column: str, type_: str, scheme: str) -> None:
    """Raise where a statement asks for a scheme of numbers for a nested value, which would be
    sealed as a whole. Other types that a scheme does not store are sealed, as in a policy.
    """
    row = schemes.using(scheme)
    nested = type_.endswith("]") or type_.startswith(("STRUCT(", "MAP(", "UNION("))
    if row is not None and nested and not row.takes(type_):
        raise errors.make("enc.type", table=table, column=column, scheme=scheme, type=type_)


def _in_files(table: str, column: str, declared: Declared | None, rule: Rule | None) -> Protection:
    """How a column of a lake is kept, whether ENC is said of it or not."""
    scheme = declared.scheme if declared else rule.scheme if rule else ""
    if scheme not in ("", SEALED):
        raise errors.make("lake.scheme", table=table, column=column, scheme=scheme)
    ceiling = (declared.ceiling if declared else "") or (rule.ceiling if rule else "")
    return Protection(True, FILES, ceiling or "access")


def _rule(path: str, where: str, value: object) -> Rule:
    words = _words()
    if isinstance(value, str):
        value = fold(value)
        if value not in ("enc", "plain", *words["scheme"]):
            raise errors.make("policy.unknown", path=path, name=f"{value} at {where}")
        return Rule(value if value in words["scheme"] else "", "", value == "plain")
    if not isinstance(value, dict):
        raise _format(path, f"{where} is neither a string nor a table")
    for key in value:
        if key not in (*words, "join"):
            raise errors.make("policy.unknown", path=path, name=f"{key} at {where}")
    join = value.get("join", "")
    if not isinstance(join, str):
        raise _format(path, f"{where}: join is a name")
    given = {key: _word(path, where, key, value[key], words[key]) for key in words if key in value}
    scheme, ceiling = (str(given.pop(key, "")) for key in ("scheme", "may_reveal"))
    said = {key: word for key, word in given.items() if word != ""}
    rule = Rule(scheme, ceiling, join=join, words=said)
    row = schemes.using(rule.scheme)
    if row is not None and rule.ceiling and not allows(rule.ceiling, row.ceiling):
        raise _format(path, f"{where}: {row.name} reveals {row.ceiling}, above {rule.ceiling}")
    return rule


def _entries(column: str, options: Sequence[tuple[str, str | bool]]) -> dict[str, Any]:
    """The entries of WITH in a declaration, each a word that a policy knows."""
    words = _words()
    for key, value in options:
        listed = words.get(key, ()) if key not in ("scheme", "may_reveal") else ()
        if not (isinstance(value, str) if key == "join" else value in listed):
            known = ", ".join(("join", *list(words)[2:]))
            detail = f"{key} = {value} is not known; the keys are {known}"
            raise errors.make("enc.options", column=column, detail=detail)
    return dict(options)


def _words() -> dict[str, tuple[Word, ...]]:
    """What may be said of a column, by entry."""
    return {"scheme": schemes.using_words(), "may_reveal": LEVELS, **schemes.policy_words()}


def _word(path: str, where: str, key: str, word: object, known: tuple[Word, ...]) -> Word:
    if schemes.is_flag(known):
        if not isinstance(word, bool):
            raise _format(path, f"{where}: {key} is true or false")
        return word
    if not isinstance(word, str):
        raise _format(path, f"{where} has a value that is not text")
    word = fold(word)
    word = word if word in known else schemes.name_today(word)
    if word and word not in known:
        raise errors.make("policy.unknown", path=path, name=f"{word} at {where}")
    return word


def _format(path: str, detail: str) -> errors.Error:
    return errors.make("policy.format", path=path, detail=detail)
