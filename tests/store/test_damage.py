"""A damaged row, page or file and a full disk: one sentence where something is lost, and everything else stays."""

from __future__ import annotations

import errno
import itertools
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="the store needs SQLAlchemy (pip install 'kernelwright[store]')")

import sqlalchemy

from kernelwright.cli import main
from kernelwright.store import Lesson, Store, StoreError, tables
from kernelwright.store.contents import digest

RUBBISH: list[object] = [b"\xff\xfe", "", "words", -1]
"""What a column may hold after an accident: not UTF-8, nothing, words of no sense, another type."""


def fill(store: Store) -> None:
    for name in ("hurt", "whole"):
        run = store.begin({"task": name, "dsl": "cpp"}, run_id=name)
        for number in range(3):
            result = store.keep("memo", f"{name} {number}", f"{name} {number}".encode())
            run.step("judged", f"number {number}", {"of": result}, result, {"status": "correct", "speedup": 1.0 + number})
        store.learn(Lesson("kernel", "norm", "cpp", "cpu", f"RMSNorm of {name}", {"text": name}))


def whole(store: Store) -> None:
    """What was not touched is there."""
    record = store.load_run("whole")
    assert (len(record.steps), record.damaged, record.job["task"]) == (3, (), "whole")
    assert [store.get(step.result or "") for step in record.steps] == [f"whole {number}".encode() for number in range(3)]
    assert "whole" in {run.id for run in store.runs()}
    assert [store.recall("memo", f"whole {number}") for number in range(3)] == [f"whole {n}".encode() for n in range(3)]
    assert "whole" in [lesson.payload["text"] for lesson in store.lessons("rms norm", "norm", "cpp", "cpu")]


HURT = {"runs": "id='hurt'", "steps": "run='hurt' AND number=2", "memos": "key='hurt 1'", "lessons": "text LIKE '%hurt'"}


def hurt(store: Store, table: str, column: str, value: object) -> None:
    """Bytes are put in as what a text column may not hold: no UTF-8."""
    place = "CAST(:value AS TEXT)" if isinstance(value, bytes) else ":value"
    with store._database.write() as connection:
        change = sqlalchemy.text(f"UPDATE OR IGNORE {table} SET {column}={place} WHERE {HURT[table]}")
        assert connection.execute(change, {"value": value}).rowcount <= 1


def columns(table: str) -> list[str]:
    """All but SQLite's own row number, which it guards itself."""
    return [column.name for column in tables.metadata.tables[table].columns if (table, column.name) != ("lessons", "id")]


@pytest.mark.parametrize("table", HURT)
def test_whatever_stands_in_a_cell_costs_its_row_only(table: str, tmp_path: Path) -> None:
    with Store.open(tmp_path / "first") as store:
        fill(store)
    for column, value in itertools.product(columns(table), RUBBISH):
        folder = tmp_path / "again"
        shutil.copytree(tmp_path / "first", folder)
        with Store.open(folder) as store:
            hurt(store, table, column, value)
            whole(store)
            names = {found.id for found in store.runs()} & {"hurt", "whole"}
            assert len(names) == 2 or (table, column) == ("runs", "id")
            for name in names:
                read = store.load_run(name)
                assert len(read.steps) == 3 or read.damaged or table == "steps", (column, value)
                before = max((step.number for step in read.steps), default=0)
                assert store.resume(name).step("more", "it goes on") > before
            assert store.recall("memo", "hurt 1") in (b"hurt 1", None)
            store.prune(30)
            assert len(store.load_run("whole").steps) == 4
        shutil.rmtree(folder)


