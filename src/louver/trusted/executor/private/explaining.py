"""EXPLAIN of a private question: what each provider sees, and the cost."""

from __future__ import annotations

import json
from dataclasses import asdict

from louver import errors
from louver.trusted.executor import explain_leakage, show
from louver.trusted.executor.private import asking
from louver.trusted.executor.private.context import ProviderContext
from louver.trusted.planner.private import cost as costs
from louver.trusted.planner.private import describe
from louver.trusted.planner.private.question import Question


def explained(context: ProviderContext, question: Question, *, leakage: bool, form: str) -> str:
    """What is private, what is public, the protocol and the cost. Nothing is sent except, for the
    sizes, the public shape, if it was already prepared.
    """
    if form not in show.FORMATS:
        known = ", ".join(show.FORMATS)
        raise errors.make("setting.value", name="FORMAT", value=form, known=known)
    chosen = asking.chosen(context, question)
    prepared = context.fleet.is_prepared(chosen.shape)
    facts = asking.facts(context, question, chosen.shape)
    new = context.ledger.new(facts)
    protocol = chosen.shape.protocol
    cost = asking.cost_of(context, question, chosen.shape)
    if form == "json":
        body: dict[str, object] = {
            "class": str(question.condition), "protocol": str(protocol),
            "private": list(question.private), "public": list(question.public),
            "prepared": prepared is not None, "home": chosen.finish, **asdict(cost),
        }  # fmt: skip
        if leakage:
            body["reveals"] = {
                "new": [explain_leakage.fact_json(fact) for fact in new],
                "known": [explain_leakage.fact_json(fact) for fact in facts if fact not in new],
            }
        return json.dumps(body, indent=2)
    if form == "mermaid":
        return _mermaid(str(protocol), describe.statements(chosen.shape, context.fleet.parties, 0))
    lines = [
        f"protocol {protocol}, with {context.fleet.parties} providers: a condition of class "
        f"{question.condition}"
    ]
    lines += [f"private  {line}" for line in question.private] or ["private  nothing"]
    lines += [f"public   {line}" for line in question.public]
    bound = "" if prepared else "at most (the shape is not prepared yet): "
    lines.append(f"cost     {bound}{costs.words(cost, asking.link_of(context))}")
    lines.append(f"home     {chosen.finish}")
    if leakage:
        lines += [f"reveals  {fact.text} [{fact.level}]" for fact in new] or [
            "reveals  nothing new: a question of this shape was asked before"
        ]
    return "\n".join(lines)


def _mermaid(protocol: str, public: list[str]) -> str:
    lines = ["sequenceDiagram", "  participant you"]
    for number, _ in enumerate(public, 1):
        lines.append(f"  participant p{number} as provider {number}")
    for number, _ in enumerate(public, 1):
        lines.append(f"  you->>p{number}: shape and share {number} ({protocol})")
        lines.append(f"  p{number}-->>you: part {number}")
    return "\n".join([*lines, "  note over you: parts are joined, verified and finished"])
