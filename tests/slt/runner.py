"""A sqllogictest runner whose oracle is plaintext DuckDB running the same text.

It understands DuckDB's own format. Louver's answers are compared with those of plaintext DuckDB,
value for value and type for type, not only with what the file states; what the file states is
checked of DuckDB's, so that a file, or this runner, that is wrong is found out too.
tests/slt/suite.py is the program.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from louver import errors
from tests.slt import expectations, script
from tests.slt.declared import encrypt_columns
from tests.slt.script import Entry
from tests.slt.sides import Side
from tests.twin import kind_of, same

#: What `require` may name beside DuckDB's extensions.
_GIVEN = frozenset(
    """skip_reload no_extension_autoloading notwindows notmusl notmingw 64bit vector_size
    strinline longdouble exact_vector_size ram no_vector_verification no_alternative_verify
    allow_unsigned_extensions mainline linux noforcestorage nothreadsan""".split()
)
#: What Louver says of statements that it does not take.
_REFUSED = (errors.NotSupportedError, errors.LeakageRefused)
_REFUSALS = frozenset({"error value.form", "error sql.reserved"})
#: What DuckDB's cursor gives for a change.
_CHANGED = ((("Count", "BIGINT"),), (("Success", "BOOLEAN"),))
#: What DuckDB calls those of Louver's errors that are DuckDB's too.
_KINDS = dict.fromkeys(
    (f"error transaction.{word}" for word in ("none", "active", "aborted", "readonly")),
    "error transaction",
)


class Skipped(Exception):
    """The rest of the file is not for this machine."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where Louver's answer is not DuckDB's: `answer`, `refused` (Louver does not take the
    statement), `kind` (both raise, each another error), `raw` (no `louver.Error`), or
    `file` (DuckDB's answer is not what the file states).
    """

    entry: Entry
    expected: object
    actual: object
    sort: str = "answer"
    sql: str = ""
    #: whether a statement before it was refused, so that the two databases differ
    after_refusal: bool = False

    def __str__(self) -> str:
        return (
            f"line {self.entry.line} ({self.sort}"
            f"{', after a refusal' if self.after_refusal else ''}): {self.sql or self.entry.sql}\n"
            f"  duckdb: {str(self.expected)[:400]}\n  louver: {str(self.actual)[:400]}"
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one side made of a statement."""

    rows: list[tuple[Any, ...]] | None
    columns: tuple[tuple[str, str], ...] = ()
    kind: str = ""
    message: str = ""
    raw: bool = False
    refused: bool = False
    #: how many rows a change touched, where there are no rows
    affected: int = -1

    def __str__(self) -> str:
        if self.rows is None:
            return f"{self.kind}: {self.message}"
        return f"{self.rows} {list(self.columns)}"


@dataclass(slots=True)
class Run:
    """One file on two sides."""

    louver: Side
    duck: Side
    #: what Louver's statements declare beside the twin's
    declared: Callable[[str], str] = encrypt_columns
    #: whether the names and types of columns, and what the file states, are looked at too
    strict: bool = True
    statements: int = 0
    skipped: str = ""
    differences: list[Difference] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    texts: expectations.Texts = field(default_factory=expectations.Texts)
    _skipping: bool = False
    _ignored: tuple[str, ...] = ()
    _refused: bool = False

    def run(self, entries: Iterable[Entry]) -> list[Difference]:
        """Run a file; the differences."""
        try:
            self._all(entries)
        except Skipped as reason:
            self.skipped = str(reason)
        finally:
            self.louver.close()
            self.duck.close()
        return self.differences

    def _all(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if entry.kind == "mode":
                self._skipping = entry.words[:1] == ("skip",)
            elif not self._skipping and script.runs(entry.conditions, self.variables):
                self._one(entry)

    def _one(self, entry: Entry) -> None:
        match entry.kind:
            case "statement" | "query" | "probe":
                self._execute(entry)
            case "loop" | "foreach":
                words = tuple(script.filled(word, self.variables) for word in entry.words)
                self._loop(entry, words)
            case "halt":
                raise Skipped(f"halt at line {entry.line}")
            case "restart":
                self.reopen()
            case "load":
                words = tuple(script.filled(word, self._names(self.duck)) for word in entry.words)
                self.reopen(words[0] if words else "memory.db")
            case "require":
                self._require(entry.words)
            case "require-env" | "test-env":
                self._environment(entry.kind, entry.words)
            case "set":
                if entry.words[:1] == ("ignore_error_messages",):
                    self._ignored = tuple(" ".join(entry.words[1:]).split(","))
            case "reset":
                if entry.words[:1] == ("label",):
                    self.labels.pop(entry.words[1], None)
            case "sleep":
                time.sleep(0.01)
            case "connection" | "reconnect" | "hash-threshold" | "tags" | "reset" | "unzip":
                pass
            case _:
                raise Skipped(f"line {entry.line}: {entry.kind} is not known")

    def _loop(self, entry: Entry, words: tuple[str, ...]) -> None:
        of = Entry(entry.line, entry.kind, "", False, words)
        for name, value in script.rounds(of):
            names, values = name.split(","), value.split(",")
            before = dict(self.variables)
            self.variables |= dict(zip(names, values, strict=True)) if len(names) > 1 else {
                name: value
            }  # fmt: skip
            self._all(entry.body)
            self.variables = before

    def reopen(self, name: str | None = None) -> None:
        """Close all connections and open the database of this name, or the same one again."""
        for side in (self.louver, self.duck):
            side.load(name)

    def _require(self, words: tuple[str, ...]) -> None:
        name = words[0]
        if name in _GIVEN:
            return
        sql = "SELECT loaded FROM duckdb_extensions() WHERE extension_name = $1"
        row = self.texts.connection.execute(sql, [name]).fetchone()
        if row is None or not row[0]:
            raise Skipped(f"requires {name}")

    def _environment(self, kind: str, words: tuple[str, ...]) -> None:
        name, value = words[0], " ".join(words[1:])
        setting = os.environ.get(name)
        if kind == "require-env" and (setting is None or (value and setting != value)):
            raise Skipped(f"requires the environment's {name}")
        self.variables[name] = value if setting is None else setting

    def _names(self, side: Side) -> dict[str, str]:
        folder = str(side.folder)
        return {**self.variables, "__TEST_DIR__": folder, "TEST_DIR": folder}

    # ------------------------------------------------------------------ statements

    def _execute(self, entry: Entry) -> None:
        self.statements += 1
        plain = script.filled(entry.sql, self._names(self.duck))
        expected = self.outcome(self.duck, entry)
        actual = self.outcome(self.louver, entry)
        if "maybe" in entry.words[:1] or self._passed_over(expected, actual):
            return
        sort = self.compared(entry, expected, actual)
        if sort:
            self._add(entry, expected, actual, sort, plain)
        self._refused = self._refused or (sort == "refused" and entry.kind == "statement")
        if self.strict and entry.kind != "probe" and not self._stated(entry, expected):
            self._add(entry, expected, entry.expected or entry.words, "file", plain)

    def _add(self, entry: Entry, expected: object, actual: object, sort: str, sql: str) -> None:
        self.differences.append(Difference(entry, expected, actual, sort, sql, self._refused))

    def _passed_over(self, *outcomes: Outcome) -> bool:
        return any(
            part and part in outcome.message for outcome in outcomes for part in self._ignored
        )

    def outcome(self, side: Side, entry: Entry) -> Outcome:
        """What one side makes of a statement."""
        name = entry.connection
        sql = script.filled(entry.sql, self._names(side))
        try:
            connection = side.connection(script.filled(name, self.variables) if name else None)
            sql = self.declared(sql) if side is self.louver else sql
            values = (list(entry.parameters),) if entry.parameters else ()
            run = connection.executemany if entry.many else connection.execute
            cursor = run(sql, *values)
            described = () if entry.many else cursor.description or ()
            columns = tuple((str(item[0]), str(item[1])) for item in described)
            rows = cursor.fetchall() if described else []
        except Exception as error:  # noqa: BLE001 - every kind of error is an outcome
            ours = isinstance(error, errors.Error)
            refused = ours and (kind_of(error) in _REFUSALS or isinstance(error, _REFUSED))
            raw = not ours and side is self.louver
            return Outcome(None, (), kind_of(error), str(error), raw, refused)
        affected = -1 if side is self.duck else int(cursor.rowcount)
        return Outcome([self._own(row, side) for row in rows], columns, affected=affected)

    def _own(self, value: Any, side: Side) -> Any:
        """A value in which the folder of a side is not seen."""
        if isinstance(value, str):
            return value.replace(str(side.folder), "TEST_DIR")
        if isinstance(value, list | tuple):
            return type(value)(self._own(part, side) for part in value)
        return value

    def compared(self, entry: Entry, expected: Outcome, actual: Outcome) -> str:
        """Which sort of difference there is; none is an empty text."""
        if actual.raw:
            return "raw"
        if expected.rows is None or actual.rows is None:
            if expected.rows is None and actual.rows is None:
                own = _KINDS.get(actual.kind, actual.kind)
                return "" if actual.refused or expected.kind == own else "kind"
            return "refused" if actual.refused else "answer"
        if entry.kind == "statement":
            return ""  # a change is told by whether it happens
        if expected.columns in _CHANGED and not actual.columns:
            # DuckDB's cursor gives a row for a change, Louver's a number as PEP 249 has it.
            return "" if expected.rows in ([], [(actual.affected,)]) else "answer"
        if self.strict and expected.columns != actual.columns:
            return "columns"
        return "" if same(expected.rows, actual.rows, entry.ordered) else "answer"

    def _stated(self, entry: Entry, answer: Outcome) -> bool:
        """Whether DuckDB's answer is what the file states."""
        if entry.kind == "statement" or entry.words[:1] == ("error",):
            if entry.words[:1] == ("error",):
                return answer.rows is None and expectations.message_met(
                    self._expected(entry), answer.message
                )
            return answer.rows is not None
        if answer.rows is None:
            return False
        if entry.label is not None:
            actual = expectations.cells(answer.rows, answer.columns, entry.sort, self.texts)
            text = expectations.hashed(actual)
            label = script.filled(entry.label, self.variables)
            if self.labels.setdefault(label, text) != text:
                return False
        expected = self._expected(entry)
        if not expected and not answer.rows:
            return True
        if expected is None or (len(expected) == 0 and entry.label is not None):
            return True
        return expectations.met(expected, answer.rows, answer.columns, entry.sort, self.texts)

    def _expected(self, entry: Entry) -> tuple[str, ...] | None:
        if entry.expected is None:
            return None
        names = self._names(self.duck)
        return tuple(script.filled(line, names) for line in entry.expected)
