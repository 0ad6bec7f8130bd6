"""Recommend ceilings, join groups and generated columns for a workload of queries.

Each recommendation lists its saving (estimated from row counts, bounds and the link's speed), what
the server would newly learn, and the statement that applies it. Nothing is run, and only a request
for the catalog is sent. The output ends with a script that applies all of it and needs no policy,
and with a policy for new databases.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from louver.trusted.apps import terminal
from louver.trusted.apps.cli_connection import opened
from louver.trusted.client.inside import context_of

if TYPE_CHECKING:
    from louver.trusted.client.advice import Item, Report
    from louver.trusted.client.advised_script import Script
    from louver.trusted.planner.advisor.estimate import Estimate


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("workload", metavar="WORKLOAD.sql", help="a file of queries; - is stdin")


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from louver.trusted.apps.commands.sql import read
    from louver.trusted.client import advice

    text = read(options.workload)
    with opened(options) as connection:
        report = advice.report(context_of(connection), text)
    advice.require_queries(report)
    if options.json:
        terminal.out_json({"ok": True, **advice.as_json(report)})
        return 0
    for line in lines(report):
        terminal.out(line)
    for number, reason in report.failed.items():
        terminal.say(f"query {number} was skipped: {reason}")
    return 0


def lines(report: Report) -> list[str]:
    """The report as text."""
    count = len(report.plans)
    text_lines = [
        f"workload  {count} {'query' if count == 1 else 'queries'}:"
        f" {_cost(report.before())} now, {_cost(report.after())} with all of this (estimated)"
    ]
    for number, (before, after) in report.plans.items():
        text_lines.append(
            f"query {number:<4}{before.plan.kind}, {_cost(before.cost)} →"
            f" {after.plan.kind}, {_cost(after.cost)}"
        )
    if not report.items:
        return [*text_lines, "", "No change would make this workload much faster."]
    for rank, item in enumerate(report.items, 1):
        text_lines += ["", *_item(rank, item)]
    if report.beside:
        text_lines += ["", "With all of this the server would also learn:"]
        text_lines += [f"   + {fact.text} [{fact.level}]" for fact in report.beside]
    return [*text_lines, *_script(report.script), "", "# policy.toml, for new databases"] + [
        report.policy
    ]


def _script(script: Script) -> list[str]:
    """The statements, complete without a policy; what drops the former tables is commented."""
    text_lines = ["", "-- applies all of this, with or without a policy:"]
    text_lines += [f"{statement};" for statement in script.statements]
    if script.last:
        text_lines += ["-- afterwards, when the rows were looked at:"]
        text_lines += [f"-- {statement};" for statement in script.last]
    return text_lines + [f"-- {note}" for note in script.notes]


def _item(rank: int, item: Item) -> list[str]:
    listed = ", ".join(str(number) for number in item.queries)
    which = "query" if len(item.queries) == 1 else "queries"
    text_lines = [terminal.styled(f"{rank}. {item.title}", "bold")]
    text_lines.append(f"   saves    {_cost(item.saving)} ({which} {listed})")
    text_lines += _listed("reveals", [f"+ {fact.text} [{fact.level}]" for fact in item.reveals])
    if not item.reveals:
        text_lines.append("   reveals  nothing new by itself")
    text_lines += _listed("warning", item.warnings)
    return text_lines + _listed("apply", item.apply)


def _listed(label: str, texts: list[str]) -> list[str]:
    return [
        f"   {label if position == 0 else '':<9}{text}"
        for position, text in enumerate(dict.fromkeys(texts))
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
