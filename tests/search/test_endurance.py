"""Searches that are killed, run beside each other and run for long: nothing finished is lost or done twice, nothing leaks.

The search of `searcher.py` is real but for builds and clock; the slow tests do the same with `kernelwright tune` as it is.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="the store needs SQLAlchemy (pip install 'kernelwright[store]')")

from kernelwright.core.job import JobSpec
from kernelwright.core.task import Task
from kernelwright.judge import Judge
from kernelwright.judge.timing.race import Race
from kernelwright.run.drafts import Drafter
from kernelwright.store import RunRecord, Store

SEARCHER = Path(__file__).parent / "searcher.py"
TASK = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2
def get_inputs():
    return [torch.randn(64, 512)]
def get_init_inputs():
    return []
"""


def searching(store: Path, out: Path, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(SEARCHER), str(store), str(out), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def journal(store: Path, name: str) -> RunRecord:
    with Store.open(store) as opened:
        record = opened.load_run(name)
        assert record.damaged == ()
        for step in record.steps:
            for content in (*step.inputs.values(), step.result):
                assert content is None or opened.get(content) is not None
    return record


def finished(process: subprocess.Popen[str]) -> None:
    said, complaint = process.communicate(timeout=300)
    assert process.returncode == 0, said + complaint


def kill_a_search(folder: Path, times: int) -> None:
    """At each death the journal is a beginning of the one that an undisturbed search writes, and in the end it is all of it."""
    finished(searching(folder / "calm", folder / "calm-out", "r"))
    wanted = [step.identity for step in journal(folder / "calm", "r").steps]
    assert len(wanted) > 8
    chance = random.Random(11)
    deaths, round_ = 0, 0
    while deaths < times:
        store, out = folder / f"store{round_}", folder / f"out{round_}"
        round_ += 1
        deaths_of_run = 0
        while True:
            # Each process of a run is let live a little longer than the one before, or the run would never end.
            lines = chance.randrange(1, 4) + deaths_of_run
            with searching(store, out, "r") as process:
                assert process.stdout is not None
                said = [line for _, line in zip(range(lines), process.stdout, strict=False)]
                time.sleep(chance.random() * 0.05)
                if deaths < times and process.poll() is None:
                    process.kill()
                rest = process.stdout.read()
                complaint = process.stderr.read() if process.stderr is not None else ""
            record = journal(store, "r")
            steps = [step.identity for step in record.steps]
            assert steps == wanted[: len(steps)], complaint
            raced = sum("raced" in line for line in said) + rest.count("raced,")
            assert sum(step.kind == "heat" for step in record.steps) >= raced, "what was said to be done is not in the journal"
            if process.returncode == 0:
                break
            assert process.returncode == -9, complaint
            assert record.status in ("interrupted", "done")
            deaths, deaths_of_run = deaths + 1, deaths_of_run + 1
        assert (steps, record.status) == (wanted, "done")
        races, calm = (Counter((where / "raced").read_text().splitlines()) for where in (out, folder / "calm-out"))
        assert not calm - races, "a race is missing"
        assert (races - calm).total() <= deaths_of_run, "a finished race was run again"


def test_a_killed_search_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    kill_a_search(tmp_path, 3)


@pytest.mark.slow
def test_a_search_that_is_killed_at_thirty_moments_loses_no_finished_step(tmp_path: Path) -> None:
    kill_a_search(tmp_path, 30)


def test_two_searches_share_one_store(tmp_path: Path) -> None:
    both = [searching(tmp_path / "store", tmp_path / name, name) for name in ("one", "two")]
    for process in both:
        finished(process)
    for name in ("one", "two"):
        record = journal(tmp_path / "store", name)
        assert record.status == "done"
        assert [step.number for step in record.steps] == list(range(1, len(record.steps) + 1))
        assert record.steps[-1].kind == "tuned"
        assert json.loads((tmp_path / name / "kernel.py").read_text())["seconds"] == 1.0


def tuning(folder: Path, *words: str) -> subprocess.Popen[str]:
    place = {**os.environ, "KERNELWRIGHT_STORE": str(folder / "store")}
    command = [sys.executable, "-m", "kernelwright", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=place)


def begun(folder: Path, name: str) -> list[str]:
    path = folder / "double_relu.py"
    path.write_text(TASK)
    return ["tune", str(path), "--budget", "4s", "--no-compile", "--out", str(folder / name), "--json"]


def kill_tune(folder: Path, times: int, seconds: float) -> None:
    """`kernelwright tune` is killed at random moments of its first `seconds`, `kernelwright resume` goes on, to be killed as well."""
    chance = random.Random(5)
    deaths = 0
    while deaths < times:
        name, steps, out = "", [], f"out{deaths}"
        process = tuning(folder, *begun(folder, out))
        while True:
            try:
                said, complaint = process.communicate(timeout=chance.random() * seconds if deaths < times else 600)
            except subprocess.TimeoutExpired:
                children = descendants(process.pid)
                process.kill()
                said, complaint = process.communicate()
                assert gone(children), "a worker outlived the run that it worked for"
                deaths += 1
            with Store.open(folder / "store") as store:
                name = next((run.id for run in store.runs() if run.job["out"] == str(folder / out)), "")
            if process.returncode != 0 and not name:
                break  # killed before the run had begun: there is nothing to resume
            record = journal(folder / "store", name)
            now = [step.identity for step in record.steps]
            assert now[: len(steps)] == steps, "a finished step is lost or was changed"
            steps = now
            if process.returncode == 0:
                assert record.status == "done"
                assert json.loads(said)["verdict"]["status"] == "correct"
                break
            assert process.returncode == -9, complaint
            process = tuning(folder, "resume", name, "--json")


def descendants(process: int) -> dict[int, str]:
    """Processes below this one, each with the time of its start."""
    parents: dict[int, tuple[int, str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = (int(fields[1]), fields[19])
    found: dict[int, str] = {}
    level = {process}
    while level:
        level = {child for child, (parent, _) in parents.items() if parent in level}
        found |= {child: parents[child][1] for child in level}
    return found


def gone(processes: dict[int, str], seconds: float = 20.0) -> bool:
    """Whether all of them end within that time; a zombie has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        left = 0
        for process, birth in processes.items():
            try:
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            left += fields[19] == birth and fields[0] not in "ZX"
        if not left:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_tune_killed_at_thirty_moments_loses_no_finished_step(tmp_path: Path) -> None:
    kill_tune(tmp_path, 30, 30.0)


@pytest.mark.slow
def test_two_tunes_share_one_store(tmp_path: Path) -> None:
    both = {name: tuning(tmp_path, *begun(tmp_path, name)) for name in ("one", "two")}
    for name, process in both.items():
        said, complaint = process.communicate(timeout=600)
        assert process.returncode == 0, complaint
        told = json.loads(said)
        assert told["verdict"]["status"] == "correct"
        record = journal(tmp_path / "store", told["run"])
        assert (record.status, record.job["out"]) == ("done", str(tmp_path / name))


def held() -> tuple[int, int, int]:
    """Open files of this process; processes below it; megabytes that all of them have to themselves."""
    below = descendants(os.getpid())
    private = 0
    for process in (os.getpid(), *below):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        private += sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty")))
    return len(os.listdir("/proc/self/fd")), len(below), private // 1024


def race_many(folder: Path, count: int) -> None:
    """Candidates in a row, each with a build of its own."""
    (folder / "double_relu.py").write_text(TASK)
    task = Task.from_path(folder / "double_relu.py")
    with Drafter() as drafter:
        kernel = drafter.drafts(JobSpec(task), 1)[0].kernel.source
    before = held()
    with Judge() as judge, Race(judge, task) as race:
        early = None
        for first in range(0, count, 5):
            variants = [kernel.replace("#include <cmath>", f"#include <cmath>\n// {first + n}", 1) for n in range(5)]
            places = race.race(variants)
            assert all(place.seconds for place in places), places
            early = early or (held() if first >= 20 else None)
        late = held()
    assert early is not None
    assert late[0] == early[0], "open files"
    assert late[1] == early[1], "processes"
    assert late[2] <= early[2] + 30, f"{early[2]} MB became {late[2]} MB"
    assert held()[:2] == before[:2]


@pytest.mark.slow
def test_two_hundred_candidates_in_a_row_leak_nothing(tmp_path: Path) -> None:
    race_many(tmp_path, 200)
