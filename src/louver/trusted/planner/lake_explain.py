"""How a question to a lake is written for people: which columns of which files.

What is sent is a condition over tokens (spec/prune.md) and requests for bytes of files; this is
their text, under the pseudonyms that the server knows.
"""

from __future__ import annotations

from collections.abc import Sequence

from louver.trusted.planner.ir import SEALED, Code, Node, RemoteQuery, Sql


def written(remote: RemoteQuery) -> str:
    """The question of a plan; ``$n`` stands for the n-th token."""
    tokens = 0

    def condition(node: Node) -> str:
        nonlocal tokens
        if isinstance(node, Code):
            tokens += 1
            return f"c{node.column} IN ${tokens}"
        if not isinstance(node, Sql):
            raise TypeError(type(node).__name__)
        text = node.text
        for index, child in enumerate(node.children):
            text = text.replace(f"⟦{index}⟧", condition(child))
        return text

    conditions = [condition(node) for node in remote.where]
    return text_of(remote.sources[0].table, column_ids(remote), " AND ".join(conditions))


def text_of(table: int, columns: Sequence[int], condition: str) -> str:
    """READ columns FROM table [WHERE condition]; table and columns by id."""
    listed = ", ".join(f"c{number}" for number in columns) or "no column"
    where = f" WHERE {condition}" if condition else ""
    return f"READ {listed} FROM t{table}{where}"


def column_ids(remote: RemoteQuery) -> list[int]:
    """The columns that are fetched, by id."""
    return [out.column for out in remote.outputs if out.kind == SEALED]
