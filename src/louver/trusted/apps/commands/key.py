"""Create a key file, or show the public id of one.

A key file is one line of text with a checksum, readable only by its owner (mode 0600). It decrypts
all of your data, and without it the data is lost: store a copy with your passwords.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from louver.trusted.apps import terminal


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    new = actions.add_parser("new", help="create a key file; never overwrites a file")
    new.add_argument("file", metavar="FILE", help="the path of the new file")
    new.add_argument(
        "--comment",
        default="",
        metavar="TEXT",
        help="a comment written into the file; not secret",
    )
    show = actions.add_parser("show", help="print the public id; never the key")
    show.add_argument("file", metavar="FILE", help="the key file")
    for sub in (new, show):
        sub.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="the answer as JSON"
        )


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from louver.trusted.client.connect import make_keys, open_keys

    path = str(Path(options.file).expanduser())
    if options.action == "new":
        key_id = make_keys(path, options.comment)
        terminal.say(f"created {path}; store a copy safely: without it the data is lost")
    else:
        key_id = open_keys(path).key_id
    if options.json:
        terminal.out_json({"ok": True, "key_id": key_id, "file": path})
    else:
        terminal.out(key_id)
    return 0
