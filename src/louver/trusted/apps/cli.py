"""The command `louver`.

Rules of its output, all of them: data goes to stdout, talk to stderr. With ``--json`` stdout gets
one JSON object per answer, errors too, all errors of one shape. The exit code is 0 for done, 1 for
an error, 2 for a command line that was not understood, 3 for a statement refused because of
leakage, 130 after Ctrl-C. A traceback is shown only where LOUVER_DEBUG=1 asks for it. Keys come
from files, never from the command line, so no secret stands in a list of processes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from louver import __version__, coredumps, errors
from louver.names import fold
from louver.trusted.apps import terminal
from louver.trusted.apps.commands import NAMES

USAGE_EXIT = 2
INTERRUPTED_EXIT = 130
_PIPE_EXIT = 141
_VALUED = ("-u", "--url", "-k", "--keys", "--profile", "--policy")

DESCRIPTION = 'Query data on machines you do not trust. `louver "select ..."` is `louver sql`.'
EPILOG = """\
environment:
  LOUVER_URL        the database, where --url is not given
  LOUVER_KEYS       the key file, where --keys is not given
  LOUVER_STATE_DIR  where the last version seen of each database is kept
  LOUVER_CERTIFICATES, LOUVER_AUTHORIZATION
                    files: authorities to trust, and a secret for services that want one
  LOUVER_DEBUG=1    show tracebacks
  NO_COLOR          no colours

exit codes: 0 done, 1 error, 2 usage, 3 refused because of leakage, 130 interrupted
"""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are Louver's."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing, so that --json and exit codes hold for usage errors too."""
        raise errors.make("usage", detail=f"{self.prog}: {message}")


def common(parser: argparse.ArgumentParser, *, default: Any = argparse.SUPPRESS) -> None:
    """The options that every command takes, before it or after it."""
    group = parser.add_argument_group("options of every command")
    group.add_argument(
        "-u",
        "--url",
        metavar="URL",
        default=default,
        help="the database, such as duckdb:///cloud.duckdb (default: LOUVER_URL)",
    )
    group.add_argument(
        "-k", "--keys", metavar="FILE", default=default, help="the key file (default: LOUVER_KEYS)"
    )
    group.add_argument(
        "--profile",
        metavar="NAME",
        default=default,
        help="what a bare ENC means: sealed, cryptdb or sdb (default: sealed)",
    )
    group.add_argument(
        "--policy",
        metavar="FILE",
        default=default,
        help="a TOML file with ceilings and schemes per table and column",
    )
    group.add_argument(
        "--json",
        action="store_true",
        default=default or False,
        help="answers and errors as JSON, one object per line",
    )


def parser(only: str | None = None) -> Parser:
    """The parser of the whole command line; with ``only`` the details of one command alone."""
    made = Parser(
        prog="louver",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action="version", version=f"louver {__version__}")
    common(made, default=None)
    commands = made.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name in NAMES:
        module = import_module(f"louver.trusted.apps.commands.{name}")
        summary = str(module.__doc__).split("\n", 1)[0].rstrip(".")
        summary = fold(summary[0]) + summary[1:]
        sub = commands.add_parser(
            name,
            help=summary,
            description=str(module.__doc__),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if only is None or only == name:
            module.add(sub)
            common(sub)
    return made


def first_word(arguments: Sequence[str]) -> int | None:
    """The place of the first argument that is no option."""
    place = 0
    while place < len(arguments):
        word = arguments[place]
        if word == "--":
            return place + 1 if place + 1 < len(arguments) else None
        if not word.startswith("-") or word == "-":
            return place
        place += 2 if word in _VALUED else 1
    return None


def arguments_of(given: Sequence[str]) -> list[str]:
    """The command line with `sql` put in where a statement stands in the place of a command."""
    words = list(given)
    place = first_word(words)
    if place is not None and words[place] not in NAMES and any(c in words[place] for c in " ;\n("):
        words.insert(place, "sql")
    return words


def main(given: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing escapes as a traceback."""
    if given is None:
        # A process of its own: keys, and what they open, are in its memory.
        coredumps.switch_off()
    words = arguments_of(sys.argv[1:] if given is None else given)
    as_json = "--json" in words
    try:
        errors.refuse_keys(words)
        code = _run(words)
        sys.stdout.flush()
    except errors.Error as error:
        _debug()
        return terminal.fail(error, as_json)
    except KeyboardInterrupt:
        _debug()
        return terminal.interrupted(as_json)
    except BrokenPipeError:
        # The reader has gone, as `head` does. Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_EXIT
    except (RecursionError, MemoryError, OSError, UnicodeError) as error:
        _debug()
        return terminal.fail(_outer(error), as_json)
    except Exception as error:  # noqa: BLE001 - the last net: a bug is reported, not thrown
        _debug()
        # Its text could hold a value; its type and place cannot.
        return terminal.fail(errors.make("internal", detail=_where(error)), as_json)
    return code


def _run(words: list[str]) -> int:
    place = first_word(words)
    name = words[place] if place is not None and words[place] in NAMES else None
    options = parser(name).parse_args(words)
    if options.command is None:
        if sys.stdin.isatty() and not (words or os.environ.get("LOUVER_URL")):
            parser().print_help()
            return 0
        options = parser("sql").parse_args([*words, "sql"])
    options.url = options.url or os.environ.get("LOUVER_URL")
    options.keys = options.keys or os.environ.get("LOUVER_KEYS")
    module = import_module(f"louver.trusted.apps.commands.{options.command}")
    return int(module.run(options) or 0)


def _outer(error: BaseException) -> errors.Error:
    if isinstance(error, OSError):
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
        return errors.make("database.io", place=error.filename or "the data", detail=what)
    return errors.make("internal", detail=type(error).__name__)


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    file = os.path.basename(trace.tb_frame.f_code.co_filename)
    return f"{type(error).__name__} in {file}, line {trace.tb_lineno}"


def _debug() -> None:
    if os.environ.get("LOUVER_DEBUG") == "1":
        import traceback

        traceback.print_exc()


if __name__ == "__main__":
    sys.exit(main())
