"""Texts that are bound: one plan serves all where it does not depend on them, and none is taken
for another where it does.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.inside import context_of
from tests.twin import Twin

TEXTS = [
    "a",
    "b",
    "",
    "x'y",
    "a%",
    "%",
    "⟪0⟫",
    "⟦1⟧",
    "2020-01-02",
    "7",
    "NULL",
    "ä",
    "a" * 40,
    "b ",
]
#: With one placeholder, which stands in all sorts of places.
FORMS = [
    "SELECT k FROM t WHERE s = ? ORDER BY k",
    "SELECT k FROM t WHERE ? = s ORDER BY k",
    "SELECT k, s = ? FROM t ORDER BY k",
    "SELECT k FROM t WHERE s <> ? ORDER BY k",
    "SELECT k FROM t WHERE s < ? ORDER BY k",
    "SELECT k FROM t WHERE s IN ('a', ?) ORDER BY k",
    "SELECT k FROM t WHERE s LIKE ? ORDER BY k",
    "SELECT k FROM t WHERE NOT (s = ?) ORDER BY k",
    "SELECT k FROM t WHERE p = ? ORDER BY k",
    "SELECT k FROM t WHERE p IN (?, 'b') ORDER BY k",
    "SELECT k FROM t WHERE lower(s) = ? ORDER BY k",
    "SELECT k FROM t WHERE s = concat(?, '') ORDER BY k",
    "SELECT ? AS c, count(*) FROM t WHERE s = 'a'",
    "SELECT count(*), max(s) FROM t WHERE s = ?",
    "SELECT count(*) FILTER (WHERE s = ?), min(k) FROM t",
    "SELECT s, count(*) FROM t GROUP BY s HAVING s = ? ORDER BY s",
    "SELECT CASE WHEN s = ? THEN 1 ELSE 0 END AS c, k FROM t ORDER BY k",
    "SELECT t.k FROM t JOIN t AS u ON t.k = u.k WHERE u.s = ? ORDER BY t.k",
    "WITH c AS (SELECT * FROM t WHERE s = ?) SELECT k FROM c ORDER BY k",
    "SELECT k FROM t WHERE d = ?::DATE ORDER BY k",
    "SELECT k FROM t WHERE d = ? ORDER BY k",
    "SELECT k FROM t WHERE s = ? LIMIT 1",
]


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_each_text_gets_its_own_answer(profile: str, open_twin: Callable[..., Twin]) -> None:
    """The same texts in every form, in an order of chance, each twice."""
    twin = open_twin(profile)
    twin.run("CREATE TABLE t (k INT, s VARCHAR ENC, p VARCHAR, d DATE ENC)")
    for number, stored in enumerate(TEXTS):
        twin.run("INSERT INTO t VALUES (?, ?, ?, '2020-01-02')", [number, stored, stored])
    twin.run("INSERT INTO t VALUES (99, NULL, NULL, NULL)")
    runs = [(form, text) for form in FORMS for text in (*TEXTS, None, 7)] * 2
    random.Random(profile).shuffle(runs)
    for form, text in runs:
        twin.either(form, [text])


def test_one_plan_serves_all_texts_beside_an_encrypted_column(
    open_twin: Callable[..., Twin],
) -> None:
    """A plan that does not look at a text holds for every other; one that does, for this alone."""
    twin = open_twin("cryptdb")
    twin.run("CREATE TABLE t (k INT, s VARCHAR ENC, p VARCHAR)")
    planner = context_of(twin.louver).planner
    for form, expected in (("s = ?", 1), ("s IN (?, 'b')", 1), ("p = ?", 3), ("s LIKE ?", 3)):
        planner._plans.clear()
        for other in ("abc", "abd", "it's"):
            twin.rows(f"SELECT k FROM t WHERE {form}", [other])
        # What opens a layer is planned once more, for the catalog is another one then.
        assert sum(map(len, planner._plans.values())) == expected, form
