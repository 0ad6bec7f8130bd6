"""Which of sqlglot's trees of PostgreSQL's language are certain; all others are refused.

A tree is what PostgreSQL reads if every operator binds its operands as PostgreSQL's grammar says:
an operand without brackets binds more tightly than what it is an operand of, or as tightly on the
left of one that is read from the left. What is not in these tables may mean anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.parser import Parser
from sqlglot.tokens import Token, TokenType

from louver.names import fold, keyword

_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER, TokenType.HEREDOC_STRING)
_VALUES = (
    *_QUOTED, TokenType.VAR, TokenType.NUMBER, TokenType.R_PAREN, TokenType.R_BRACKET,
    TokenType.END, TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.CURRENT_DATE,
    TokenType.CURRENT_TIMESTAMP,
)  # fmt: skip
#: What may stand in front of a constant of a type: the type, with its precision in brackets.
_TYPES = Parser.TYPE_TOKENS | {TokenType.INTERVAL, TokenType.VAR, TokenType.R_PAREN}
#: Kinds of literals that sqlglot and PostgreSQL take for different things.
_REFUSED = (
    TokenType.NATIONAL_STRING, TokenType.RAW_STRING, TokenType.BYTE_STRING, TokenType.PARAMETER,
    TokenType.UNICODE_STRING,
)  # fmt: skip
_SIGNS = frozenset("+-*/<>=~!@#%^&|`?")
#: A run of signs is one operator. It ends in a sign of a number only where it holds one of these.
_SPECIAL = frozenset("~!@#%^&|`?")
_OPERATORS = frozenset(
    "+ - * / % ^ < > = <= >= <> != || ~ ~* & | # << >> -> ->> #> #>> @> <@ && ? ?| ?&".split()
)
_SHIFTS = ("<<", ">>")
#: Words that sqlglot reads as operators, joins or clauses, and PostgreSQL as names or not at all.
_WORDS = frozenset(
    "OPERATOR DIV XOR GLOB REGEXP RLIKE SEMI ANTI ASOF POSITIONAL QUALIFY PIVOT UNPIVOT"
    " UNKNOWN".split()
)

_OR, _AND, _NOT, _IS, _COMPARED, _MEMBER, _OTHER, _SUM, _PRODUCT, _POWER, _AT, _COLLATE, _SIGN = (
    range(1, 14)
)
_LEVELS: dict[type[exp.Expr], int] = {
    exp.Or: _OR, exp.And: _AND, exp.Not: _NOT,
    exp.Is: _IS, exp.NullSafeEQ: _IS, exp.NullSafeNEQ: _IS,
    exp.EQ: _COMPARED, exp.NEQ: _COMPARED, exp.LT: _COMPARED, exp.LTE: _COMPARED,
    exp.GT: _COMPARED, exp.GTE: _COMPARED,
    exp.In: _MEMBER, exp.Between: _MEMBER, exp.Like: _MEMBER, exp.ILike: _MEMBER,
    exp.SimilarTo: _MEMBER,
    exp.DPipe: _OTHER, exp.BitwiseAnd: _OTHER, exp.BitwiseOr: _OTHER, exp.BitwiseXor: _OTHER,
    exp.BitwiseNot: _OTHER, exp.BitwiseLeftShift: _OTHER, exp.BitwiseRightShift: _OTHER,
    exp.RegexpLike: _OTHER, exp.RegexpILike: _OTHER, exp.StartsWith: _OTHER,
    exp.JSONExtract: _OTHER, exp.JSONExtractScalar: _OTHER, exp.JSONBExtract: _OTHER,
    exp.JSONBExtractScalar: _OTHER, exp.JSONBContainsTopKey: _OTHER,
    exp.JSONBContainsAnyTopKeys: _OTHER, exp.JSONBContainsAllTopKeys: _OTHER,
    exp.ArrayContainsAll: _OTHER, exp.ArrayContainedBy: _OTHER, exp.ArrayOverlaps: _OTHER,
    exp.Add: _SUM, exp.Sub: _SUM, exp.Mul: _PRODUCT, exp.Div: _PRODUCT, exp.Mod: _PRODUCT,
    exp.Pow: _POWER, exp.AtTimeZone: _AT, exp.Collate: _COLLATE, exp.Neg: _SIGN,
}  # fmt: skip
#: Operators of these levels are read from the left; of the others none follows its like.
_FROM_THE_LEFT = frozenset((_OR, _AND, _OTHER, _SUM, _PRODUCT, _POWER, _AT, _COLLATE))
#: Operators that are one by their class, and bind as tightly as a name does.
_ATOMS = (exp.Paren, exp.Dot, exp.Any, exp.All, exp.Exists, exp.Subquery)
#: What a tree is made of beside operators and functions.
_KNOWN = (
    *_ATOMS, exp.Alias, exp.AtTimeZone, exp.BitString, exp.Boolean, exp.Column, exp.ColumnDef,
    exp.Create, exp.CTE, exp.Cube, exp.DataType, exp.DataTypeParam, exp.Delete, exp.Distinct,
    exp.Escape, exp.Fetch,
    exp.Filter, exp.From, exp.Func, exp.Group, exp.GroupingSets, exp.Having, exp.Identifier,
    exp.Insert, exp.Interval, exp.Join, exp.Lateral, exp.Limit, exp.LimitOptions, exp.Literal,
    exp.Merge, exp.Null, exp.Offset, exp.OnConflict, exp.Order, exp.Ordered, exp.RawString,
    exp.Returning, exp.Rollup, exp.Schema, exp.Select, exp.SetOperation, exp.Star, exp.Table,
    exp.TableAlias, exp.Tuple, exp.Update, exp.Values, exp.Var, exp.When, exp.Whens, exp.Where,
    exp.Window, exp.WindowSpec, exp.With, exp.WithinGroup,
)  # fmt: skip
_NEGATED = (exp.In, exp.Between, exp.Like, exp.ILike, exp.SimilarTo)
_TESTS = (exp.Null, exp.Boolean)
_QUANTIFIERS = ("ALL", "ANY", "SOME")
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike)

_STATEMENTS = (exp.Query, exp.Values, exp.Insert, exp.Update, exp.Delete, exp.Merge)
_MADE = ("TABLE", "VIEW")
_PARTS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        "with_ expressions distinct from_ joins where group having order limit offset"
        " windows".split()
    ),
    exp.Join: frozenset(("this", "on", "using", "side", "kind", "method")),
    exp.Insert: frozenset(
        ("this", "expression", "conflict", "returning", "with_", "default", "columns")
    ),
    exp.Group: frozenset(("expressions", "rollup", "cube", "grouping_sets")),
    exp.Ordered: frozenset(("this", "desc", "nulls_first")),
    exp.Limit: frozenset(("expression",)),
}
_KINDS, _METHODS = ("", "INNER", "CROSS", "OUTER"), ("", "NATURAL")
#: What is not a query and begins with a word that may be a name, followed by nothing or by a name.
_ORDERS = frozenset(
    "ABORT CHECKPOINT CLOSE CLUSTER DEALLOCATE DISCARD IMPORT LISTEN LOAD LOCK MOVE NOTIFY"
    " REASSIGN RELEASE SAVEPOINT SECURITY UNLISTEN".split()
)
#: Words in front of the name of a table, which a list of columns may follow.
_BEFORE_TABLES = frozenset(("INTO", "TABLE", "REFERENCES", "WITH", "RECURSIVE", "AS"))


def require(sql: str, tokens: Sequence[Token], trees: Sequence[exp.Expr | None]) -> None:
    """Raise SqlglotError where PostgreSQL may read a text otherwise than these trees say."""
    for run in _runs(tokens):
        _require_operator(run)
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.token_type in _REFUSED or (_is_word(token) and keyword(token.text) in _WORDS):
            raise _uncertain(token.text)
        if token.token_type == TokenType.PLUS and (before is None or not _ends_value(before)):
            raise _uncertain("a plus sign without effect")
        if token.token_type == TokenType.STRING and before is not None:
            _require_own_string(sql, before, token)
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        typed = before.token_type in _TYPES and token.token_type == TokenType.STRING
        if typed and after.token_type == TokenType.DCOLON:
            raise _uncertain("a cast of a constant with a type")
    _require_clear_names(tokens)
    _require_no_named_functions(tokens)
    for tree in trees:
        if tree is not None:
            _require_statement(tree, tokens)
            for node in tree.walk():
                _require_node(node)


def _uncertain(what: object) -> SqlglotError:
    return SqlglotError(f"PostgreSQL may read this otherwise: {what}")


def _is_word(token: Token) -> bool:
    return token.token_type not in _QUOTED


def _ends_value(token: Token) -> bool:
    """Whether a value may end with a token, so that a plus sign behind it adds something to it."""
    return token.token_type in _VALUES or token.token_type in Parser.TYPE_TOKENS


def _is_sign(token: Token) -> bool:
    return _is_word(token) and bool(token.text) and _SIGNS.issuperset(token.text)


def _runs(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Tokens of signs with nothing between them, which PostgreSQL reads as one word first."""
    run: list[Token] = []
    for token in tokens:
        if run and not (_is_sign(token) and token.start == run[-1].end + 1):
            yield run
            run = []
        if _is_sign(token):
            run.append(token)
    if run:
        yield run


