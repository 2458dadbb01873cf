"""The tables, the database behind them, and its failures as sentences. SQLAlchemy is imported here only, when a store is opened.

JSON is kept as text and parsed by the reader, and `misfits` says what else in a row cannot be what was written: one damaged row then
costs that row, not the query.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from kernelwright.core.errors import StoreError

SCHEMA = 1
BUSY_SECONDS = 60
"""How long one process waits for another's write. Writes take milliseconds; a busy machine or a slow disk may take seconds."""

metadata = sa.MetaData()

about = sa.Table("about", metadata, sa.Column("name", sa.String(32), primary_key=True), sa.Column("value", sa.Text))

memos = sa.Table(
    "memos",
    metadata,
    sa.Column("kind", sa.String(32), primary_key=True),
    sa.Column("key", sa.String(128), primary_key=True),
    sa.Column("content", sa.String(64), nullable=False),
    sa.Column("facts", sa.Text, nullable=False),
    sa.Column("used", sa.Float, nullable=False),
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("job", sa.Text, nullable=False),
    sa.Column("status", sa.String(32), nullable=False),
    sa.Column("best", sa.String(64)),
    sa.Column("owner", sa.String(200), nullable=False),
    sa.Column("started", sa.Float, nullable=False),
    sa.Column("touched", sa.Float, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False, default=0.0),
)

touched = sa.Index("runs_touched", runs.c.touched, runs.c.status, runs.c.id)
"""Who watches a store asks several times a second what was written to; a row of `runs` holds whole files."""

steps = sa.Table(
    "steps",
    metadata,
    sa.Column("run", sa.String(64), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.String(64), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("inputs", sa.Text, nullable=False),
    sa.Column("result", sa.String(64)),
    sa.Column("facts", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)

lessons = sa.Table(
    "lessons",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False, unique=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("family", sa.String(200), nullable=False),
    sa.Column("dsl", sa.String(32), nullable=False),
    sa.Column("target", sa.String(100), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)

contents = sa.Table(
    "contents",
    metadata,
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Column("used", sa.Float, nullable=False),
)
"""Used only where the store is a database URL and has no folder beside it."""


class Database:
    """One engine, with transactions that wait for each other instead of failing, and errors that a user can read."""

    def __init__(self, url: str | sa.URL, title: str) -> None:
        self.title = title
        try:
            engine = sa.create_engine(url, connect_args=_connect_args(sa.make_url(url)))
        except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ImportError) as error:
            raise StoreError(f"{title}: this database cannot be opened: {_first_line(error)}") from error
        self.sqlite = engine.dialect.name == "sqlite"
        if self.sqlite:
            event.listen(engine, "connect", _sqlite_connect)
            event.listen(engine, "begin", _sqlite_begin)
        self._reading: Engine = engine
        self._writing: Engine = engine.execution_options(write=True)
        self.full_text = False
        self._prepare()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self.guard(), self._reading.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is on disk when the block ends. On SQLite it holds the write lock from its first line."""
        with self.guard(), self._writing.begin() as connection:
            yield connection

    def close(self) -> None:
        self._reading.dispose()

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Failures of the disk and the database, as one sentence each."""
        try:
            yield
        except sa.exc.IntegrityError:
            raise  # two writers of one key: the caller knows what that means
        except sa.exc.SQLAlchemyError as error:
            raise StoreError(f"{self.title}: {_sentence(error)}") from error
        except OSError as error:
            raise StoreError(f"{self.title}: {disk_sentence(error)}") from error

    def _prepare(self) -> None:
        for last in (False, True):
            try:
                with self.write() as connection:
                    metadata.create_all(connection)
                    touched.create(connection, checkfirst=True)  # of a store that an earlier version made
                    self.full_text = self.sqlite and _create_full_text(connection)
                    self._check_version(connection)
                return
            except (StoreError, sa.exc.IntegrityError) as error:
                # Two processes that make the tables of a new database at once: one of them finds them made, a moment later.
                if last or self.sqlite:
                    raise error if isinstance(error, StoreError) else StoreError(f"{self.title}: {_sentence(error)}") from error
                time.sleep(0.5)

    def _check_version(self, connection: Connection) -> None:
        found = connection.execute(sa.select(about.c.value).where(about.c.name == "schema")).scalar()
        if found is None:
            connection.execute(about.insert().values(name="schema", value=str(SCHEMA)))
        elif found != str(SCHEMA):
            raise StoreError(
                f"{self.title}: written by another version of Kernelwright (schema {found}, this one reads {SCHEMA})"
            )


def misfits(row: Any, table: sa.Table) -> list[str]:
    """The columns of a row that hold something of another type than was declared: SQLite takes anything, and accidents happen."""
    found = []
    for column in table.columns:
        value, kind = getattr(row, column.name), column.type.python_type
        whole = isinstance(value, int | float) if kind is float else isinstance(value, kind)
        if not whole and not (value is None and column.nullable):
            found.append(column.name)
    return found


def disk_sentence(error: OSError) -> str:
    """What a failing disk means for the user."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full; free some space and resume the run, nothing that was finished is lost"
    return f"cannot be read or written: {error.strerror or error}"


def _sentence(error: Any) -> str:
    cause = str(getattr(error, "orig", None) or error)
    if "disk is full" in cause or "No space left" in cause:
        return "the disk is full; free some space and resume the run, nothing that was finished is lost"
    if "malformed" in cause or "not a database" in cause:
        return "the database is damaged; move it away and a new one is begun (the contents beside it are kept)"
    if "locked" in cause:
        return f"another process has held the database for more than {BUSY_SECONDS} s; try again"
    if "readonly" in cause:
        return "the database may not be written"
    return f"the database failed: {_first_line(cause)}"


def _first_line(problem: object) -> str:
    return (str(problem).strip().splitlines() or ["no reason given"])[0]


def _connect_args(url: sa.URL) -> dict[str, Any]:
    return {"timeout": BUSY_SECONDS} if url.get_backend_name() == "sqlite" else {}


def _sqlite_connect(connection: Any, record: object) -> None:
    connection.text_factory = _text
    connection.isolation_level = None  # the driver begins no transactions of its own: `_sqlite_begin` does
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")  # in WAL mode only this syncs each commit: a finished step survives a power cut
    cursor.close()


def _text(data: bytes) -> str:
    """A text that is no UTF-8 would otherwise fail the whole query that it stands in."""
    return data.decode(errors="replace")


def _sqlite_begin(connection: Connection) -> None:
    # A reader that turns writer fails at once when another wrote in between; who wants to write takes the lock first.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("write") else "BEGIN")


def _create_full_text(connection: Connection) -> bool:
    """The word index of the lessons; without FTS5 in this SQLite, words are compared one by one instead."""
    try:
        connection.exec_driver_sql("CREATE VIRTUAL TABLE IF NOT EXISTS lesson_words USING fts5(words)")
    except sa.exc.OperationalError as error:
        if "no such module" not in str(error):
            raise
        return False
    return True


def sqlite_url(path: Path) -> sa.URL:
    return sa.URL.create("sqlite", database=str(path))
