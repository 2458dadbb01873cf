"""The store as its users see it: memos and contents survive, are shared by processes, and fail in one sentence each."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="the store needs SQLAlchemy (pip install 'kernelwright[store]')")

import sqlalchemy
from sqlalchemy.engine import Engine

from kernelwright.store import Store, StoreError
from kernelwright.store.contents import digest


@pytest.fixture(params=["folder", "url"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Both kinds of store must behave alike."""
    return str(tmp_path / "store") if request.param == "folder" else f"sqlite:///{tmp_path}/shared.sqlite"


def test_a_memo_is_recalled_by_whoever_opens_the_store_later(place: str) -> None:
    with Store.open(place) as store:
        assert store.recall("verdict", "k1") is None
        assert store.keep("verdict", "k1", b"first", status="correct") == digest(b"first")
        store.keep("answer", "k1", b"another kind")
    with Store.open(place) as store:
        assert store.recall("verdict", "k1") == b"first"
        store.keep("verdict", "k1", b"newer")
        assert store.recall("verdict", "k1") == b"newer"
        assert store.recall("answer", "k1") == b"another kind"


def test_contents_lie_under_their_hash(place: str) -> None:
    with Store.open(place) as store:
        name = store.put(b"def f(): ...")
        assert name == store.put(b"def f(): ...") == digest(b"def f(): ...")
        assert store.get(name) == b"def f(): ..."
        assert store.get("0" * 64) is None


def test_in_a_folder_contents_are_plain_files(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        name = store.put(b"text")
        assert (tmp_path / "contents" / name[:2] / name[2:]).read_bytes() == b"text"
        with pytest.raises(StoreError, match="not the name of a content"):
            store.get("../../etc/passwd")


def test_a_damaged_content_is_told_and_what_it_held_is_made_again(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        name = store.keep("build", "k", b"binary")
        store.keep("build", "other", b"whole")
        (tmp_path / "contents" / name[:2] / name[2:]).write_bytes(b"binarx")
        with pytest.raises(StoreError, match="is damaged"):
            store.get(name)
        assert store.recall("build", "k") is None
        assert store.recall("build", "other") == b"whole"
        store.keep("build", "k", b"binary")
        assert store.recall("build", "k") == b"binary"


def test_a_damaged_database_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_bytes(b"this is not a database at all " * 100)
    with pytest.raises(StoreError, match=r"store\.sqlite: the database is damaged"):
        Store.open(tmp_path)


def test_a_full_disk_is_one_sentence_and_costs_only_what_did_not_fit(tmp_path: Path) -> None:
    def small(connection: object, record: object) -> None:
        connection.execute("PRAGMA max_page_count=64")  # type: ignore[attr-defined]

    url = f"sqlite:///{tmp_path}/small.sqlite"
    sqlalchemy.event.listen(Engine, "connect", small)
    try:
        with Store.open(url) as store:
            store.keep("answer", "paid", b"for")
            with pytest.raises(StoreError, match="the disk is full"):
                store.keep("answer", "large", os.urandom(1 << 20))
            assert store.recall("answer", "paid") == b"for"
            assert store.recall("answer", "large") is None
    finally:
        sqlalchemy.event.remove(Engine, "connect", small)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("nosuchdatabase://host/x", "cannot be opened"),
        ("sqlite:////proc/nowhere/x.sqlite", "the database failed"),
        ("/proc/nowhere/store", "cannot be read or written"),
    ],
)
def test_a_place_that_is_none_is_one_sentence(bad: str, words: str) -> None:
    with pytest.raises(StoreError, match=words) as caught:
        Store.open(bad)
    assert "\n" not in str(caught.value)


def test_a_password_in_the_url_is_never_shown() -> None:
    with pytest.raises(StoreError) as caught:
        Store.open("nosuchdatabase://me:hunter2hunter2@host/x")
    assert "hunter2" not in str(caught.value)


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/store.sqlite")
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("UPDATE about SET value='99' WHERE name='schema'"))
    engine.dispose()
    with pytest.raises(StoreError, match="another version"):
        Store.open(tmp_path)


def test_the_default_is_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    Store.open().close()
    assert (tmp_path / "kernelwright" / "store" / "store.sqlite").is_file()


def test_without_sqlalchemy_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernelwright.core.errors import ToolMissing

    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(ToolMissing, match=r"pip install 'kernelwright\[store\]'"):
        Store.open("/nowhere")


WRITER = """
import sys
from kernelwright.store import Store
with Store.open(sys.argv[1]) as store:
    run = store.begin({"writer": sys.argv[2]}, run_id="run-" + sys.argv[2])
    for number in range(40):
        store.keep("memo", f"shared-{number}", f"value {number}".encode())
        run.step("count", f"{sys.argv[2]} {number}", {}, store.put(f"{sys.argv[2]} {number}".encode()))
"""


def test_two_processes_write_one_store_at_once(place: str) -> None:
    command = [sys.executable, "-c", WRITER, place]
    writers = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in "ab"]
    for writer in writers:
        _, complaint = writer.communicate(timeout=240)
        assert writer.returncode == 0, complaint
    with Store.open(place) as store:
        for name in "ab":
            steps = store.load_run(f"run-{name}").steps
            assert [step.number for step in steps] == list(range(1, 41))
            assert [store.get(step.result or "") for step in steps] == [f"{name} {n}".encode() for n in range(40)]
        assert all(store.recall("memo", f"shared-{number}") == f"value {number}".encode() for number in range(40))


def test_pruning_forgets_what_is_old_and_keeps_what_is_used(place: str, tmp_path: Path) -> None:
    with Store.open(place) as store:
        old = store.begin({"task": "old"}, run_id="old")
        old.step("design", "why", {}, store.put(b"only the old run has this"))
        old.step("design", "why", {}, store.put(b"both runs have this"))
        old.finish("done")
        store.keep("memo", "old", b"old memo")
        _age(store, tmp_path, days=40)
        new = store.begin({"task": "new"}, run_id="new")
        new.step("design", "why", {"from": store.put(b"both runs have this")})
        store.keep("memo", "new", b"new memo")
        gone = store.prune(30)
        assert (gone.runs, gone.memos, gone.contents) == (1, 1, 2)
        assert gone.bytes == len(b"only the old run has this") + len(b"old memo")
        assert [run.id for run in store.runs()] == ["new"]
        assert store.get(digest(b"only the old run has this")) is None
        assert store.get(digest(b"both runs have this")) == b"both runs have this"
        assert store.recall("memo", "old") is None
        assert store.recall("memo", "new") == b"new memo"


def test_what_was_kept_a_moment_ago_is_never_pruned(place: str) -> None:
    with Store.open(place) as store:
        name = store.put(b"its step is about to be written")
        assert store.prune(0).contents == 0
        assert store.get(name) is not None


def _age(store: Store, folder: Path, *, days: float) -> None:
    """Make everything in the store look that old."""
    then = time.time() - days * 86400
    for path in folder.rglob("contents/*/*"):
        os.utime(path, (then, then))
    with store._database.write() as connection:
        for table, column in (("runs", "touched"), ("memos", "used"), ("contents", "used")):
            connection.execute(sqlalchemy.text(f"UPDATE {table} SET {column}={then}"))
