"""Large and dear tasks: a block of rows stands for all, every position is compared, and nothing is held twice."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from kernelwright.core.task import Task, tree
from kernelwright.judge.reference.referee import Referee
from kernelwright.judge.reference.rows import DEAR_SECONDS, LARGE_BYTES, BlockExpectation, Rows, RowsExpectation, find_rows
from kernelwright.judge.timing.stopwatch import Stopwatch
from kernelwright.judge.timing.turned import Turned
from kernelwright.workers import bundle

torch.set_num_threads(1)

SOURCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 32)
    def forward(self, x):
        return BODY
def get_inputs():
    return [torch.randn(50, 64)]
"""
ROWS = Rows(50, (0,), 6, 20)


def referee(body: str) -> Referee:
    return Referee(Task.from_source(SOURCE.replace("BODY", body)), seed=5)


def rows_of(made: Referee, seconds: float, nbytes: int = 0) -> Rows | None:
    inputs = made.loaded.draw(1)[0]
    outputs = [leaf for _, leaf in made.reference.native(inputs)]
    return find_rows(made.reference, inputs, outputs, seconds, nbytes)


def with_rows(body: str = "torch.relu(self.layer(x))") -> Referee:
    made = referee(body)
    made.rows = ROWS
    made.weights(None)
    return made


def whole(inputs: list[Any], turned: Turned | None) -> list[Any]:
    """What the worker with the kernel makes of a block."""
    watch, packed = Stopwatch(lambda inputs: None), bundle.pack([inputs])
    watch.prepare(packed.header, packed.fd, 3, turned=turned)
    packed.close()
    return list(watch._sets[0])


def test_cheap_tasks_and_dependent_samples_are_run_whole() -> None:
    independent, dependent = referee("torch.relu(self.layer(x))"), referee("self.layer(x) - self.layer(x).mean(0)")
    assert rows_of(independent, DEAR_SECONDS / 2, LARGE_BYTES - 1) is None
    found = rows_of(independent, 4 * DEAR_SECONDS)
    assert found is not None
    assert 2 <= found.block <= 50 // 3
    assert rows_of(dependent, 4 * DEAR_SECONDS) is None
    assert rows_of(independent, 0.0, 8 * LARGE_BYTES) is not None


def test_a_product_has_rows_on_its_left_only() -> None:
    source = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x, y):\n        return x @ y\n"
    made = Referee(
        Task.from_source(source + "def get_inputs():\n    return [torch.randn(40, 40), torch.randn(40, 40)]\n"), seed=1
    )
    found = rows_of(made, 1.0)
    assert found is not None
    assert found.carried == (0,)


def test_a_whole_batch_is_made_of_a_block_as_the_referee_thinks() -> None:
    turned = ROWS.turned(3)
    block = torch.arange(6 * 4.0).reshape(6, 4)
    for layout in (block, block.t().contiguous().t(), torch.zeros(6, 9)[:, 1:5].copy_(block)):
        (made,) = whole([layout], turned)
        assert made.shape == (50, 4)
        assert made.is_contiguous() == layout.is_contiguous()
        for start in turned.starts(6):
            assert torch.equal(made[start : start + 6], block[turned.order(start, 6)])


def test_every_position_of_every_repetition_is_judged() -> None:
    made = with_rows()
    made.plan(0.3)
    assert made.truth == "fp64 for 6 samples of the batch, which stand for all 50"
    weight, bias = made.reference.model.layer.weight, made.reference.model.layer.bias

    def kernel(x: Any) -> Any:
        return torch.relu(sum(x[:, k : k + 5] @ weight.t()[k : k + 5] for k in range(0, 64, 5)) + bias)

    for number, trial in enumerate(made.trials):
        inputs = whole(*made.draw(number))
        assert inputs[0].shape == (50, 64)
        assert made.check(number, kernel(inputs[0]), made.rows.part(inputs, 6, 18), (6, 18)) is None  # type: ignore[union-attr]
        if trial.distribution in ("own", "normal") and not trial.special:
            for row in (0, 5, 29, 49):
                wrong = kernel(inputs[0])
                wrong[row, 7] += 0.01
                finding = made.check(number, wrong, None)
                assert finding is not None
                assert finding["mismatch"]["place"] == [row, 7]
    answer, overwritten = kernel(inputs[0]), [inputs[0][6:18].clone()]
    overwritten[0][3, 3] = 7
    assert made.check(number, answer, overwritten, (6, 18))["status"] == "cheating"  # type: ignore[index]


