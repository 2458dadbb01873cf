"""`kernelwright bench networks`: networks are made alike in each process, cases run in workers, the report tells what is wrong."""

import json
from pathlib import Path

import pytest
import torch

from kernelwright.api.networks import report
from kernelwright.api.networks.bench import Plan, planned, run
from kernelwright.api.networks.catalogue import make
from kernelwright.api.networks.measured import Contender, Measured
from kernelwright.cli.main import run as command
from kernelwright.core.errors import ConfigError


@pytest.mark.parametrize("name", ["decoder", "experts", "recurrent"])
def test_networks_of_ours_compute_the_same_in_every_call(name: str) -> None:
    case, twin = make(name, 2), make(name, 2)
    with torch.no_grad():
        first, again, other = case.model(*case.inputs), case.model(*case.inputs), twin.model(*twin.inputs)
    assert torch.isfinite(first).all()
    torch.testing.assert_close(first, again)
    torch.testing.assert_close(first, other)


@pytest.mark.slow
def test_a_case_runs_in_a_worker_and_is_not_run_twice(tmp_path: Path) -> None:
    plan = Plan(("recommender",), batches=(1,), contenders=("kernelwright",), threads=1, seconds=0.05)
    (found,) = run(plan, tmp_path)
    assert not found.failed
    assert found.contenders[0].right, found
    assert found.graphs == 1
    assert found.floor > 0
    assert "graph" in found.explained
    file = tmp_path / "cases" / "recommender-1.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "eager": 42.0}))
    (known,) = run(plan, tmp_path, resume=True)
    assert known.eager == 42.0


def test_the_report_counts_what_is_wrong_slow_and_failed(tmp_path: Path) -> None:
    def case(name: str, ratio: float, right: bool = True, **more: object) -> Measured:
        ours = Contender("kernelwright", right, "" if right else "off", 2.0, 0.01, ratio, ratio - 0.01, ratio + 0.01)
        other = Contender("compile", True, "", 1.0, 0.01, 1.0, 0.99, 1.01)
        return Measured(name, 1, eager=0.01, graphs=1, contenders=[ours, other], **more)  # type: ignore[arg-type]

    found = [
        case("a", 2.0),
        case("b", 0.5),
        case("c", 1.0, right=False),
        Measured("d", 8, failed="died"),
        case("e", 1.0, quiet=False),
    ]
    summary = report.write(Plan(("a",)), found, tmp_path)
    assert summary["over_eager"] == 1.0
    assert summary["wrong"] == ["c at 1"]
    assert summary["slower_than_eager"] == ["b at 1"]
    assert summary["failed"] == ["d at 8: died"]
    assert summary["conditions"]["busy"] == ["e at 1"]
    assert summary["first_calls_over_inductors"] == 2.0
    text = (tmp_path / "report.md").read_text()
    assert "2.00 [1.99, 2.01]" in text
    assert "failed: died" in text
    assert "busy machine" in text


def test_unknown_words_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="recommender"):
        planned("no-such-network")
    with pytest.raises(ConfigError, match="there is no network"):
        make("no-such-network", 1)
    assert command(["bench", "networks", "--batches", "one", "--out", str(tmp_path)]) == 2
    assert "--batches takes numbers" in capsys.readouterr().err
