"""WHERE as public conditions and an OR of clauses of secrets (Splinter, section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from sqlglot import exp

from louver.names import keyword
from louver.trusted.planner.private import marks
from louver.trusted.planner.private.refusal import refuse
from louver.trusted.planner.sql import placeholders
from louver.trusted.planner.sql.trees import local_text

MOST_CLAUSES = 64
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NEQ: "<>",
}
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MATCHES = (
    exp.Like, exp.ILike, exp.RegexpFullMatch, exp.RegexpLike, exp.SimilarTo, exp.Glob,
)  # fmt: skip
_COMPARED = "a secret can only be compared with an expression of columns"
_FORMS = "Write column = ?, column < ?, column BETWEEN ? AND ? or column IN (?, ?)"


@dataclass(frozen=True, slots=True)
class Constraint:
    """One comparison of an expression of columns with a constant."""

    expression: exp.Expr
    operator: str
    constant: exp.Expr

    @property
    def key(self) -> str:
        """Identifies the expression."""
        return local_text(self.expression)


Atom = Constraint | exp.Expr
Conjunction = list[Atom]


@dataclass(slots=True)
class Split:
    """A condition split: ``public`` holds for all rows of the answer. A row must satisfy one of
    ``clauses``; all of them constrain the same ``expressions``, and ``interval`` is the one that
    some clause constrains other than by equality.
    """

    public: list[exp.Expr] = field(default_factory=list)
    expressions: dict[str, exp.Expr] = field(default_factory=dict)
    interval: str = ""
    clauses: list[dict[str, list[Constraint]]] = field(default_factory=list)


def split(where: exp.Expr | None) -> Split:
    """Split the condition of a statement, its columns resolved.

    Raises:
        provider.language: unless it is an AND of equalities and one interval, or an OR of those.
    """
    if where is None:
        return Split()
    conjunctions = _alternatives(where, positive=True)
    if not any(isinstance(atom, Constraint) for atoms in conjunctions for atom in atoms):
        # Nothing is private, so every conjunct is a public atom.
        return Split(public=[cast(exp.Expr, atom) for atom in conjunctions[0]])
    public = _common(conjunctions)
    shared = {local_text(node) for node in public}
    result = Split(public=public)
    for atoms in conjunctions:
        constraints: list[Constraint] = []
        for atom in atoms:
            if isinstance(atom, Constraint):
                constraints.append(atom)
            elif local_text(atom) not in shared:
                constraints += _as_constraints(atom)
        _add_clause(result, constraints)
    return result


def _add_clause(split: Split, constraints: list[Constraint]) -> None:
    clause: dict[str, list[Constraint]] = {}
    for constraint in constraints:
        clause.setdefault(constraint.key, []).append(constraint)
        if not split.clauses:
            split.expressions.setdefault(constraint.key, constraint.expression)
        if constraint.operator == "=" or constraint.key == split.interval:
            continue
        if split.interval:
            raise refuse(
                f"two private intervals, on {split.interval} and on {constraint.key}",
                "Bound one of them by a public number, or compare a rounded column by =",
            )
        split.interval = constraint.key
    if set(clause) != set(split.expressions):
        first, second = ", ".join(split.expressions), ", ".join(clause) or "nothing"
        raise refuse(
            f"the alternatives of an OR compare different expressions: {first}; {second}",
            "Ask them one by one, or compare the same expressions in all of them",
        )
    split.clauses.append(clause)


def _common(conjunctions: list[Conjunction]) -> list[exp.Expr]:
    """The public conditions that occur in every alternative."""
    shared: list[exp.Expr] = []
    others = [
        {local_text(atom) for atom in atoms if not isinstance(atom, Constraint)}
        for atoms in conjunctions
    ]
    for atom in conjunctions[0]:
        if isinstance(atom, Constraint) or any(local_text(atom) not in o for o in others):
            continue
        if all(local_text(atom) != local_text(known) for known in shared):
            shared.append(atom)
    return shared


def _as_constraints(atom: exp.Expr) -> list[Constraint]:
    """A public comparison with a constant in only one alternative, hidden like a secret."""
    node = atom.unnest()
    try:
        if isinstance(node, exp.Between | exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
            (conjunction,) = _leaf(node, positive=True)
            return [item for item in conjunction if isinstance(item, Constraint)]
    except _NotOneSided:
        pass
    raise refuse(
        f"the public condition {local_text(atom)} stands in one alternative of an OR with secrets",
        "Let it hold for the whole WHERE by AND, or ask the alternatives one by one",
    )


class _NotOneSided(Exception):
    """Both sides of a comparison have columns, or neither does."""


def _alternatives(node: exp.Expr, *, positive: bool) -> list[Conjunction]:
    """A condition in disjunctive normal form; a part without secrets is one atom."""
    node = node.unnest()
    if isinstance(node, exp.Not) and marks.has_secret(node):
        return _alternatives(node.this, positive=not positive)
    if isinstance(node, exp.And | exp.Or) and (marks.has_secret(node) or _splits(node, positive)):
        left = _alternatives(node.this, positive=positive)
        right = _alternatives(node.expression, positive=positive)
        if isinstance(node, exp.And) == positive:
            if len(left) * len(right) > MOST_CLAUSES:
                raise _too_many(len(left) * len(right))
            return [[*before, *other] for before in left for other in right]
        return _bounded(left + right)
    if not marks.has_secret(node):
        return [[node if positive else exp.Not(this=exp.Paren(this=node.copy()))]]
    try:
        return _bounded(_leaf(node, positive=positive))
    except _NotOneSided:
        raise refuse(_why(node), _FORMS) from None


def _splits(node: exp.Expr, positive: bool) -> bool:
    """Whether a public condition is a conjunction, whose parts are separate atoms."""
    return isinstance(node, exp.And) and positive


def _bounded(conjunctions: list[Conjunction]) -> list[Conjunction]:
    if len(conjunctions) > MOST_CLAUSES:
        raise _too_many(len(conjunctions))
    return conjunctions


def _too_many(count: int) -> Exception:
    return refuse(
        f"the condition has {count} alternatives of secrets",
        f"Ask for at most {MOST_CLAUSES} at once, such as by IN lists of that length",
    )


def _leaf(node: exp.Expr, *, positive: bool) -> list[Conjunction]:
    """One comparison with constants, as alternatives of constraints."""
    if isinstance(node, exp.Between):
        if node.args.get("symmetric"):
            raise refuse("BETWEEN SYMMETRIC with a secret", "Use BETWEEN least AND greatest")
        low = _compared(node.this, ">=", node.args["low"], positive=positive)
        high = _compared(node.this, "<=", node.args["high"], positive=positive)
        if positive:
            return [[*before, *other] for before in low for other in high]
        return low + high
    if isinstance(node, exp.In):
        return _in_list(node, positive=positive)
    operator = _OPERATORS.get(type(node))
    if operator is None:
        raise _NotOneSided
    return _compared(node.this, operator, node.expression, positive=positive)


def _in_list(node: exp.In, *, positive: bool) -> list[Conjunction]:
    if not node.expressions:
        raise refuse("IN over one secret list", "Write out the list: column IN (?, ?, ?)")
    result: list[Conjunction] = [] if positive else [[]]
    for item in node.expressions:
        alternatives = _compared(node.this, "=", item, positive=positive)
        if positive:
            result += alternatives
        else:
            result = [[*before, *atoms] for before in result for atoms in alternatives]
        _bounded(result)
    return result


def _compared(
    left: exp.Expr, operator: str, right: exp.Expr, *, positive: bool
) -> list[Conjunction]:
    """``left operator right``, one side of which is a constant; ``<>`` is two intervals."""
    left, right = left.unnest(), right.unnest()
    if isinstance(left, exp.Tuple) or isinstance(right, exp.Tuple):
        # In rows, DuckDB treats NULL as equal to NULL, which no key can express.
        raise refuse("rows compared with secrets", "Write a = ? AND b = ?, with OR between rows")
    if not positive:
        operator = _NEGATED[operator]
    if marks.has_column(right) and not marks.has_column(left):
        left, operator, right = right, _FLIPPED[operator], left
    if not marks.has_secret(right) and not marks.has_secret(left) and marks.has_column(right):
        raise _NotOneSided
    if marks.has_column(right) or marks.has_secret(left) or not marks.has_column(left):
        if marks.has_secret(left) or marks.has_secret(right):
            raise refuse(_why_sides(left, right), _FORMS)
        raise _NotOneSided
    if operator == "<>":
        return [[Constraint(left, "<", right)], [Constraint(left, ">", right)]]
    if not marks.has_secret(right) and _beside_secret(left):
        # A public end of an interval whose other end is secret becomes a public filter.
        kind = next(kind for kind, text in _OPERATORS.items() if text == operator)
        this = exp.Paren(this=left.copy()) if isinstance(left, exp.Binary) else left.copy()
        return [[kind(this=this, expression=right.copy())]]
    return [[Constraint(left, operator, right)]]


def _beside_secret(left: exp.Expr) -> bool:
    """Whether a comparison with a public constant belongs to a BETWEEN with a secret."""
    parent = left.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Between) and marks.has_secret(parent)


def _why_sides(left: exp.Expr, right: exp.Expr) -> str:
    if not marks.has_column(left) and not marks.has_column(right):
        return f"{_COMPARED}, not with a constant"
    return f"{_COMPARED}, and stands on one side of the comparison by itself"


def _why(node: exp.Expr) -> str:
    if isinstance(node, exp.Escape):
        node = node.this
    if isinstance(node, _MATCHES):
        return "a secret pattern: texts can be compared by = and by intervals only"
    if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
        return "IS DISTINCT FROM with a secret"
    if isinstance(node, exp.Is):
        return "IS with a secret"
    if placeholders.is_placeholder(node) or marks.is_private(node):
        return f"{_COMPARED}, and stands as a condition by itself"
    return f"{_COMPARED}, and stands in {keyword(type(node).__name__)}"
