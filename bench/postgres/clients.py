"""Clients that work on one table at once, each a thread with its own connection."""

from __future__ import annotations

from typing import Any

from bench.oltp import together
from bench.oltp.statements import BATCHED
from bench.postgres import sides

FORMS = tuple(form for form in together.FORMS if BATCHED not in together.FORMS[form])


def measured(profile: str, clients: int, rows: int, seconds: float) -> dict[str, Any]:
    """Statements a second, their median and p99 in milliseconds, and errors by code, of each form
    and side.
    """
    results: dict[str, Any] = {}
    with sides.opened(profile) as pair:
        pair.table("t0", rows)
        pair.plain.execute("ANALYZE")
        for form in FORMS:
            results[form] = [
                together.at_once(pair, side, form, clients, rows, seconds) for side in pair.both()
            ]
    return results
