"""A search from end to end: real builds, real races, a real verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.cli.main import run
from kernelwright.cli.tune import _is_kernel, _made_from
from kernelwright.core.errors import ConfigError
from kernelwright.core.job import JobSpec
from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.judge import Judge
from kernelwright.judge.timing.race import Place, Race
from kernelwright.run.drafts import Drafter
from kernelwright.search.features import Axes
from kernelwright.search.finish_race import _path
from kernelwright.search.point import Point
from kernelwright.search.propose import Proposer
from kernelwright.search.races import State, Variant
from kernelwright.search.tune import _challenge
from kernelwright.search.worker import SearchWorker
from kernelwright.store import Store

TASK = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2
def get_inputs():
    return [torch.randn(256, 512)]
def get_init_inputs():
    return []
"""
SLOW = """
import time
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        time.sleep(0.02)
        return torch.relu(x) * 2
"""
BROKEN = "raise ValueError('no kernel')\n"


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "double_relu.py"
    path.write_text(TASK)
    return path


def test_a_heat_orders_kernels_and_says_what_keeps_one_out(task: Path) -> None:
    quick = SLOW.replace("time.sleep(0.02)", "pass")
    with Judge() as judge, Race(judge, Task.from_path(task)) as race:
        slow, broken, fast = race.race([SLOW, BROKEN, quick])
    assert "no kernel" in broken.fault
    assert broken.seconds is None
    assert slow.seconds is not None
    assert fast.seconds is not None
    assert fast.seconds < slow.seconds


def test_what_models_propose_stands_beside_the_designers_own(task: Path) -> None:
    with Drafter() as drafter:
        with SearchWorker(drafter, JobSpec(Task.from_path(task))) as worker:
            own = worker.designs
            made = worker.write(Point.of(0, own[0].defaults))
        assert made is not None
        proposed = made.sketch.replace("maximum(", "maximum(0.0 + ")
        with SearchWorker(drafter, JobSpec(Task.from_path(task)), sketches=(proposed,)) as worker:
            assert len(worker.designs) == len(own) + 1
            written = worker.write(Point.of(0, worker.designs[0].defaults))
            assert written is not None
            assert written.code != made.code


def test_a_kernel_is_tuned_for_the_task_of_the_run_that_made_it(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text(SLOW)
    assert _is_kernel(str(kernel))
    assert not _is_kernel(str(task))
    place = str(tmp_path / "store")
    with Store.open(place) as store:
        store.begin({"command": "generate", "source": TASK, "path": "a.py", "class_name": "Model"}).finish("failed", None)
        made = store.begin({"command": "generate", "source": TASK, "path": "b.py", "class_name": "Model"})
        made.finish("done", store.put(SLOW.encode()))
    assert _made_from(Kernel.from_path(kernel), place).path == "b.py"
    kernel.write_text(SLOW + "# by hand\n")
    with pytest.raises(ConfigError, match="say what it computes with --task"):
        _made_from(Kernel.from_path(kernel), place)


class Replayed:
    """Races that end as told."""

    designs = (Axes({"TILE": (1, 2)}, {"TILE": 1}, 0.0), Axes({"TILE": (1, 2)}, {"TILE": 1}, 0.0, note="rough"))

    def __init__(self, *seconds: float, fine: bool = True) -> None:
        self.seconds, self.fine = seconds, fine

    def fault(self, variant: Variant) -> str:
        return "" if self.fine else "output is wrong"

    def race(self, variants: list[Variant], stages: object) -> list[Place]:
        return [Place(value, 7) for value in self.seconds]


@pytest.mark.parametrize(("again", "leads"), [((1.0, 0.9), True), ((1.0, 1.02), False)])
def test_a_lucky_heat_does_not_take_the_lead(again: tuple[float, float], leads: bool) -> None:
    seed, lucky = Variant("a", "s"), Variant("b", "s", Point.of(0, {"TILE": 2}), relative=0.7)
    state = State(seed, {"a": seed, "b": lucky})
    proposer = Proposer(Replayed.designs)
    assert lucky.point is not None
    proposer.tell(lucky.point, 0.7)
    _challenge(Replayed(*again), proposer, ["b"], state)  # type: ignore[arg-type]
    assert (state.leader is not seed) is leads
    assert state.variants["b"].relative == pytest.approx(again[1])
    assert [island.best.value for island in proposer.islands.islands if island.best] == [pytest.approx(again[1])]
    assert state.path == ([("design 1 with TILE 2", pytest.approx(1 / 0.9))] if leads else [])


def test_a_design_that_is_wrong_never_leads_and_is_dropped() -> None:
    seed, wrong = Variant("a", "s"), Variant("b", "s", Point.of(1, {"TILE": 2}), relative=0.7)
    state = State(seed, {"a": seed, "b": wrong}, right={0})
    proposer = Proposer(Replayed.designs)
    assert wrong.point is not None
    proposer.tell(wrong.point, 0.7)
    told = _challenge(Replayed(1.0, 0.7, fine=False), proposer, ["b"], state)  # type: ignore[arg-type]
    assert told == "design 2 (rough) with TILE 2 would lead, but is wrong, so the design is dropped: output is wrong"
    assert state.leader is seed
    assert not state.path
    assert set(state.variants) == {"a"}
    assert proposer.best is None
    proposed = [point for _ in range(8) for point in proposer.ask(1)]
    assert {point.design for point in proposed} == {0}
    assert len(proposed) == 2


@pytest.mark.slow
def test_tune_ends_with_a_correct_kernel_and_says_how_it_went(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELWRIGHT_STORE", str(tmp_path / "store"))
    code = run(["tune", str(task), "--budget", "4s", "--no-compile", "--out", str(tmp_path / "out"), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert code == 0
    assert told["verdict"]["status"] == "correct"
    assert "variants raced" in told["ended"]
    steps = [json.loads(line)["step"] for line in (tmp_path / "out" / "journal.jsonl").read_text().splitlines()]
    assert "heat" in steps
    assert (tmp_path / "out" / "kernel.py").exists()


@pytest.mark.slow
def test_a_kernel_of_ours_is_tuned_from_the_sketch_it_carries(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELWRIGHT_STORE", str(tmp_path / "store"))
    assert run(["generate", str(task), "--no-compile", "--out", str(tmp_path / "first"), "--json"]) == 0
    capsys.readouterr()
    kernel = str(tmp_path / "first" / "kernel.py")
    code = run(
        ["tune", kernel, "--task", str(task), "--budget", "3s", "--no-compile", "--out", str(tmp_path / "out"), "--json"]
    )
    assert code == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["status"] == "correct"


def test_a_winner_that_never_led_is_told_by_its_own_change() -> None:
    seed, leader = Variant("a", "s"), Variant("b", "s", Point.of(0, {"TILE": 1}), 0.9)
    other = Variant("c", "s", Point.of(0, {"TILE": 2}), 0.95)
    state = State(leader, {"a": seed, "b": leader, "c": other}, path=[("design 1", 1.1)])
    races = Replayed()
    assert _path(races, state, leader, 1.1) == (("design 1", 1.1),)  # type: ignore[arg-type]
    assert _path(races, state, other, 1.2) == (("design 1 with TILE 2", 1.2),)  # type: ignore[arg-type]
