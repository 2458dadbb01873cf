"""Sizes nobody listed: which are tried, and what inputs hold there."""

import random
from types import SimpleNamespace

import pytest
import torch

from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.core.task.dynamic import Dynamic, SizeSymbol
from kernelwright.judge.reference.referee import Referee
from kernelwright.judge.reference.resize import resized
from kernelwright.judge.sizes import proof_for

TASK = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        if x.shape[1] == 13:
            raise ValueError("thirteen")
        return x.reshape(x.shape[0], x.shape[1] // 4, 4).sum(-1)
def get_inputs():
    return [torch.randn(6, 32)]
def get_dynamic():
    return "x[0]=0..500, x[1]"
"""


def at(tensor: torch.Tensor, old: int, new: int, fit: str = "follow") -> torch.Tensor:
    """A tensor of one size that varies, at another."""
    axes = [axis for axis, size in enumerate(tensor.shape) if size == old]
    dynamic = Dynamic((SizeSymbol("n", example=old),), tuple((0, axis, "n") for axis in axes))
    made: torch.Tensor = resized([tensor], dynamic, {"n": new}, 7, fit)[0]  # type: ignore[arg-type]
    assert made.dtype == tensor.dtype
    assert tuple(made.shape) == tuple(new if axis in axes else size for axis, size in enumerate(tensor.shape))
    return made


def test_sizes_are_in_range_and_go_beyond_the_listed() -> None:
    referee = Referee(Task.from_source(TASK), 3)
    trials = [dict(trial.sizes) for trial in referee.plan(1.0) if trial.sizes]
    assert all(0 <= sizes["x_0"] <= 500 and sizes["x_1"] % 4 == 0 and sizes["x_1"] >= 4 for sizes in trials)
    assert max(sizes["x_1"] for sizes in trials) > 10 * 32
    assert {"x_0": 0, "x_1": 4} in trials


def test_other_secrets_draw_other_sizes() -> None:
    drawn = [[t.sizes for t in Referee(Task.from_source(TASK), seed).plan(1.0) if t.sizes] for seed in (1, 2)]
    assert drawn[0] != drawn[1]


def test_reals_keep_their_range_and_are_not_repeated() -> None:
    made = at(torch.rand(40, 5) + 2, 40, 300)
    assert bool(((made > 1.9) & (made < 3)).all())
    assert made.unique().numel() > 1000


@pytest.mark.parametrize("new", [1, 3, 1000])
def test_whole_numbers_keep_their_role(new: int) -> None:
    lengths = torch.tensor([3, 17, 64, 30])
    varied = Dynamic((SizeSymbol("n", example=64),), ((0, 1, "n"),))
    _, followed = resized([torch.randn(4, 64), lengths], varied, {"n": new}, 1, "follow")
    assert 1 <= int(followed.min()) <= int(followed.max()) <= new
    _, kept = resized([torch.randn(4, 64), lengths], varied, {"n": new}, 1, "keep")
    assert torch.equal(kept, lengths)
    assert torch.equal(at(torch.arange(64), 64, new), torch.arange(new))
    assert torch.equal(at(torch.randperm(64), 64, new).sort().values, torch.arange(new))
    offsets = at(torch.tensor([0, 4, 9, 9, 30, 64]), 6, max(new, 2))
    assert int(offsets[0]) == 0
    assert int(offsets[-1]) == 64
    assert bool((offsets[1:] >= offsets[:-1]).all())


def test_masks_keep_their_shape() -> None:
    causal = torch.ones(8, 8, dtype=torch.bool).tril()
    assert torch.equal(at(causal, 8, 21), torch.ones(21, 21, dtype=torch.bool).tril())
    minus = torch.where(causal, 0.0, float("-inf"))
    assert torch.equal(at(minus, 8, 5), torch.where(torch.ones(5, 5, dtype=torch.bool).tril(), 0.0, float("-inf")))
    prefix = torch.arange(16) < torch.tensor([[3], [16], [9]])
    grown = at(prefix, 16, 50)
    assert bool((grown[:, 1:] <= grown[:, :-1]).all())
    assert bool(grown[:, 0].all())


def test_where_the_reference_raises_a_size_is_left_out_and_said() -> None:
    text = TASK.replace("x.shape[1] // 4, 4", "x.shape[1], 1").replace("== 13", "% 2 == 1 and x.shape[1] > 64")
    referee = Referee(Task.from_source(text), 4)
    trials = referee.plan(1.0)
    assert referee.sizes is not None
    assert all(dict(t.sizes)["x_1"] % 2 == 0 or dict(t.sizes)["x_1"] <= 64 for t in trials if t.sizes)
    assert any("the reference raised ValueError: thirteen" in said for said in referee.sizes.left_out)


def test_a_task_of_fixed_sizes_has_none() -> None:
    referee = Referee(Task.from_source(TASK.split("def get_dynamic")[0]), random.randrange(99))
    assert not any(trial.sizes for trial in referee.plan(0.2))


def test_a_verdict_says_what_is_proved_for_all_sizes() -> None:
    sketch = """
n = size(6, dynamic=True, low=1)
x = tensor([n, 9], f32, role="input", source="0")
y = tensor([n, 9], f32, role="output")

@kernel
def k():
    for i in parallel(0, n):
        store(y[i, :], load(x[i, :]))

returns("y")
"""
    session = SimpleNamespace(varying={"ranges": "x[0] in 1.."})
    of = Kernel.from_source(f"SKETCH = r'''{sketch}'''\nSKETCH_1 = r'''{sketch}'''\n", dsl="cpp")
    assert len(of.sketches) == 2
    proof = proof_for(session, of)  # type: ignore[arg-type]
    assert proof is not None
    assert (proof.outcome, proof.statement) == ("proved", "2 variants proved for x[0] in 1..")
    none = proof_for(session, Kernel.from_source("class ModelNew: pass\n"))  # type: ignore[arg-type]
    assert none is not None
    assert "carries no sketch" in none.statement
    session.varying = None
    assert proof_for(session, of) is None  # type: ignore[arg-type]
