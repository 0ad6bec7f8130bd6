"""Statements that come again with other values, which are remembered by their texts."""

from __future__ import annotations

from random import Random

from tests.local_postgres.world_statements import Statements
from tests.local_postgres.world_values import COUNT, Act

_KEYED = (
    "CREATE TABLE t"
    " (⟨name⟩0 bigint ENC PRIMARY KEY, p integer, ⟨name⟩1 text ENC, ⟨name⟩2 bigint ENC)"
)
#: With the kinds of their values: of keys, numbers, texts, and plain ones.
_REPEATED = (
    ("INSERT INTO t VALUES ($1, $2, $3, $4)", "kpsn"),
    ("UPDATE t SET ⟨name⟩1 = $1 WHERE ⟨name⟩0 = $2", "sk"),
    ("UPDATE t SET ⟨name⟩2 = ⟨name⟩2 + 1, p = $1 WHERE ⟨name⟩0 = $2", "pk"),
    ("UPDATE t SET ⟨name⟩0 = $1 WHERE ⟨name⟩0 = $2", "kk"),
    ("UPDATE t SET ⟨name⟩2 = $1 WHERE ⟨name⟩0 IN ($2, $3)", "nkk"),
    ("UPDATE t SET ⟨name⟩2 = ⟨name⟩2 * 2 WHERE ⟨name⟩0 = $1 RETURNING ⟨name⟩1", "k"),
    ("UPDATE t SET p = $1 WHERE ⟨name⟩0 = $2 AND ⟨name⟩1 = $3", "pks"),
    ("DELETE FROM t WHERE ⟨name⟩0 = $1", "k"),
    ("SELECT * FROM t WHERE ⟨name⟩0 = $1", "k"),
    ("SELECT ⟨name⟩1, p FROM t WHERE ⟨name⟩0 IN ($1, $2)", "kk"),
)
_TYPES = {"k": "bigint", "n": "bigint", "s": "text"}


class Again(Statements):
    """Draws them over one table, whose columns they name."""

    def _schema(self) -> list[Act]:
        return [Act(_KEYED)]

    def next(self) -> Act:
        """The next one, of the first client."""
        if self.pending:
            return self.pending.popleft()
        text, kinds = self.random.choice(_REPEATED)
        return Act(text, tuple(map(self._value, kinds)))

    def _value(self, kind: str) -> str:
        if kind == "p":
            return str(self.random.randint(0, 9))
        if kind != "k" and self.random.random() < 0.1:
            return "NULL"
        return f"⟨{_TYPES[kind]} {self.random.randrange(COUNT)}⟩"

    def ran(self, act: Act, *, failed: bool) -> None:
        """Nothing depends on how one ended."""


def again(random: Random) -> Again:
    """What draws a session of them."""
    return Again(random)
