"""EXPLAIN: the plan for people, and what it would newly show."""

from __future__ import annotations

from collections.abc import Sequence

from louver.trusted.planner.ir import SEALED, Plan, RemoteQuery

_KINDS = {
    "whole": "the server filters, joins and aggregates",
    "rows": "the server filters and joins; the rest is finished locally",
    "blocks": "the server aggregates parts of the query; the rest is finished locally",
    "scans": "the server sends the tables' rows; the query is finished locally",
    "home": "nothing is asked of the server",
}


def explain(
    plan: Plan,
    remote_sql: Sequence[str],
    home_sql: str,
    new: Sequence[str] | None = None,
    paid: Sequence[str] = (),
    layers: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> str:
    """The plan as text; with ``new`` also what it would reveal, beside what is known already, and
    of what to be warned. ``layers`` are those that must be opened first.
    """
    lines = [f"split    {plan.kind}: {_KINDS[plan.kind]}"]
    lines += [f"opens    {layer}" for layer in layers]
    for number, sql in enumerate(remote_sql, 1):
        lines.append(_block(f"server {number}", sql))
    lines += [f"open     {_opened(remote)}" for remote in plan.remotes]
    lines.append(_block("home", home_sql))
    if new is not None:
        lines += leakage(new, paid, warnings)
    return "\n".join(line.rstrip() for line in lines)


def leakage(new: Sequence[str], paid: Sequence[str], warnings: Sequence[str]) -> list[str]:
    """What a statement would reveal, what of that is known already, and of what to be warned."""
    lines = ["reveals" if new else "reveals  nothing new"]
    lines += [f"         + {text}" for text in new]
    lines += [f"         = {text} (known already)" for text in paid]
    return lines + [f"warning  {text}" for text in warnings]


def _opened(remote: RemoteQuery) -> str:
    """Which columns are opened, of how many rows."""
    if remote.lookup is not None and remote.lookup.rest is not None:
        return f"{_opened(remote.lookup.first)}; then {_opened(remote.lookup.rest)}"
    opened = [o for o in remote.outputs if o.kind in (SEALED, "share", "average")]
    shares = sum(o.kind == "share" for o in opened)
    parts = f" ({_counted(shares, 'share')})" if shares else ""
    return f"{_counted(len(opened), 'column')}{parts}{_expected(remote)}"


def _expected(remote: RemoteQuery) -> str:
    """How large an answer is expected to be, where the planner made a guess."""
    if not remote.width:
        return ""
    rows = _counted(round(remote.rows), "row")
    return f" of about {rows}, {_bytes(remote.rows * remote.width)}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _bytes(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def mermaid(remote_sql: Sequence[str], home_sql: str, layers: Sequence[str] = ()) -> str:
    """The plan as a Mermaid flow chart."""
    lines = ["flowchart LR"]
    for number, layer in enumerate(layers, 1):
        lines.append(f'  layer{number}["opens {_label(layer)}"] --> server1')
    for number, sql in enumerate(remote_sql, 1):
        lines.append(f'  server{number}["server: {_label(sql)}"] --> open{number}["open"] --> home')
    lines.append(f'  home["home: {_label(home_sql)}"] --> answer')
    return "\n".join(lines)


def _label(sql: str) -> str:
    return " ".join(sql.split()).replace('"', "'")[:120]


def _block(label: str, sql: str) -> str:
    first, *rest = sql.splitlines() or [""]
    return "\n".join([f"{label:<9}{first}", *(f"         {line}" for line in rest)])
