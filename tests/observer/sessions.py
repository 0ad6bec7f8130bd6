"""Sessions made by hypothesis: tables with drawn ceilings, then drawn statements."""

from __future__ import annotations

import random

from hypothesis import strategies as st

LEVELS = ("size", "access", "equality", "order")
NAMES = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus")
COLUMNS = {
    "name": "VARCHAR", "salary": "BIGINT", "born": "DATE", "rate": "DECIMAL(9,2)",
    "note": "VARCHAR", "score": "DOUBLE", "active": "BOOLEAN",
}  # fmt: skip

_CONDITIONS = (
    "name = 'Ada'", "name IN ('Ben', 'Cleo')", "name <> 'Dora'", "salary > 40000",
    "salary BETWEEN 10000 AND 30000", "salary = 20000", "born < DATE '1980-01-01'",
    "rate >= 12.5", "note LIKE 'Ada%'", "note LIKE '%room%'", "note IS NULL", "score < 0.5",
    "active", "id < 20", "id % 3 = 0 AND name = 'Emil'", "name = 'Ada' OR salary < 5000",
    "salary * 2 > 100000", "name < 'Cleo'",
)  # fmt: skip
_QUERIES = (
    "SELECT id FROM staff WHERE {condition}",
    "SELECT * FROM staff WHERE {condition}",
    "SELECT count(*), count(note), sum(salary), avg(rate) FROM staff WHERE {condition}",
    "SELECT name, count(*), sum(salary), min(born) FROM staff GROUP BY name",
    "SELECT active, max(salary), min(rate) FROM staff WHERE {condition} GROUP BY active",
    "SELECT id, salary FROM staff ORDER BY salary DESC LIMIT 3",
    "SELECT id FROM staff WHERE {condition} ORDER BY born, id LIMIT 4",
    "SELECT count(DISTINCT name), min(salary), max(born) FROM staff",
    "SELECT DISTINCT name FROM staff",
    "SELECT s.id, d.budget FROM staff s JOIN dept d ON s.name = d.head WHERE d.budget > 5",
    "SELECT count(*) FROM staff s JOIN dept d ON s.salary = d.budget",
    "SELECT id FROM staff WHERE name IN (SELECT head FROM dept)",
    "SELECT d.head, sum(s.salary) FROM staff s JOIN dept d ON s.name = d.head GROUP BY d.head",
    "SELECT a.id FROM staff a JOIN staff b ON a.name = b.name AND a.salary < b.salary",
    "SELECT head FROM dept UNION SELECT name FROM staff WHERE {condition}",
    "SELECT id, rank() OVER (ORDER BY salary) FROM staff WHERE {condition}",
)  # fmt: skip
_CHANGES = (
    "UPDATE staff SET salary = salary + 7 WHERE {condition}",
    "UPDATE staff SET name = 'Hal', note = NULL WHERE {condition}",
    "UPDATE dept SET budget = 20000 WHERE head = 'Ada'",
    "DELETE FROM staff WHERE {condition}",
    "DELETE FROM dept WHERE budget < 3",
    "ALTER TABLE staff ALTER COLUMN {column} MAY REVEAL {level}",
    "ALTER TABLE dept ALTER COLUMN head MAY REVEAL {level}",
    "ALTER TABLE staff RENAME COLUMN {column} TO {column}_2; "
    "ALTER TABLE staff RENAME COLUMN {column}_2 TO {column}",
    "BEGIN", "COMMIT", "ROLLBACK", "EXPLAIN (LEAKAGE) SELECT id FROM staff WHERE {condition}",
)  # fmt: skip


def insert(count: int, seed: int) -> str:
    """Rows of staff."""
    dice = random.Random(seed)
    rows = []
    for _ in range(count):
        name = dice.choice(NAMES)
        note = "NULL" if dice.random() < 0.15 else f"'{name} of room {dice.randrange(9)}'"
        salary = dice.choice([20_000, dice.randrange(1_000, 90_000)])
        born = f"DATE '{dice.randrange(1950, 2005)}-{dice.randrange(1, 13):02}-11'"
        active = dice.choice(["TRUE", "FALSE", "NULL"])
        rows.append(
            f"({dice.randrange(1000)}, '{name}', {salary}, {born}, "
            f"{dice.randrange(500, 9000) / 100:.2f}, {note}, {dice.random():.3f}, {active})"
        )
    return f"INSERT INTO staff VALUES {', '.join(rows)}"


@st.composite
def sessions(draw: st.DrawFn) -> list[str]:
    """A list of statements; some of them may be refused, none may tell more than the ledger."""
    columns = []
    for name, type_ in COLUMNS.items():
        level = draw(st.sampled_from(("", *LEVELS)), label=f"ceiling of {name}")
        masked = draw(st.sampled_from(("", " WITH (sum = 'masked')")), label=f"sums of {name}")
        columns.append(f"{name} {type_} ENC{f' MAY REVEAL {level}' if level else ''}{masked}")
    budget = draw(st.sampled_from(("", " WITH (sum = 'masked')")))
    head = draw(st.sampled_from(("", " MAY REVEAL equality", " MAY REVEAL access")))
    statements = [
        f"CREATE TABLE staff (id INT, {', '.join(columns)})",
        f"CREATE TABLE dept (head VARCHAR ENC{head}, budget BIGINT ENC{budget})",
        insert(40, draw(st.integers(0, 9))),
        "INSERT INTO dept VALUES ('Ada', 20000), ('Ben', 7), ('Zoe', NULL), ('Ada', 2)",
    ]
    shapes = st.sampled_from((*_QUERIES, *_QUERIES, *_CHANGES, "insert"))
    for shape in draw(st.lists(shapes, min_size=4, max_size=12)):
        if shape == "insert":
            statements.append(insert(10, draw(st.integers(10, 99))))
            continue
        text = shape.format(
            condition=draw(st.sampled_from(_CONDITIONS)) if "{condition}" in shape else "",
            column=draw(st.sampled_from(tuple(COLUMNS))) if "{column}" in shape else "",
            level=draw(st.sampled_from(LEVELS)) if "{level}" in shape else "",
        )
        statements += text.split("; ")
    return statements
