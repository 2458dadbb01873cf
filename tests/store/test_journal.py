"""Runs: a step is on disk when it is written, a killed run is resumed without doing or writing anything twice."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="the store needs SQLAlchemy (pip install 'kernelwright[store]')")

import sqlalchemy

from kernelwright.store import Store, StoreError
from kernelwright.store.contents import digest
from kernelwright.store.summary import best_over_time, spending

A, B, C = (digest(letter) for letter in (b"a", b"b", b"c"))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def test_a_run_is_read_back_as_it_was_written(store: Store) -> None:
    run = store.begin({"task": "softmax", "dsl": "cpp"})
    assert run.step("design", "the first design", {"task": A}, B, {"seconds": 0.5}) == 1
    assert run.step("judge", "it checks", {"sketch": B}, None, {"status": "correct", "speedup": 1.5}) == 2
    assert store.load_run(run.id).status == "running"
    run.finish("done", best=B)
    record = store.load_run(run.id)
    assert (record.status, record.best, record.job) == ("done", B, {"task": "softmax", "dsl": "cpp"})
    assert [(step.kind, step.reason, step.inputs, step.result) for step in record.steps] == [
        ("design", "the first design", {"task": A}, B),
        ("judge", "it checks", {"sketch": B}, None),
    ]
    assert record.steps[1].facts == {"status": "correct", "speedup": 1.5}
    assert [listed.id for listed in store.runs()] == [run.id]


def test_a_step_hangs_under_the_latest_one_whose_result_it_used(store: Store) -> None:
    run = store.begin({})
    run.step("design", "", {}, A)
    run.step("design", "another that came to the same", {}, A)
    run.step("code", "", {"sketch": A}, B)
    run.step("patch", "", {"sketch": A, "kernel": B}, C)
    run.step("unrelated", "", {"task": digest(b"elsewhere")}, None)
    assert store.load_run(run.id).parents() == {1: None, 2: None, 3: 2, 4: 3, 5: None}


def test_a_resumed_run_repeats_its_steps_without_writing_them_twice(store: Store) -> None:
    run = store.begin({"task": "t"}, run_id="r")
    run.step("design", "", {}, A, {"seconds": 1.0})
    run.step("ask", "", {"sketch": A}, B)
    run.step("ask", "the same once more", {"sketch": A}, B)
    again = store.resume("r")
    assert again.job == {"task": "t"}
    assert again.step("design", "", {}, A, {"seconds": 9.9}) == 1
    assert again.step("ask", "", {"sketch": A}, B) == 2
    assert again.step("ask", "", {"sketch": A}, B) == 3
    assert again.step("ask", "a third one is new", {"sketch": A}, B) == 4
    again.finish("done", B)
    record = store.load_run("r")
    assert len(record.steps) == 4
    assert record.steps[0].facts == {"seconds": 1.0}


def test_a_run_is_found_by_the_beginning_of_its_name(store: Store) -> None:
    for name in ("20260101-aa", "20260101-ab", "2026", "100%_x"):
        store.begin({}, run_id=name)
    assert store.load_run("20260101-ab").id == "20260101-ab"
    assert store.load_run("2026").id == "2026"
    assert store.load_run("100%").id == "100%_x"
    with pytest.raises(StoreError, match="could be each of"):
        store.load_run("20260101")
    for nobody in ("9", "%", ""):
        with pytest.raises(StoreError, match="there is no run"):
            store.load_run(nobody)
    with pytest.raises(StoreError, match="there is a run 2026 already"):
        store.begin({}, run_id="2026")


def test_a_damaged_row_costs_itself_only(store: Store, tmp_path: Path) -> None:
    for name in ("whole", "hurt"):
        run = store.begin({"task": name}, run_id=name)
        for number in range(3):
            run.step("count", str(number))
    with store._database.write() as connection:
        connection.execute(sqlalchemy.text("UPDATE steps SET facts='{\"cut of' WHERE run='hurt' AND number=2"))
        connection.execute(sqlalchemy.text("UPDATE runs SET job='[]' WHERE id='hurt'"))
    hurt = store.load_run("hurt")
    assert [step.number for step in hurt.steps] == [1, 3]
    assert hurt.damaged == ("job", "step 2")
    assert {run.id for run in store.runs()} == {"whole", "hurt"}
    assert len(store.load_run("whole").steps) == 3


def test_what_a_run_amounts_to(store: Store) -> None:
    run = store.begin({})
    run.step("judged", "", {}, None, {"status": "correct", "speedup": 1.2})
    run.step("judged", "", {}, None, {"status": "wrong_values", "speedup": 9.0})
    run.step("judged", "", {}, None, {"status": "correct", "speedup": 1.1})
    run.step("judged", "", {}, None, {"status": "correct", "speedup": 2.0})
    run.step("ask", "", {}, A, {"tokens_in": 100, "tokens_out": 20, "cost_usd": 0.5, "recalled": False})
    run.step("ask", "", {}, B, {"tokens_in": 100, "tokens_out": 20, "cost_usd": 0.5, "recalled": True})
    run.step("ask", "", {}, C, {"tokens_in": 7, "tokens_out": 3, "cost_usd": None, "recalled": False})
    record = store.load_run(run.id)
    assert [(best.step, best.speedup) for best in best_over_time(record)] == [(1, 1.2), (4, 2.0)]
    spent = spending(record)
    assert (spent.calls, spent.tokens_in, spent.tokens_out, spent.cost_usd, spent.unpriced) == (2, 107, 23, 0.5, 1)


WRITER = """
import sys
from kernelwright.store import Store
store = Store.open(sys.argv[1])
run = store.resume("victim") if store.runs() else store.begin({"task": "t"}, run_id="victim")
for number in range(1, 100000):
    content = f"result {number}".encode() * 50
    name = store.keep("memo", str(number), content)
    assert run.step("work", f"step {number}", {"of": name}, name, {"number": number}) == number
    print(number, flush=True)