def test_rows_that_change_places_are_found() -> None:
    made = with_rows("torch.relu(x)")
    made.plan(0.0)
    (x,) = whole(*made.draw(0))
    assert made.check(0, torch.relu(x.flip(0)), None) is not None
    assert made.check(0, torch.relu(x)[:49], None)["status"] == "wrong_shape"  # type: ignore[index]


@pytest.mark.parametrize("seed", range(3))
def test_of_data_that_differ_throughout_the_sample_and_the_rest_are_judged(seed: int) -> None:
    made = with_rows()
    inputs = made.loaded.draw(seed)[0]
    expectation = RowsExpectation(made.reference, inputs, 64, label="trial", rows=ROWS, seed=seed)
    weight, bias = made.reference.model.layer.weight, made.reference.model.layer.bias

    def kernel(x: Any) -> Any:
        return torch.relu(sum(x[:, k : k + 5] @ weight.t()[k : k + 5] for k in range(0, 64, 5)) + bias)

    assert expectation.check(kernel(inputs[0]), inputs) is None
    assert expectation.check_outputs(kernel(inputs[0].bfloat16().float())) is not None
    for row in (random.Random(seed).randrange(50), int(expectation.chosen[0]), 49):
        wrong = kernel(inputs[0])
        wrong[row] = 0
        assert expectation.check_outputs(wrong) is not None


def test_null_candidates_are_tried_on_the_block_only() -> None:
    made = with_rows("(globals().get('seen', []).append(x.shape[0])) or torch.relu(self.layer(x))")
    seen: list[int] = []
    made.loaded.model_class.forward.__globals__["seen"] = seen
    made.plan(0.1)
    seen.clear()
    assert made.flags() == []
    assert set(seen) == {6}


def test_integers_of_several_outputs_in_repetitions() -> None:
    made = with_rows("x.max(1)")
    made.plan(0.0)
    (x,) = whole(*made.draw(0))
    values, indices = x.max(1)
    assert made.check(0, torch.return_types.max((values, indices)), None) is None
    assert made.check(0, torch.return_types.max((values, (indices + 1) % 64)), None) is not None


def test_trials_make_room_before_the_next_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two large ones at a time, beside the candidate's, got the referee killed for memory."""
    made = referee("torch.relu(self.layer(x))")
    monkeypatch.setattr("kernelwright.judge.reference.referee.REMEMBERED_BYTES", 1)
    alive: list[int] = []
    made.weights(None)
    monkeypatch.setattr(made, "_made", lambda *args: (alive.append(len(made._memory)), Referee._made(made, *args))[1])
    made.plan(0.3)
    assert len(alive) > 3
    assert set(alive) == {0}


def test_without_room_for_fp64_torch_is_the_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.judge.reference.referee.available_bytes", lambda: 1)
    made = referee("self.layer(x) - self.layer(x).mean(0)")
    made.weights(None)
    made.plan(0.1)
    inputs, _ = made.draw(0)
    assert made.truth == "native"
    assert made.check(0, made.reference.model(*inputs), inputs) is None
    assert made.check(0, 1.001 * made.reference.model(*inputs), inputs) is not None
    assert any("would not fit into memory" in flag for flag in made.flags())


def test_an_expectation_of_a_block_knows_its_own_shape() -> None:
    made = with_rows()
    expectation = BlockExpectation(
        made.reference, made.loaded.draw(1)[0][:1] and [torch.randn(6, 64)], 64, label="trial", rows=ROWS, seed=2
    )
    assert expectation.accepts(expectation.rebuild([leaf for _, leaf in expectation.native]))
    assert [leaf.shape[0] for leaf in tree.tensors(expectation.inputs)] == [6]
