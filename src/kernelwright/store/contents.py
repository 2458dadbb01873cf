"""Bytes under their SHA-256. In a folder (written aside, synced, renamed), or in a table where machines share only a database.

What is read is checked against its name: damaged contents are told apart from missing ones and never returned.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa

from kernelwright.core.errors import StoreError
from kernelwright.store import tables
from kernelwright.store.tables import Database


def digest(data: bytes) -> str:
    """The name that these bytes have in every store."""
    return hashlib.sha256(data).hexdigest()


class Contents(Protocol):
    """Where bytes lie."""

    def put(self, data: bytes) -> str:
        """Keep the bytes (on disk when this returns) and give their name."""
        ...

    def get(self, name: str) -> bytes | None:
        """The bytes of this name, None where there are none; StoreError where they are damaged."""
        ...

    def names(self) -> Iterator[tuple[str, float, int]]:
        """Name, time of last use and size of all that is there."""
        ...

    def drop(self, name: str, unused_since: float) -> bool:
        """Delete, unless somebody kept the same bytes again meanwhile."""
        ...


class FolderContents:
    """One file for each content: `ab/cdef…`, readable without Kernelwright."""

    def __init__(self, folder: Path, database: Database) -> None:
        self._folder = folder
        self._guard = database.guard

    def put(self, data: bytes) -> str:
        name = digest(data)
        path = self._path(name)
        with self._guard():
            with suppress(FileNotFoundError):
                if path.read_bytes() == data:
                    os.utime(path)
                    return name
            if not path.parent.is_dir():
                path.parent.mkdir(parents=True, exist_ok=True)
                _sync(self._folder)
            descriptor, part = tempfile.mkstemp(prefix=".part-", dir=path.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(part, path)
            except BaseException:
                os.unlink(part)
                raise
            _sync(path.parent)
        return name

    def get(self, name: str) -> bytes | None:
        path = self._path(name)
        with self._guard():
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                return None
        if digest(data) != name:
            raise StoreError(f"{path}: this file is damaged; delete it, and what it held is made again when it is needed")
        return data

    def names(self) -> Iterator[tuple[str, float, int]]:
        with self._guard():
            for path in self._folder.glob("??/*"):
                with suppress(FileNotFoundError):
                    found = path.stat()
                    name = path.parent.name + path.name
                    if not path.name.startswith("."):
                        yield name, found.st_mtime, found.st_size
                    elif time.time() - found.st_mtime > 3600:
                        path.unlink()  # left by a writer that was killed

    def drop(self, name: str, unused_since: float) -> bool:
        path = self._path(name)
        with self._guard(), suppress(FileNotFoundError):
            if path.stat().st_mtime <= unused_since:
                path.unlink()
                return True
        return False

    def _path(self, name: str) -> Path:
        if len(name) != 64 or not name.isalnum():
            raise StoreError(f"{name!r} is not the name of a content")
        return self._folder / name[:2] / name[2:]


class TableContents:
    """The same in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, data: bytes) -> str:
        name = digest(data)
        table = tables.contents
        touch = table.update().where(table.c.hash == name).values(used=time.time(), data=data)
        try:
            with self._database.write() as connection:
                if connection.execute(touch).rowcount == 0:
                    connection.execute(table.insert().values(hash=name, data=data, used=time.time()))
        except sa.exc.IntegrityError:
            pass  # another process kept the same bytes at the same moment
        return name

    def get(self, name: str) -> bytes | None:
        table = tables.contents
        with self._database.read() as connection:
            data = connection.execute(sa.select(table.c.data).where(table.c.hash == name)).scalar()
        if data is None:
            return None
        if digest(data) != name:
            raise StoreError(f"{self._database.title}: content {name[:12]} is damaged")
        return bytes(data)

    def names(self) -> Iterator[tuple[str, float, int]]:
        table = tables.contents
        with self._database.read() as connection:
            rows = connection.execute(sa.select(table.c.hash, table.c.used, sa.func.length(table.c.data))).all()
        yield from ((name, used, size) for name, used, size in rows)

    def drop(self, name: str, unused_since: float) -> bool:
        table = tables.contents
        with self._database.write() as connection:
            gone = connection.execute(table.delete().where(table.c.hash == name, table.c.used <= unused_since))
        return gone.rowcount > 0


def _sync(folder: Path) -> None:
    """A rename is on disk only when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