@pytest.mark.parametrize("column", ["owner", "started", "job"])
def test_what_is_damaged_is_named_to_the_user(column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(tmp_path) as store:
        fill(store)
        hurt(store, "runs", column, b"\xff\xfe words")
        hurt(store, "steps", "facts", '{"cut of')
    assert main.run(["runs", "--store", str(tmp_path)]) == 0
    assert "whole" in capsys.readouterr().out
    assert main.run(["show", "hurt", "--store", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert f"{column} of this run is damaged and left out" in shown
    assert "step 2 of this run is damaged and left out" in shown
    assert "number 2" in shown


def test_a_run_that_has_lost_its_name_hides_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(tmp_path) as store:
        fill(store)
        hurt(store, "runs", "id", "")
    assert main.run(["runs", "--store", str(tmp_path)]) == 0
    assert "whole" in capsys.readouterr().out


def test_damaged_pages_are_a_sentence_and_contents_stay(tmp_path: Path) -> None:
    with Store.open(tmp_path / "first") as store:
        fill(store)
        names = [digest(f"whole {number}".encode()) for number in range(3)]
    chance = random.Random(3)
    text = (tmp_path / "first" / "store.sqlite").read_bytes()
    complaints = set()
    for attempt in range(25):
        folder = tmp_path / str(attempt)
        shutil.copytree(tmp_path / "first", folder)
        torn = bytearray(text)
        for _ in range(3):
            start = chance.randrange(100, len(text) - 600)
            torn[start : start + 600] = chance.randbytes(600)
        (folder / "store.sqlite").write_bytes(torn)
        try:
            with Store.open(folder) as store:
                assert [store.get(name) for name in names] == [f"whole {number}".encode() for number in range(3)]
                for found in store.runs():
                    store.load_run(found.id)
        except StoreError as error:
            complaints.add(str(error).partition("store.sqlite: ")[2])
    assert not any("\n" in words for words in complaints)
    assert any("the database is damaged" in words for words in complaints), complaints


def test_a_disk_that_fills_up_leaves_no_half_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(tmp_path) as store:
        store.keep("memo", "paid", b"for")

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(StoreError, match="the disk is full; free some space and resume the run"):
                store.keep("memo", "late", b"does not fit")
        assert [path for path in (tmp_path / "contents").rglob("*") if path.name.startswith(".part")] == []
        assert store.recall("memo", "paid") == b"for"
        assert store.recall("memo", "late") is None
        store.keep("memo", "late", b"does not fit")
        assert store.recall("memo", "late") == b"does not fit"


ON_A_SMALL_DISK = """
import os, sys
from kernelwright.store import Store, StoreError
folder = sys.argv[1]
with Store.open(folder + "/store") as store:
    run = store.begin({"task": "t"}, run_id="r")
    done = 0
    try:
        while done < 100000:
            name = store.keep("memo", str(done + 1), os.urandom(20000))
            run.step("work", "one more", {"of": name}, name)
            done += 1
    except StoreError as error:
        print(done, error, sep="|")
    open(folder + "/ballast", "wb").close()
    record = store.load_run("r")
    assert len(record.steps) == done and record.damaged == ()
    assert all(store.get(step.result) is not None for step in record.steps)
    again = store.resume("r")
    for step in record.steps:
        assert again.step(step.kind, step.reason, step.inputs, step.result) == step.number
    assert again.step("work", "there is room again", {"of": store.put(b"small")}) == done + 1
    again.finish("done")
"""


def test_a_disk_that_is_really_full_costs_only_what_did_not_fit(tmp_path: Path) -> None:
    """A disk of two megabytes of its own, where this system lets us make one."""
    mount = f"mount -t tmpfs -o size=2m none {tmp_path} && head -c 500000 /dev/zero > {tmp_path}/ballast"
    privileges = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    if shutil.which("unshare") is None or subprocess.run([*privileges, "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("no disk can be made here")
    script = f'{mount} && exec "$0" -c "$1" {tmp_path}'
    ran = subprocess.run(
        [*privileges, "sh", "-c", script, sys.executable, ON_A_SMALL_DISK], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    done, sentence = ran.stdout.strip().split("|")
    assert int(done) > 10
    assert "the disk is full; free some space and resume the run, nothing that was finished is lost" in sentence
