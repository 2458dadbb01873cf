"""`kernelwright optimize` and `kernelwright.optimize`: accepted only if faster end to end, reported, undone in a line. Races are decided
here by what the test says, everything else is real."""

import importlib
import json
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import kernelwright
from kernelwright.api.patch import patch
from kernelwright.api.race import Outcome
from kernelwright.cli.main import run as command
from kernelwright.core.errors import ConfigError
from kernelwright.core.task.input_text import drawn
from kernelwright.store import Store


def every_race(monkeypatch: pytest.MonkeyPatch, gain: float) -> None:
    outcome = Outcome(1e-3, 1e-3 / gain, gain, gain - 0.01, gain + 0.01, 0.0, True)
    monkeypatch.setattr("kernelwright.api.race._race", lambda *_: outcome)


class Net(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(torch.sigmoid(self.first(x)) * x)


def test_a_model_that_wins_is_accepted_and_journalled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    every_race(monkeypatch, 2.0)
    model, x = Net().eval(), torch.randn(4, 16)
    made = kernelwright.optimize(model, [x], store=str(tmp_path / "store"), out=tmp_path / "out")
    assert made.accepted, made.why
    with torch.no_grad():
        torch.testing.assert_close(made(x), model(x))
    told = json.loads((tmp_path / "out" / "report.json").read_text())
    assert {"addmm", "sigmoid", "native_layer_norm"} <= set(told["before"])
    assert "kernelwright" in told["after"]
    assert told["whole"]["gain"] == 2.0
    assert 0.9 < sum(piece["share"] for piece in told["graphs"][0]["pieces"] if piece["used"]) <= 1.001
    assert "## In use" in (tmp_path / "out" / "report.md").read_text()
    with Store.open(tmp_path / "store") as store:
        (found,) = store.runs()
        record = store.load_run(found.id)
    assert record.status == "done"
    assert [s.kind for s in record.steps][-2:] == ["graph", "whole"]


def test_a_model_that_loses_is_left_alone_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    every_race(monkeypatch, 0.5)
    model = Net(24).eval()
    made = kernelwright.optimize(model, [torch.randn(4, 24)])
    assert not made.accepted
    assert made.run is model
    assert "no piece is faster" in made.why
    assert all(not row.used for record in made.records for row in record.rows)


def test_a_patched_class_computes_the_same_trains_and_is_undone() -> None:
    model, x = Net().eval(), torch.randn(4, 16)
    own = Net.forward
    with torch.no_grad():
        want = model(x)
    undo = patch(Net)
    try:
        with torch.no_grad():
            torch.testing.assert_close(model(x), want)
        model(x).sum().backward()
        assert model.first.weight.grad is not None
    finally:
        undo()
    assert Net.forward is own


SOURCE = """
import torch
class Tiny(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = torch.nn.Linear(width, width)
    def forward(self, x):
        return torch.tanh(self.inner(x)) + x
"""


def test_the_command_writes_a_patch_that_imports_and_undoes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every_race(monkeypatch, 1.5)
    monkeypatch.setenv("KERNELWRIGHT_STORE", str(tmp_path / "store"))
    (tmp_path / "tinymodel.py").write_text(SOURCE)
    words = [
        f"{tmp_path}/tinymodel.py:Tiny",
        "--inputs",
        "f32[4,8]",
        "--init",
        "8",
        "--out",
        str(tmp_path),
        "--apply",
        "--json",
    ]
    assert command(["optimize", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["accepted"]
    monkeypatch.syspath_prepend(str(tmp_path))
    fast = importlib.import_module(Path(told["patch"]).stem)
    tiny = sys.modules["tinymodel"].Tiny
    assert hasattr(tiny.forward, "__wrapped__")
    fast.undo()
    assert not hasattr(tiny.forward, "__wrapped__")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.py:Net"], "there is no such file"),
        (["{file}:None_"], "no class None_"),
        (["{file}:Tiny", "--init", "8"], "--inputs"),
        (["{file}:Tiny", "--init", "8", "--inputs", "f32[4,9]"], "refuses these inputs"),
        (["{file}:Tiny", "--init", "os", "--inputs", "f32[4,9]"], "--init takes literal arguments"),
    ],
)
def test_what_cannot_be_understood_is_told(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tinymodel.py").write_text(SOURCE)
    assert command(["optimize", *(w.format(file=tmp_path / "tinymodel.py") for w in words)]) == 2
    assert said in capsys.readouterr().err


def test_inputs_are_read_as_written() -> None:
    x, y, n = drawn("f32[2,3], i64[4] < 9, 0.5")
    assert (x.shape, y.dtype, n) == ((2, 3), torch.int64, 0.5)
    assert int(y.max()) < 9
    with pytest.raises(ConfigError, match="f33"):
        drawn("f33[2]")
    with pytest.raises(ConfigError, match="is no input"):
        drawn("x+y")