"""


def kill_at_random_moments(folder: Path, times: int) -> None:
    """Each time another process goes on with the same run; whatever it had said to be done must be there."""
    chance = random.Random(7)
    finished = 0
    for _ in range(times):
        command = [sys.executable, "-c", WRITER, str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            target = finished + chance.randrange(3, 40)
            said = 0
            for line in writer.stdout:
                said = int(line)
                if said >= target:
                    break
            assert said >= target, writer.communicate()[1]
            pause = chance.random() * 0.01
            subprocess.run(["sleep", str(pause)], check=True)
            writer.kill()
            rest = writer.stdout.read().split("\n")[:-1]
            finished = max([said, *map(int, rest)])
        with Store.open(folder) as store:
            record = store.load_run("victim")
            assert record.status == "interrupted"
            assert record.damaged == ()
            assert len(record.steps) - finished in (0, 1)
            assert [step.number for step in record.steps] == list(range(1, len(record.steps) + 1))
            for step in record.steps:
                content = f"result {step.number}".encode() * 50
                assert step.facts["number"] == step.number
                assert store.get(step.result or "") == content == store.recall("memo", str(step.number))


def test_kill_9_loses_no_finished_step(tmp_path: Path) -> None:
    kill_at_random_moments(tmp_path / "store", 2)


@pytest.mark.slow
def test_kill_9_at_thirty_moments_loses_no_finished_step(tmp_path: Path) -> None:
    kill_at_random_moments(tmp_path / "store", 30)


HOLDER = """
import sys
from kernelwright.store import Store
run = Store.open(sys.argv[1]).begin({}, run_id="held")
print("holding", flush=True)
sys.stdin.read()
"""


def test_a_run_that_is_being_worked_on_is_not_resumed_by_another_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holding\n"
        with Store.open(tmp_path) as store:
            assert store.load_run("held").status == "running"
            with pytest.raises(StoreError, match=f"worked on by process {holder.pid}"):
                store.resume("held")
            assert store.prune(0).runs == 0
            holder.communicate("")
            assert store.load_run("held").status == "interrupted"
            store.resume("held").finish("done")
            assert store.load_run("held").status == "done"