def _require_operator(run: Sequence[Token]) -> None:
    text = "".join(token.text for token in run)
    whole = text if _SPECIAL.intersection(text) else text[0] + text[1:].rstrip("+-")
    signs = [whole, *text[len(whole) :]]
    parts = [token.text for token in run]
    if text[:2] in _SHIFTS and parts[:2] == [*text[:2]]:
        parts[:2] = [text[:2]]  # sqlglot's parser joins them, where they touch
    if parts != signs or whole not in _OPERATORS:
        raise _uncertain(text)


def _require_own_string(sql: str, before: Token, token: Token) -> None:
    """A string behind another one goes on with it, and one behind a name is of that type."""
    word = before.token_type == TokenType.VAR and keyword(before.text) != "ZONE"
    if word or before.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        raise _uncertain("a string behind a name or a string")
    if before.end + 1 == token.start and (sql[before.end].isalnum() or sql[before.end] in "_$"):
        raise _uncertain("a string that a name touches")


def _require_clear_names(tokens: Sequence[Token]) -> None:
    """Names that differ by their capitals alone are two names, and one where they are folded."""
    names: dict[str, str] = {}
    for token in tokens:
        if token.token_type in (TokenType.STRING, TokenType.HEREDOC_STRING, TokenType.NUMBER):
            continue
        quoted = token.token_type == TokenType.IDENTIFIER
        folded = fold(token.text)
        own = token.text if quoted else folded
        if names.setdefault(folded, own) != own:
            raise _uncertain(f"names that differ by their capitals: {folded}")


