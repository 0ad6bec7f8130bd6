"""The command `louver`.

Data goes to stdout, messages go to stderr. With ``--json`` stdout receives one JSON object per
answer; errors are JSON objects too, all of one shape. The exit code is 0 for success, 1 for an
error, 2 for a usage error, 3 for a statement refused because of leakage, 130 after Ctrl-C. A
traceback is shown only if LOUVER_DEBUG=1 is set. Keys are read from files, never from the command
line, so no secret appears in a process list.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from louver import __version__, coredumps, errors, extras
from louver.names import fold, keyword
from louver.trusted.apps import formats, startup, terminal
from louver.trusted.apps.commands import NAMES, TABLES

USAGE_EXIT = 2
INTERRUPTED_EXIT = 130
_PIPE_EXIT = 141
#: First words of statements that a user may give without quotes, and those that end a transaction.
_STATEMENTS = frozenset(
    "ABORT ALTER ANALYZE ATTACH BEGIN CALL COMMENT COMMIT COPY CREATE DEALLOCATE DELETE"
    " DESC DESCRIBE DETACH DROP END EXECUTE FROM IMPORT INSERT MERGE PIVOT PRAGMA PREPARE RESET"
    " ROLLBACK SELECT SET SHOW START SUMMARIZE TABLE TRUNCATE UNPIVOT UPDATE USE VACUUM VALUES"
    " WITH".split()
)
_ENDINGS = ("ABORT", "COMMIT", "END", "ROLLBACK")
_VALUED = ("-u", "--url", "-k", "--keys", "--profile", "--policy", "--language")
#: Options of `louver sql` that need no command before them.
_OF_SQL = ("-c", "--command", "-f", "--file", "--rows")

DESCRIPTION = 'Query data on machines you do not trust. `louver "select ..."` is `louver sql`.'
EPILOG = """\
environment:
  LOUVER_URL        the database, if --url is not given
  LOUVER_KEYS       the key file, if --keys is not given
  LOUVER_STATE_DIR  the directory that records the last version seen of each database
  LOUVER_CERTIFICATES, LOUVER_AUTHORIZATION
                    files: trusted authorities, and a secret for services that require one
  LOUVER_DEBUG=1    show tracebacks
  NO_COLOR          no colours

exit codes: 0 success, 1 error, 2 usage, 3 refused because of leakage, 130 interrupted
"""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises Louver's errors."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing, so that --json and exit codes hold for usage errors too."""
        raise errors.make("usage", detail=f"{self.prog}: {message}".removeprefix("louver: "))


def common(parser: argparse.ArgumentParser, *, default: Any = argparse.SUPPRESS) -> None:
    """Add the options of every command; they may precede or follow the command."""
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
        help="the meaning of ENC without USING: sealed (default), sdb, or cryptdb, which is onion",
    )
    group.add_argument(
        "--policy",
        metavar="FILE",
        default=default,
        help="a TOML file of ceilings and schemes by table and column",
    )
    group.add_argument(
        "--language",
        metavar="NAME",
        default=default,
        help="the SQL of a database that is created: duckdb, or postgres, as behind postgresql://",
    )
    group.add_argument(
        "--read-only",
        action="store_true",
        default=default or False,
        help="change nothing, and refuse what would reveal something that is not in the ledger",
    )
    group.add_argument(
        "--json",
        action="store_true",
        default=default or False,
        help="answers and errors as JSON, one object per line",
    )
    formats.add(parser, default=default)


