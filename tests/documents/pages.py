"""The blocks of a page of documentation that are executed, and the output that it states.

A fenced block `console` has commands after `$ ` (their further lines after `> `), and below each
the output of stdout and stderr.
A block `python` or `sql` is followed by a block without a language, which is what it prints; a
block that prints nothing is followed by none. A block with a second word, as `csv staff.csv`, is
the content of the file of that name. Blocks in an HTML comment are executed too; a reader does not
see them. A block `text` is not executed, nor is `sh`, which may contain installation commands only.

In stated output `…` stands for the rest of a word or line, and a line `…` for any lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

EXECUTED = ("console", "python", "sql")
WILDCARD = "…"
_PROMPT = "$ "
_CONTINUED = "> "
#: Longer lines of output are cut when they are recorded.
_WIDTH = 98
_FENCE = re.compile(r"^(\s*)```(\S*)(?: (\S+))?$")


@dataclass(slots=True)
class Step:
    """Something to execute, and where in the page its output is stated."""

    line: int
    #: `console`, `python`, `sql`, or `file`.
    kind: str
    text: str
    #: The name of a file.
    name: str = ""
    expected: list[str] = field(default_factory=list)
    #: The lines of the output in the page, from 0; an empty range where nothing is stated.
    output: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: the number of its first line after the fence, from 0, and its lines."""

    start: int
    language: str
    name: str
    lines: list[str]
    indent: str

    @property
    def end(self) -> int:
        """The line of the closing fence."""
        return self.start + len(self.lines)


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a page."""
    lines, results = text.splitlines(), []
    position = 0
    while position < len(lines):
        match = _FENCE.match(lines[position])
        position += 1
        if match is None:
            continue
        start = position
        while lines[position].strip() != "```":
            position += 1
        body = [line.removeprefix(match[1]) for line in lines[start:position]]
        results.append(Block(start, match[2], match[3] or "", body, match[1]))
        position += 1
    return results


def steps(text: str) -> list[Step]:
    """Everything that a page executes, in its order."""
    lines, listed = text.splitlines(), blocks(text)
    results: list[Step] = []
    following = {a.start: b for a, b in pairwise(listed) if not b.language and _near(lines, a, b)}
    for block in listed:
        if block.name:
            text = "".join(f"{line}\n" for line in block.lines)
            results.append(Step(block.start + 1, "file", text, block.name))
        elif block.language == "console":
            results += _commands(block)
        elif block.language in EXECUTED:
            step = Step(block.start + 1, block.language, "\n".join(block.lines) + "\n")
            output = following.get(block.start)
            if output is not None:
                step.expected = output.lines
                step.output = (output.start, output.end)
            results.append(step)
    return results


def outputs(text: str) -> set[int]:
    """The first lines of blocks that state the output of the block before them."""
    return {step.output[0] for step in steps(text) if step.kind != "console" and step.output[1]}


def _near(lines: list[str], block: Block, following: Block) -> bool:
    """Whether only blank lines separate two blocks."""
    return not any(line.strip() for line in lines[block.end + 1 : following.start - 1])


def _commands(block: Block) -> Iterator[Step]:
    step: Step | None = None
    for number, line in enumerate(block.lines, block.start):
        if step is not None and line.startswith(_CONTINUED) and not step.expected:
            step.text += line.removeprefix(_CONTINUED) + "\n"
            step.output = (number + 1, number + 1)
        elif line.startswith(_PROMPT):
            if step is not None:
                yield step
            text = line.removeprefix(_PROMPT) + "\n"
            step = Step(number + 1, "console", text, output=(number + 1, number + 1))
        elif step is not None:
            step.expected.append(line)
            step.output = (step.output[0], number + 1)
        else:
            raise ValueError(f"line {number + 1}: output before the first command")
    if step is not None:
        yield step


def matches(expected: list[str], actual: list[str]) -> bool:
    """Whether output is what a page states."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == WILDCARD else f"{_line_pattern(line)}\n"
        for line in expected
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in actual)) is not None


def _line_pattern(line: str) -> str:
    return r".*?".join(re.escape(part) for part in line.split(WILDCARD))


#: What differs from run to run, and is written as a wildcard when output is recorded.
_VOLATILE = (
    (re.compile(r"\b[\d.]+ (ms|s)\b"), rf"{WILDCARD} \1"),
    (re.compile(r"\b([a-z])_[0-9a-f]{12}\b"), rf"\1_{WILDCARD}"),
    (re.compile(r"\b[0-9a-f]{16,}\b"), WILDCARD),
    (re.compile(r"\bt\d{7,}\b"), f"t{WILDCARD}"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b"), WILDCARD),
    (re.compile(r"\b(?:[0-9a-f]{2} ){3}[0-9a-f ]*.*"), WILDCARD),
)


def recorded(expected: list[str], actual: list[str]) -> list[str]:
    """The output to state: lines that still match stay as they are, with their wildcards."""
    stated = [line for line in expected if WILDCARD in line and line.strip() != WILDCARD]
    results = []
    for line in actual:
        same = next((old for old in stated if re.fullmatch(_line_pattern(old), line)), None)
        if same is None:
            for pattern, replacement in _VOLATILE:
                line = pattern.sub(replacement, line)
            if len(line) > _WIDTH:
                line = line[: _WIDTH - 1].rstrip() + WILDCARD
        results.append(line if same is None else same)
    return results


def write(path: Path, changed: dict[int, list[str]]) -> None:
    """Replace the output of steps, given by the line of each, in a page."""
    text = path.read_text("utf-8")
    lines, by_line = text.splitlines(), {step.line: step for step in steps(text)}
    for number, output in sorted(changed.items(), reverse=True):
        step = by_line[number]
        start, end = step.output
        block = next(block for block in blocks(text) if block.start < number <= block.end)
        if not end:
            start = end = block.end + 1
            output = ["", "```", *output, "```"]
        lines[start:end] = [f"{block.indent}{line}".rstrip() for line in output]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