def _require_no_named_functions(tokens: Sequence[Token]) -> None:
    """Refuse a call by a name in quotes that is not the name without them."""
    table = False
    for token, after in pairwise(tokens):
        named = token.token_type == TokenType.IDENTIFIER
        if named and after.text == "(" and token.text != fold(token.text) and not table:
            raise _uncertain(f"a call of {token.text}")
        if not (named or token.text == "."):
            table = _is_word(token) and keyword(token.text) in _BEFORE_TABLES


def _require_statement(tree: exp.Expr, tokens: Sequence[Token]) -> None:
    """Refuse what sqlglot takes for a query, or for an expression, and PostgreSQL does not."""
    if isinstance(tree, _STATEMENTS):
        return
    if isinstance(tree, exp.Create):
        if tree.kind not in _MADE:
            raise _uncertain("CREATE of another thing")
        return
    bare = isinstance(tree, exp.Column) and keyword(tokens[0].text) in _ORDERS
    if bare or not isinstance(tree, exp.Condition | exp.Tuple | exp.Star):
        raise _uncertain("a statement that is not a query")


def _require_node(node: exp.Expr) -> None:
    known = _PARTS.get(type(node))
    if known is not None and (more := {k for k, part in node.args.items() if part} - known):
        raise _uncertain(f"{node.key} with {', '.join(sorted(more))}")
    if isinstance(node, exp.Join):
        if keyword(node.kind) not in _KINDS or keyword(node.method) not in _METHODS:
            raise _uncertain(f"{node.method} {node.kind} JOIN")
    elif isinstance(node, exp.CTE):
        if not isinstance(node.this, exp.Query):
            raise _uncertain("a change within WITH")
    elif _is_misread(node):
        raise _uncertain(node.key)
    if _is_operator(node):
        _require_level(node)
    elif not isinstance(node, _KNOWN) and node.find_ancestor(exp.Schema) is None:
        raise _uncertain(node.key)


