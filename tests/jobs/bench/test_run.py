"""A whole run: a folder with good, broken, huge, hanging and hostile tasks ends, says what each was, and is not done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelwright.core.errors import ConfigError
from kernelwright.jobs.bench import report as reports
from kernelwright.jobs.bench.collect import collect
from kernelwright.jobs.bench.ledger import Ledger, read_rows
from kernelwright.jobs.bench.record import Machine, Options, Record
from kernelwright.jobs.bench.run import describe_machine, run

TASK = """import os, time
import torch
from torch import nn
{before}
class Model(nn.Module):
    def forward(self, x):
        {forward}
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return []
"""


def task(before: str = "", forward: str = "return torch.relu(x)", inputs: str = "torch.randn(64, 128)") -> str:
    return TASK.format(before=before, forward=forward, inputs=inputs)


FOLDER = {
    "good": task(),
    "syntax": "class Model(:\n",
    "empty": "",
    "no_model": "x = 1\n",
    "raises": task(before="raise RuntimeError('no')"),
    "wrong_inputs": task(forward="return x @ x"),
    "huge": task(inputs="torch.empty(1 << 40)"),
    "slow": task(forward="time.sleep(2.5); return torch.relu(x)"),
    "exits": task(before="os._exit(0)"),
    "kills": task(before="os.kill(os.getppid(), 9); os.kill(0, 9)"),
    "random": task(forward="return x + torch.randn(())"),
    "text": task(forward="return 'seven'"),
}
EXPECTED = {
    "good": "correct",
    "syntax": "unusable_task",
    "empty": "unusable_task",
    "no_model": "unusable_task",
    "raises": "unusable_task",
    "wrong_inputs": "unusable_task",
    "huge": "too_large",
    "slow": "too_slow",
    "exits": "unusable_task",
    "kills": "unusable_task",
    "random": {"unusable_task", "not_designed"},
    "text": "unusable_task",
}
QUICK = Options(contenders=("eager",), timing=False, max_reference_seconds=2.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "tasks"
    place.mkdir()
    for name, text in FOLDER.items():
        (place / f"{name}.py").write_text(text)
    return place


def test_a_folder_of_everything_ends_and_each_file_is_reported(folder: Path, tmp_path: Path) -> None:
    entries = collect([str(folder)])
    told: list[str] = []
    ledger = run(
        entries, QUICK, tmp_path / "out", resume=False, jobs=2, tell=lambda record, done, total: told.append(record.key)
    )
    outcomes = {record.name: record.outcome for record in ledger.records.values()}
    for name, expected in EXPECTED.items():
        wanted = expected if isinstance(expected, set) else {expected}
        assert outcomes[name] in wanted, (name, ledger.records[f"tasks/{name}"].reason)
    assert sorted(told) == sorted(entry.key for entry in entries)
    report = reports.build("a folder", QUICK, ledger.sessions, list(ledger.records.values()), len(entries))
    paths = reports.write(report, tmp_path / "out")
    assert [path.name for path in paths] == ["report.json", "report.md", "report.html"]
    assert reports.read(tmp_path / "out") == report
    assert report.summary.correct == 1
    assert report.summary.tasks == len(FOLDER)
    good = ledger.records["tasks/good"]
    assert good.kernel
    assert "ModelNew" in (tmp_path / "out" / good.kernel).read_text()
    again = run(entries, QUICK, tmp_path / "out", resume=True, jobs=1, tell=lambda *_: pytest.fail("nothing was left to do"))
    assert again.records == ledger.records


def test_others_kernels_are_judged_by_name(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "theirs").mkdir()
    for name in ("right", "wrong", "missing"):
        (tmp_path / "tasks" / f"{name}.py").write_text(task())
    kernel = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return {body}\n"
    (tmp_path / "theirs" / "right.py").write_text(kernel.format(body="x.clamp(min=0)"))
    (tmp_path / "theirs" / "wrong.py").write_text(kernel.format(body="x + 0"))
    options = QUICK.model_copy(update={"kernels": str(tmp_path / "theirs"), "track": "hybrid", "dsl": "python"})
    entries = collect([str(tmp_path / "tasks")])
    records = run(entries, options, tmp_path / "out", resume=False, jobs=1, tell=lambda *_: None).records
    assert records["tasks/missing"].outcome == "no_kernel"
    assert records["tasks/wrong"].outcome != "correct"
    assert records["tasks/right"].outcome in ("correct", "cheating"), "what the track says of clamp is the judge's to decide"


def test_kill_minus_nine_loses_and_repeats_nothing(tmp_path: Path) -> None:
    place = tmp_path / "tasks"
    place.mkdir()
    for number in range(3):
        (place / f"t{number}.py").write_text(task(inputs=f"torch.randn(32, {64 + number})"))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "kernelwright", "bench", str(place), "--no-timing", "--out", str(out), "--resume"]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        while not _finished(out):
            assert first.poll() is None, "it ended before it could be killed"
            time.sleep(0.05)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    before = _finished(out)
    with (out / "ledger.jsonl").open("a") as file:
        file.write('{"kind": "task", "rec')  # a line that was being written
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["summary"]["tasks"] == 3
    assert said["complete"] is True
    finished = _finished(out)
    assert sorted(finished) == ["tasks/t0", "tasks/t1", "tasks/t2"], "no task was done twice"
    assert finished[: len(before)] == before


def _finished(out: Path) -> list[str]:
    return [row["record"]["key"] for row in read_rows(out / "ledger.jsonl") if row["kind"] == "task"]


def machine() -> Machine:
    return describe_machine()


def test_a_run_is_resumed_only_as_it_was(tmp_path: Path) -> None:
    Ledger(tmp_path, Options(), machine(), resume=False)
    with pytest.raises(ConfigError, match="--resume"):
        Ledger(tmp_path, Options(), machine(), resume=False)
    with pytest.raises(ConfigError, match="--effort 'quick', not 'standard'"):
        Ledger(tmp_path, Options(effort="standard"), machine(), resume=True)
    Ledger(tmp_path, Options(), machine(), resume=True)


def test_a_task_that_took_the_run_down_twice_is_left(tmp_path: Path) -> None:
    for attempt in range(2):
        ledger = Ledger(tmp_path, Options(), machine(), resume=attempt > 0)
        assert not ledger.fatal("s/bomb")
        ledger.begin("s/fine")
        ledger.finish(
            Record(key="s/fine", suite="s", name="fine", family="f", dsl="cpp", track="pure", outcome="correct", reason="said")
        )
        ledger.begin("s/bomb")
    ledger = Ledger(tmp_path, Options(), machine(), resume=True)
    assert ledger.fatal("s/bomb")
    assert not ledger.fatal("s/fine")


def test_a_task_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.jobs.bench.probe.LOOKING_SECONDS", 6.0)
    (tmp_path / "hangs.py").write_text(task(before="while True: pass"))
    entries = collect([str(tmp_path / "hangs.py")])
    (record,) = run(entries, QUICK, tmp_path / "out", resume=False, jobs=1, tell=lambda *_: None).records.values()
    assert record.outcome == "unusable_task"
    assert "hangs" in record.reason
