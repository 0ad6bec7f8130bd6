"""The reference page of the command line, generated from the parser."""

from __future__ import annotations

import argparse
import textwrap

from louver.trusted.apps import cli
from louver.trusted.apps.commands import NAMES
from louver.trusted.apps.shell.words import WORDS

_INTRODUCTION = """\
`louver "select ..."` is short for `louver sql "select ..."`. Data goes to stdout, messages go to
stderr. With `--json` every answer is one line of JSON on stdout, and so is every error:
`{"ok": false, "code": ..., "error": ..., "fix": ...}`; [errors.md](errors.md) lists the codes.
Values without a JSON type are written as text, bytes as base64. Progress bars are drawn only on a
terminal. Keys are read from key files; the command line never contains a key.
"""


def page() -> str:
    """All commands with their options."""
    parser = cli.parser()
    out = ["# The command line\n", _INTRODUCTION, "## Options of every command\n"]
    out += [*_options(parser), ""]
    out += ["## Environment and exit codes\n", textwrap.indent(cli.EPILOG, "    ").rstrip() + "\n"]
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    for name in NAMES:
        out += _command(commands.choices[name])
    out.append("## The shell\n")
    out.append(
        "`louver sql` on a terminal reads statements, each up to its semicolon, and the commands "
        "below.\nIts history file stores literals of encrypted columns as `?`; see the guide.\n"
    )
    out += [f"* `{word}`: {meaning}" for word, meaning in WORDS.items()]
    return "\n".join(out) + "\n"


def _command(parser: argparse.ArgumentParser) -> list[str]:
    name = parser.prog.removeprefix("louver ")
    first, _, rest = (parser.description or "").partition("\n")
    out = [f"## louver {name}\n", f"    {_usage(parser)}\n", _wrapped(first) + "\n"]
    if rest.strip():
        out.append(rest.strip() + "\n")
    out += [*_options(parser, own=True)]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                out.append(f"\n    {_usage(sub)}\n")
                helps = {choice.dest: choice.help for choice in action._choices_actions}
                out.append(_wrapped(str(helps[sub.prog.split()[-1]]).capitalize() + ".") + "\n")
                out += _options(sub)
    if out[-1].strip():
        out.append("")
    return out


def _usage(parser: argparse.ArgumentParser) -> str:
    words = [parser.prog]
    for action in parser._actions:
        if not action.option_strings and action.help != argparse.SUPPRESS:
            word = str(action.metavar or action.dest)
            many = f"{word} ..." if action.nargs == "*" else word
            words.append(f"[{many}]" if action.nargs in ("?", "*") else many)
    return " ".join([words[0], "[options]", *words[1:]])


def _options(parser: argparse.ArgumentParser, *, own: bool = False) -> list[str]:
    """One line for each argument; with ``own`` without the options of every command."""
    shared = {"url", "keys", "profile", "policy", "json", "form"} if own else set()
    out = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
            continue
        if action.dest in shared or action.help in (None, argparse.SUPPRESS):
            continue
        names = ", ".join(f"`{name}`" for name in action.option_strings)
        value = f" {action.metavar}" if action.option_strings and action.metavar else ""
        if not names:
            names = f"`{action.metavar or action.dest}`"
        out.append(_wrapped(f"* {names}{value}: {action.help}", "  "))
    return out


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
