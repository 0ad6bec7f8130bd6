"""What a statement comes to before it runs: what each server is asked, what is opened, what runs
locally, and what all this shows.
"""

from __future__ import annotations

from dataclasses import dataclass

from louver.trusted.planner.ir.nodes import Opening
from louver.trusted.planner.ir.remote import RemoteQuery
from louver.trusted.vault.facts import Fact


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The plan of one SELECT.

    ``kind``: ``whole`` (the server aggregates), ``rows`` (the server joins and filters), ``scans``
    (the server filters table by table), ``blocks`` (the server aggregates parts), ``home`` (no
    table of the server is read). ``home_sql`` is what the local DuckDB runs over the opened
    answers; empty where it is the user's own text. ``reads_secret`` tells whether any encrypted
    column is read. ``opens`` are layers that the server must have opened first. ``replacements``
    say which tokens (first, last) of the user's own text are replaced locally, and by what.
    ``fixed`` are the numbers of the statement, by position, that the plan holds for only. ``alone``
    is the name by which what runs locally calls the rows of the one answer, where it reads nothing
    else and takes them row by row; "" where it may do more. ``once`` is the same where it may take
    several together, but reads them once. ``columns`` are those of the one answer that make the
    result, where its rows need no more than to be decided again by the codes that they were chosen
    by.
    """

    kind: str
    remotes: tuple[RemoteQuery, ...]
    home_sql: str = ""
    leaks: tuple[Fact, ...] = ()
    opens: tuple[Opening, ...] = ()
    replacements: tuple[tuple[int, int, str], ...] = ()
    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    fixed: tuple[tuple[int, str], ...] = ()
    reads_secret: bool = False
    alone: str = ""
    once: str = ""
    columns: tuple[str, ...] = ()


Stretch = tuple[int, int]
"""Tokens of a statement, from the first to before the last; (0, 0) for none."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """How a change of one table decides each row by itself, by stretches of its own text.

    ``alias`` is what the text calls the table where that is not its name. Of the columns ``sets``
    each gets its expression in its type. ``reads`` are the columns that the text names. ``checks``
    are conditions of the table on the new rows, which read ``checked``; what does not meet one, or
    is NULL in one of ``required``, is for the dry run to refuse. ``by_codes`` tells whether the
    condition of the text compares codes with constants only, as the server did.
    """

    deletes: bool
    alias: str
    where: Stretch
    sets: tuple[tuple[str, Stretch], ...]
    returning: Stretch
    reads: frozenset[str]
    required: frozenset[str] = frozenset()
    checks: tuple[str, ...] = ()
    checked: frozenset[str] = frozenset()
    by_codes: bool = False


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """The plan of one UPDATE, DELETE, MERGE or INSERT with a way out for conflicts; tables by id.

    ``target`` is the table that it changes, ``read`` are the tables that its text reads beside.
    The dry run holds the rows of all of ``rehearsed``, parents before their children: the target,
    what is read, what refers to the target and what these refer to. ``names`` are all folded names
    that the text reaches through views and macros, temporary tables among them. ``rows`` is how the
    rows are read, as one query per table of ``rehearsed``; None where all of them are. Temporary
    tables then take the places of what is only read. ``stand_in`` is the
    text of a temporary table that takes the target's place in the dry run, without what the change
    cannot break; "" where it is the target itself. ``each`` tells how the rows are decided one by
    one where no dry run need be made of them; None where it must. ``all_met``: a row that gets the
    values that it has is written anew too.
    """

    target: int
    read: tuple[int, ...]
    rehearsed: tuple[int, ...]
    names: frozenset[str]
    rows: Plan | None = None
    stand_in: str = ""
    free: Stretch = (0, 0)
    each: RowChange | None = None
    all_met: bool = False