def parser(only: str | None = None) -> Parser:
    """The parser of the whole command line, or of one command only, which loads sooner."""
    root = Parser(
        prog="louver",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=f"louver {__version__}")
    common(root, default=None)
    commands = root.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name in NAMES if only is None else (only,):
        module = import_module(f"louver.trusted.apps.commands.{name}")
        summary = str(module.__doc__).split("\n", 1)[0].rstrip(".")
        summary = fold(summary[0]) + summary[1:]
        sub = commands.add_parser(
            name,
            help=summary,
            description=str(module.__doc__),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add(sub)
        common(sub)
    return root


def first_word(arguments: Sequence[str]) -> int | None:
    """The position of the first argument that is not an option."""
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word == "--":
            return position + 1 if position + 1 < len(arguments) else None
        if not word.startswith("-") or word == "-":
            return position
        position += 2 if word in (*_VALUED, *_OF_SQL) else 1
    return None


def arguments_of(given: Sequence[str]) -> list[str]:
    """The command line, with `sql` inserted if a statement takes the position of a command."""
    words = list(given)
    position = first_word(words)
    if position is not None:
        word = words[position]
        if word not in NAMES and any(character in word for character in " ;\n(\\"):
            words.insert(position, "sql")
    elif any(word in _OF_SQL for word in words):
        words.insert(0, "sql")
    return words


def require_command(word: str) -> None:
    """Raise for a word that is not a command, and say what it can be instead."""
    if keyword(word) in _STATEMENTS:
        detail = f"{word} is an SQL statement, not a command: run it with `louver sql {word}`"
        if keyword(word) in _ENDINGS:
            detail += ", in one line with its BEGIN, as each command has a connection of its own"
        raise errors.make("usage", detail=detail)
    if word not in NAMES:
        known = [*NAMES, *map(fold, _STATEMENTS)]
        raise errors.make("usage", detail=unknown(f"{word} is not a command", word, known))


def unknown(detail: str, word: str, known: Sequence[str]) -> str:
    """A message about an unknown word, with the known word that it resembles."""
    import difflib

    close = difflib.get_close_matches(fold(word), known, n=1)
    return f"{detail}; did you mean {close[0]}" if close else detail


def main(given: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; no exception leaves this function.

    Without arguments it runs those of the process, and ends the process.
    """
    if given is None:
        # The process is ours alone: its memory will hold keys and plaintext.
        coredumps.switch_off()
        startup.hide_data_frames()
        startup.leave(_guarded(sys.argv[1:]))
    return _guarded(given)


def _guarded(given: Sequence[str]) -> int:
    """Run one command and report its error."""
    as_json = "--json" in given
    try:
        errors.refuse_keys(given)
        code = _run(arguments_of(given))
        sys.stdout.flush()
    except errors.Error as error:
        _debug()
        return terminal.fail(error, as_json)
    except KeyboardInterrupt:
        _debug()
        return terminal.interrupted(as_json)
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does. Python would fail when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_EXIT
    except ModuleNotFoundError as error:
        _debug()
        return terminal.fail(extras.missing(str(error.name)), as_json)
    except (RecursionError, MemoryError, OSError, UnicodeError) as error:
        _debug()
        return terminal.fail(_outer(error), as_json)
    except Exception as error:  # noqa: BLE001 - a bug is reported as an error, not a traceback
        _debug()
        # The message could contain a value; type and line cannot.
        return terminal.fail(errors.make("internal", detail=_where(error)), as_json)
    return code


def _run(words: list[str]) -> int:
    position = first_word(words)
    name = None if position is None else words[position]
    if name is not None:
        require_command(name)
    if name is None:
        options = parser().parse_args(words)
    else:
        with startup.without_collection():
            options = parser(name).parse_args(words)
    if options.command is None:
        if sys.stdin.isatty() and not (words or os.environ.get("LOUVER_URL")):
            parser().print_help()
            return 0
        options = parser("sql").parse_args([*words, "sql"])
    if options.form and options.json:
        raise errors.make("usage", detail=f"--{options.form} and --json exclude each other")
    if options.form and options.command not in TABLES:
        detail = f"louver {options.command} does not print tables, so --{options.form} has no use"
        raise errors.make("usage", detail=detail)
    options.url = options.url or os.environ.get("LOUVER_URL")
    options.keys = options.keys or os.environ.get("LOUVER_KEYS")
    module = import_module(f"louver.trusted.apps.commands.{options.command}")
    return int(module.run(options) or 0)


def _outer(error: BaseException) -> errors.Error:
    if isinstance(error, OSError):
        detail = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
        return errors.make("database.io", place=error.filename or "the data", detail=detail)
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
