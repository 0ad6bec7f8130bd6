"""A plan meets one statement: keys are resolved, literals sealed, texts printed and checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokens import TokenType

from louver.trusted.executor.context import Context
from louver.trusted.executor.storage import Request, Storage
from louver.trusted.planner.ir import Plan
from louver.trusted.planner.operators import codes
from louver.trusted.planner.planner import home_values
from louver.trusted.planner.sql import lexer

_MARKER = re.compile(r"⟪(p?)(\d+)⟫")


@dataclass(slots=True)
class Bound:
    """A plan with this statement's numbers in it: ready to be sent."""

    plan: Plan
    literals: Sequence[str]
    statements: list[Request]
    home_sql: str
    home_parameters: list[object] | dict[str, object]

    def sent(self, storage: Storage, plan: Plan, rows: Sequence[float]) -> list[str]:
        """What each server is sent, for people; ``rows`` come of each question, or 0."""
        questions = zip(plan.remotes, self.statements, rows, strict=True)
        return [storage.sent(*question) for question in questions]


def bind(
    context: Context,
    plan: Plan,
    shape: lexer.Shape,
    text: lexer.Text,
    parameters: list[object],
) -> Bound:
    """Resolve keys, seal literals, print and check the texts."""
    literals = shape.literals
    statements = [context.storage.request(remote, literals) for remote in plan.remotes]
    if plan.replacements:
        sql, used = _replaced(plan, literals, text, parameters)
        return Bound(plan, literals, statements, sql, used)
    if not plan.home_sql:
        return Bound(plan, literals, statements, text.home, home_values(text, parameters))
    used = []

    def put(match: re.Match[str]) -> str:
        if match[1]:
            used.append(parameters[int(match[2])])
            return f"${len(used)}"
        return literals[int(match[2])]

    return Bound(plan, literals, statements, _MARKER.sub(put, plan.home_sql), used)


def _replaced(
    plan: Plan, literals: Sequence[str], text: lexer.Text, parameters: list[object]
) -> tuple[str, list[object]]:
    """The user's own text with some of its tokens replaced, and what its placeholders stand for."""
    tokens = lexer.tokens(text.plain)
    changes = {first: (last, codes.fill(new, literals)) for first, last, new in plan.replacements}
    pieces: list[str] = []
    used: list[object] = []
    index = position = 0
    while index < len(tokens):
        token, new, last = tokens[index], "", index
        if index in changes:
            last, new = changes[index]
        elif token.text.startswith(lexer.PARAMETER_PREFIX) and token.token_type == TokenType.VAR:
            used.append(parameters[int(token.text.removeprefix(lexer.PARAMETER_PREFIX))])
            new = f"${len(used)}"
        if new:
            pieces += [text.plain[position : token.start], new]
            position = tokens[last].end + 1
        index = last + 1
    return "".join([*pieces, text.plain[position:]]), used
