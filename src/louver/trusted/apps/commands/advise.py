"""Say which ceilings, join groups and generated columns a workload of queries wants.

Each recommendation says what the workload would save by it (estimated from row counts, bounds and
the link's speed), what the server would newly learn, and what to write. Nothing is run and nothing
is sent but the question for the catalog. The last part is a policy for tables made anew.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from louver.trusted.apps import terminal
from louver.trusted.apps.cli_connection import opened

if TYPE_CHECKING:
    from louver.trusted.client.advice import Item, Report
    from louver.trusted.planner.advisor.estimate import Estimate


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "workload", metavar="WORKLOAD.sql", help="a file of queries, as they are asked; - is stdin"
    )


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from louver.trusted.apps.commands.sql import read
    from louver.trusted.client import advice

    text = read(options.workload)
    with opened(options) as connection:
        found = advice.report(connection.context, text)
    advice.require_queries(found)
    if options.json:
        terminal.out_json({"ok": True, **advice.as_json(found)})
        return 0
    for line in lines(found):
        terminal.out(line)
    for number, said in found.failed.items():
        terminal.say(f"query {number} was left out: {said}")
    return 0


def lines(found: Report) -> list[str]:
    """The report for people."""
    count = len(found.plans)
    told = [
        f"workload  {count} {'query' if count == 1 else 'queries'}:"
        f" {_cost(found.before())} now, {_cost(found.after())} with all of this (estimated)"
    ]
    for number, (before, after) in found.plans.items():
        told.append(
            f"query {number:<4}{before.plan.kind}, {_cost(before.cost)} →"
            f" {after.plan.kind}, {_cost(after.cost)}"
        )
    if not found.items:
        return [*told, "", "Nothing that could be changed would make it much faster."]
    for place, item in enumerate(found.items, 1):
        told += ["", *_item(place, item)]
    if found.beside:
        told += ["", "With all of this the server would also learn:"]
        told += [f"   + {fact.text} [{fact.level}]" for fact in found.beside]
    for label, statements in found.remake.items():
        told += ["", f"-- {label} is made anew, under the policy below:"]
        told += [f"{statement};" for statement in statements]
    return [*told, "", "# policy.toml", found.policy]


def _item(place: int, item: Item) -> list[str]:
    listed = ", ".join(str(number) for number in item.queries)
    which = "query" if len(item.queries) == 1 else "queries"
    told = [terminal.styled(f"{place}. {item.title}", "bold")]
    told.append(f"   saves    {_cost(item.saving)} ({which} {listed})")
    told += _listed("reveals", [f"+ {fact.text} [{fact.level}]" for fact in item.reveals])
    if not item.reveals:
        told.append("   reveals  nothing new of its own")
    told += _listed("warning", item.warnings)
    return told + _listed("apply", item.apply)


def _listed(label: str, texts: list[str]) -> list[str]:
    return [
        f"   {label if place == 0 else '':<9}{text}"
        for place, text in enumerate(dict.fromkeys(texts))
    ]


def _cost(cost: Estimate) -> str:
    seconds = f"{cost.seconds:.3g} s" if abs(cost.seconds) < 100 else f"{cost.seconds:,.0f} s"
    return f"{seconds}, {_size(cost.sent_bytes)}, {cost.opened_rows:,.0f} rows opened"


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if abs(size) < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
