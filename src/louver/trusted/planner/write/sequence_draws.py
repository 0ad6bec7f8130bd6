"""Sequences as targets of the flow rule: a sequence records how many numbers a statement draws, and
its next number may be written to a plain column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.resolver import STRINGS
from louver.trusted.planner.write import grammar, permit, relation
from louver.trusted.planner.write.grammar import DRAW
from louver.trusted.planner.write.reads import (
    LOST,
    SCHEMA,
    Reads,
    Secrets,
    names_of,
    reached,
)
from louver.trusted.vault.catalog import Catalog

#: Tokens, and words, by letters, and queries of nothing but constants and draws in these.
_LETTERS = {
    TokenType.L_PAREN: "(", TokenType.R_PAREN: ")", TokenType.COMMA: ",", TokenType.STRING: "T",
    TokenType.NUMBER: "N", TokenType.DASH: "-", TokenType.DOT: ".",
}  # fmt: skip
_WORDS = {
    "select": "Q", "nextval": "F", "currval": "F", "lastval": "L", "setval": "S", "true": "B",
    "false": "B", "pg_catalog": "C",
}  # fmt: skip
_ITEM = r"(?:C\.)?(?:F\(T\)|L\(\)|S\(T,-?N(?:,B)?\))"
_OF_CONSTANTS = re.compile(rf"Q{_ITEM}(?:,{_ITEM})*")


def draws(catalog: Catalog, tokens: Sequence[Token]) -> bool:
    """Whether a statement draws numbers, itself or through the views and macros that it names."""
    return _draws_itself(tokens) or _draws_in_objects(catalog, tokens)


def writes(catalog: Catalog, tokens: Sequence[Token]) -> bool:
    """Whether a transaction that only reads refuses the query because it calls `nextval`, whether
    or not a row gets to the call: DuckDB does. PostgreSQL refuses the call itself.
    """
    if spoken().fails_whole or not draws(catalog, tokens):
        return False
    return _calls(tokens) or _draws_in_objects(catalog, tokens)


def _calls(tokens: Sequence[Token]) -> bool:
    """Whether one of them is called, and not a column of that name read."""
    called = [word for word, after in pairwise(tokens) if after.token_type == TokenType.L_PAREN]
    return _draws_itself(called)


def _draws_in_objects(catalog: Catalog, tokens: Sequence[Token]) -> bool:
    """Whether a view or a macro draws for the statement."""
    if {"VIEW", "MACRO"}.isdisjoint([item.kind for item in catalog.objects]):
        return False
    _, objects = reached(catalog, names_of(tokens))
    return any(_draws_itself(lexer.tokens(item.sql)) for item in objects)


def _draws_itself(tokens: Sequence[Token]) -> bool:
    draws = spoken().draws
    return any(fold(t.text) in draws for t in tokens if t.token_type not in STRINGS)


def of_drawing(reads: Reads, tokens: Sequence[Token]) -> Secrets:
    """What the number of drawn numbers depends on.

    If one is drawn for every row, it depends on what selects the rows; otherwise on everything that
    the statement reads.
    """
    tree = reads.tree
    query = tree.expression if isinstance(tree, exp.Insert) and not _odd(tree) else tree
    if not grammar.reads_one_by_one(query) or _draws_in_objects(reads.catalog, tokens):
        return reads.everything
    drawn = [item for item in query.expressions if not isinstance(item.unalias(), exp.Column)]
    calls = [node for node in query.walk() if fold(node.name) == DRAW]
    if len(calls) != len(drawn) or not all(map(grammar.is_draw, drawn)):
        return reads.everything
    return relation.query(query, reads, None).rows.all


def _odd(tree: exp.Insert) -> bool:
    return bool(set(filter(tree.args.get, tree.args)) - {"this", "expression"})


def require(
    reads: Reads,
    tokens: Sequence[Token],
    definitions: Sequence[Token] = (),
    *,
    names_only: bool = False,
) -> None:
    """Refuse a statement whose draws would reveal anything about an encrypted column.

    ``definitions`` are those of the objects that it changes; their defaults may draw for it.
    ``names_only``: of the declared schema it only asks which sequence a constant names.
    """
    by_default = bool(definitions) and draws(reads.catalog, definitions)
    if not by_default and (not draws(reads.catalog, tokens) or _is_of_constants(tokens)):
        return
    secrets = reads.everything if by_default else of_drawing(reads, tokens)
    for secret in secrets:
        if names_only and secret == SCHEMA:
            continue
        if secret == SCHEMA or secret[0] == LOST:
            raise _refusal(permit.source_of(secret), permit.SCHEMA_CEILING)
    for table in reads.catalog.tables.values():
        for column in table.columns:
            if (table.id, column.id) in secrets and column.ceiling != "plaintext":
                raise _refusal(f"{table.label}.{column.name}", column.ceiling)


def _is_of_constants(tokens: Sequence[Token]) -> bool:
    """Whether a query only draws, or has sequences stand where constants say: as SELECT
    setval('s', 7, true). Such names of functions are PostgreSQL's alone.
    """
    if not spoken().has_own_statements:
        return False
    letters = [_LETTERS.get(token.token_type, "?") for token in tokens]
    for position, token in enumerate(tokens):
        if letters[position] not in ("T", "N"):
            letters[position] = _WORDS.get(fold(token.text), letters[position])
    return _OF_CONSTANTS.fullmatch("".join(letters)) is not None


def _refusal(source: str, ceiling: str) -> errors.Error:
    return errors.make(
        "leak.flow",
        source=source,
        ceiling=ceiling,
        target=f"The sequence that {DRAW}() draws from",
        fix="Draw the numbers in a separate statement",
    )
