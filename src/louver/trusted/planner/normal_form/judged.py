"""A normal form that the local binder takes for the statement, and when its plan is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokens import Token

from louver import errors
from louver.trusted.planner.ir import Plan
from louver.trusted.planner.normal_form.form import normal_form
from louver.trusted.planner.split.nested import block_text
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.resolver import Resolver
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.vault.catalog import Catalog

Described = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Written:
    """A statement as the user wrote it."""

    tree: exp.Expr | None
    resolver: Resolver
    tokens: Sequence[Token]


def judged(
    written: Written,
    described: Described,
    parameters: Sequence[object],
    catalog: Catalog,
    describe: Callable[[str], list[tuple[str, str]]],
) -> exp.Expr | None:
    """The statement's normal form, if it has one and DuckDB gives its answer the same types."""
    if written.tree is None or written.resolver.by_text or not described:
        return None
    normal = normal_form(written.tree, catalog, written.tokens)
    if normal is None or Resolver(catalog, normal, lexer.tokens(local_text(normal))).views:
        # It names tables that its tree does not show.
        return None
    try:
        types = describe(block_text(normal, parameters))
    except errors.Error:
        return None
    same = [type_ for _, type_ in types] == [type_ for _, type_ in described]
    return normal if same else None


def better(written: Plan | None, normal: Plan | None) -> Plan | None:
    """Of two plans of one statement, the one for which the server sends less."""
    if normal is None or written is None:
        return normal or written
    if normal.kind == "whole" or (normal.remotes[0].limit and not written.remotes[0].limit):
        return normal
    return written
