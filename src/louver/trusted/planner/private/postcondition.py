"""The last check of a shape before it is sent: it contains no secret and no mark of one."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.errors import SqlglotError

from louver import errors
from louver.names import fold
from louver.trusted.planner.private import marks
from louver.trusted.planner.private.refusal import refuse
from louver.trusted.planner.sql import lexer, trees
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX
from louver.wire.questions import Shape

_LOCAL_FUNCTIONS = ("louver_average", "louver_variance", "louver_deviation")


def require_public(shape: Shape) -> None:
    """Refuse a shape with an overlooked private part; unknown means refuse."""
    for text in _texts(shape):
        if lexer.between(text, lexer.tokens(text)):
            raise errors.make("internal.check", detail="a comment")
        try:
            tree = trees.parse_one(text)
        except SqlglotError as error:
            raise refuse("an expression that cannot be read back", "Write it plainly") from error
        for node in tree.walk():
            if marks.is_private(node) or isinstance(node, exp.Placeholder | exp.Parameter):
                raise refuse("a secret in the public part", "Compare it with an expression")
            name = fold(node.name) if isinstance(node, exp.Identifier | exp.Anonymous) else ""
            if name.startswith(PARAMETER_PREFIX) or name in _LOCAL_FUNCTIONS:
                raise refuse("a name that is Louver's own", "Use another name")


def _texts(shape: Shape) -> Iterator[str]:
    yield f"SELECT 1 FROM {shape.source}"
    texts = [shape.where, *shape.equal, shape.interval, *shape.groups, *shape.columns]
    texts += [order.expression for order in shape.orders]
    for partial in shape.partials:
        texts += [*partial.arguments, partial.filter]
    yield from (f"SELECT {text}" for text in texts if text)
