"""Random blocks that group and aggregate, of conditions that a server may decide by itself."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.postgres_grammar.expressions import CODED, MOMENTS, NUMBERS, VALUES, Name, condition

_EXACT = ("integer", "bigint", "smallint", "numeric(10,2)", "numeric")
_ORDERED = (*NUMBERS, *MOMENTS, "text", "varchar(8)")
_SIGNS = ("=", "<", "<=", ">", ">=", "<>")


def block(random: Random, sources: Sequence[tuple[str, list[Name]]]) -> str:
    """A block over one table, or over two that are joined where they have columns of one type;
    ``sources``: what FROM says of each, and its columns.
    """
    (first, names), *others = sources
    text = first
    if others and random.random() < 0.4:
        other, more = others[0]
        pairs = [(a, b) for a in names for b in more if a.type == b.type and a.type in CODED]
        if pairs:
            left, right = random.choice(pairs)
            side = random.choice(("JOIN", "LEFT JOIN"))
            text, names = f"{text} {side} {other} ON {left.text} = {right.text}", [*names, *more]
    groups = [name for name in names if name.type not in ("jsonb", "double precision", "real")]
    keys = random.sample(groups, k=min(len(groups), random.choice((0, 1, 1, 2))))
    listed = [aggregate(random, names) for _ in range(random.randint(1, 3))]
    where = f" WHERE {_where(random, names)}" if random.random() < 0.6 else ""
    items = [key.text for key in keys] + [f"{item} AS a{n}" for n, item in enumerate(listed)]
    sql = f"SELECT {', '.join(items)} FROM {text}{where}"
    if keys:
        sql += f" GROUP BY {', '.join(key.text for key in keys)}"
        if random.random() < 0.3:
            sql += f" HAVING {random.choice(listed)} IS NOT NULL AND count(*) > 1"
    form = random.random()
    if form < 0.15:
        return f"SELECT count(*), min(x.a0) FROM ({sql}) AS x WHERE x.a0 IS NOT NULL"
    if form < 0.25:
        return f"WITH x AS ({sql}) SELECT x.a0, count(*) FROM x GROUP BY x.a0"
    if form < 0.35:
        return f"SELECT {names[0].text} FROM {text} WHERE EXISTS ({sql})"
    return sql


def aggregate(random: Random, names: Sequence[Name]) -> str:
    """An aggregate over a column, over some of the rows, or with an expression around it."""
    exact = [name.text for name in names if name.type in _EXACT]
    ordered = [name.text for name in names if name.type in _ORDERED]
    column = random.choice(names)
    drawn = [f"count({column.text})", "count(*)"]
    if column.type != "jsonb":
        drawn.append(f"count(DISTINCT {column.text})")
    if ordered:
        drawn.append(f"{random.choice(('min', 'max'))}({random.choice(ordered)})")
    if exact:
        number, word = random.choice(exact), random.choice(("sum", "avg"))
        test = _test(random, random.choice(names))
        drawn += [
            f"{word}({number})", f"{word}({number})", f"{word}({number})",
            f"{word}(CASE WHEN {test} THEN {number} END)",
            f"{word}({number}) FILTER (WHERE {test})",
            f"{word}({number} * 2)", f"round({word}({number}), 1)",
            f"sum(CASE WHEN {test} THEN 1 ELSE 0 END)", f"{word}({number}) / count(*)",
        ]  # fmt: skip
    return random.choice(drawn)


def _where(random: Random, names: Sequence[Name]) -> str:
    if random.random() < 0.2:
        return condition(random, list(names), 1)
    parts = [_test(random, random.choice(names)) for _ in range(random.randint(1, 2))]
    return random.choice((" AND ", " OR ")).join(parts)


def _test(random: Random, name: Name) -> str:
    """A comparison of a column with a constant."""
    constant = random.choice(VALUES[name.type])
    if name.type == "jsonb" or random.random() < 0.15:
        return f"{name.text} IS {random.choice(('NULL', 'NOT NULL'))}"
    if random.random() < 0.2:
        low, high = (random.choice(VALUES[name.type]) for _ in range(2))
        return f"{name.text} BETWEEN {low} AND {high}"
    if random.random() < 0.2:
        return f"{name.text} IN ({constant}, {random.choice(VALUES[name.type])})"
    return f"{name.text} {random.choice(_SIGNS)} {constant}"
