"""The code of a constant is made once in a statement, however often the statement asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from louver.trusted.executor import constant_encoding
from tests.twin import Twin


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_each_constant_is_encoded_once(
    profile: str, open_twin: Callable[..., Twin], monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = open_twin(profile)
    twin.fill(
        "CREATE TABLE t (a INT ENC PRIMARY KEY, b TEXT ENC, UNIQUE (b))",
        "INSERT INTO t SELECT i, 's' || i FROM range(100) r(i)",
    )
    encoded = list[str]()
    real = constant_encoding._value

    def counted(*given: Any) -> Any:
        encoded.append(given[2].text)
        return real(*given)

    monkeypatch.setattr(constant_encoding, "_value", counted)
    for sql, values, times in (
        ("SELECT b FROM t WHERE a = ?", (3, 4, 4), 1),
        ("SELECT b, a FROM t WHERE a = ? AND b = ?", ((5, "s5"), (6, "s7")), 1),
        ("UPDATE t SET b = 'x' || b WHERE a = ?", (7, 8), 1),
        ("DELETE FROM t WHERE a = ?", (9, 10), 1),
    ):
        for number, value in enumerate(values):
            encoded.clear()
            twin.either(sql, value if isinstance(value, tuple) else [value])
            # Of a new shape it is also looked at what may be asked.
            assert len(encoded) == times or not number, (sql, encoded)
    twin.run("SELECT * FROM t")


def test_a_layer_that_opens_within_a_statement_makes_other_codes(
    open_twin: Callable[..., Twin],
) -> None:
    twin = open_twin("cryptdb")
    twin.fill(
        "CREATE TABLE t (a INT ENC, b INT ENC)", "INSERT INTO t SELECT i, i FROM range(100) r(i)"
    )
    twin.run("BEGIN")
    twin.run("UPDATE t SET b = b + 1 WHERE a = ?", [5])
    twin.run("DELETE FROM t WHERE b BETWEEN ? AND ?", [10, 20])
    twin.run("SELECT * FROM t WHERE a = ?", [5])
    twin.run("COMMIT")
    twin.run("SELECT * FROM t")
