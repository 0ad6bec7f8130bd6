"""The public face: every public name of the module, the connection, the cursor and the relation,
with its signature, is the one in `public_face.txt`. `python -m tests.client.test_public_face`
writes that file anew; what it changes is a change of the interface, and belongs in CHANGELOG.md.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import louver
from tests.client.harness import connection

RECORD = Path(__file__).with_name("public_face.txt")
CLASSES = (louver.Connection, louver.Cursor, louver.Relation, louver.KeyRing)


def face() -> list[str]:
    """One line for each public name."""
    lines = [f"louver.{name}" for name in dir(louver)]
    lines.append(f"louver.connect{inspect.signature(louver.connect)}")
    for cls in CLASSES:
        for name in dir(cls):
            if not name.startswith("_"):
                value = inspect.getattr_static(cls, name)
                lines.append(f"{cls.__name__}.{name}{_signature(value)}")
    return lines


def _signature(value: object) -> str:
    if isinstance(value, property):
        return ""
    function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    if isinstance(function, type) or not callable(function):
        return ""
    return str(inspect.signature(function))


def test_the_public_face_is_the_recorded_one() -> None:
    assert face() == RECORD.read_text("utf-8").splitlines()


def test_objects_have_no_other_public_attributes() -> None:
    con = connection()
    for item in (con, con.cursor(), con.sql("SELECT 1")):
        public = {name for name in vars(item) if not name.startswith("_")}
        assert public <= {"arraysize"}, "PEP 249 names that one"
    con.close()


def test_everything_public_has_a_docstring() -> None:
    for cls in CLASSES:
        for name in dir(cls):
            value = inspect.getattr_static(cls, name)
            if not name.startswith("_") and (callable(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{cls.__name__}.{name}"


if __name__ == "__main__":
    RECORD.write_text("\n".join(face()) + "\n", "utf-8")