def _is_misread(node: exp.Expr) -> bool:
    """Whether a node has a part that PostgreSQL gives to another node, or reads otherwise."""
    match node:
        case exp.Is():
            return not isinstance(node.expression, _TESTS)
        case exp.Interval():
            return not isinstance(node.this, exp.Literal) or not node.this.is_string
        case exp.DataType():
            return node.is_type(exp.DType.INTERVAL) and bool(node.expressions)
        case exp.Any() | exp.All():
            whole = isinstance(node.this, exp.Paren | exp.Query)
            return not (whole and isinstance(node.parent, _COMPARISONS))
        case exp.Anonymous():
            return keyword(node.name) in _QUANTIFIERS
        case exp.Array():
            return any(isinstance(part, exp.Query) for part in node.expressions)
        case exp.Collate():
            return not isinstance(node.expression, exp.Identifier | exp.Var)
    return False


def _is_operator(node: exp.Expr) -> bool:
    """Whether a node is written by an operator, or may be."""
    kinds = exp.Binary | exp.Unary | exp.Predicate | exp.AtTimeZone
    return type(node) in _LEVELS or (isinstance(node, kinds) and not isinstance(node, _ATOMS))


def _require_level(node: exp.Expr) -> None:
    level = _LEVELS.get(type(node))
    if level is None:
        raise _uncertain(f"the order of {node.key}")
    left = node.this if not isinstance(node, exp.Unary) else None
    for part in (left, *_right(node)):
        if not isinstance(part, exp.Expr) or not _is_operator(part):
            continue
        inner = _level_of(part)
        tight = inner > level or (inner == level and _may_follow(node, part, level))
        if not tight:
            raise _uncertain(f"the order of {part.key} in {node.key}")


def _right(node: exp.Expr) -> Iterator[exp.Expr | None]:
    """What stands behind an operator, without brackets around it."""
    if isinstance(node, exp.Unary):
        yield node.this
    elif isinstance(node, exp.Between):
        yield node.args.get("low")
        yield node.args.get("high")
    elif isinstance(node, exp.AtTimeZone):
        yield node.args.get("zone")
    elif not isinstance(node, exp.In):
        yield node.args.get("expression")


def _level_of(node: exp.Expr) -> int:
    """How tightly a node binds, which `NOT` within IN, BETWEEN and LIKE does not change."""
    if isinstance(node, exp.Not) and isinstance(node.this, _NEGATED):
        return _MEMBER
    return _LEVELS.get(type(node), 0)


def _may_follow(node: exp.Expr, part: exp.Expr, level: int) -> bool:
    """Whether an operator may be an operand of one of its own level."""
    if isinstance(node, exp.Unary):
        return True
    if isinstance(node, exp.Is):
        return part is node.this and isinstance(part, exp.Is)
    return part is node.this and level in _FROM_THE_LEFT
