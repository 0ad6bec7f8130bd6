"""Keys of two columns, and plain columns that are encrypted later."""

from __future__ import annotations

from collections.abc import Callable

from tests.worlds.schema import Col, State


def composite(cols: list[Col], parts: list[str]) -> None:
    """A key of two columns, of which the worlds have the same values or such as correspond."""
    able = [c for c in cols if not c.unique and not c.collation and c.rank]
    pair = [c for c in able if c.plain or c.universe is not None][:2]
    if len(pair) == 2:
        parts.append(f"UNIQUE ({pair[0].name}, {pair[1].name})")
        for col in pair:
            col.paired = True


def set_enc(state: State) -> tuple[str, Callable[[], None]] | None:
    """A plain column is encrypted; its values stay the same ones in both worlds, and those of
    others may come to them, so that their order must not show.
    """
    known = [
        (t, c) for t in state.base() for c in t.cols
        if c.plain and c.universe is None and not (c.unique or c.generated or t.linked)
    ]  # fmt: skip
    if not known:
        return None
    table, col = state.dice.choice(known)
    level = state.dice.choice(("size", "access", "equality"))

    def effect() -> None:
        col.level = level

    return f"ALTER TABLE {table.name} ALTER COLUMN {col.name} SET ENC MAY REVEAL {level}", effect
