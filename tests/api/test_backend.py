"""torch.compile(model, backend="kernelwright"): right in every way that a model is used; `race=False` uses whatever is right."""

import copy
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import kernelwright
from kernelwright.core.errors import ConfigError, UnsupportedOperator


def compiled(model: Any, **options: Any) -> Any:
    return torch.compile(model, backend="kernelwright", options={"race": False, **options})


def close(got: Any, want: Any) -> None:
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def used(model: nn.Module) -> bool:
    return any(record.used for record in kernelwright.explain(model).records)


class Block(nn.Module):
    """A layer with rotary positions, as people write it: views, chunks, tables made on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)

    def rope(self, x: torch.Tensor) -> torch.Tensor:
        steps, depth = x.shape[-2:]
        angle = torch.arange(steps)[:, None] / 10000 ** (torch.arange(0, depth, 2) / depth)
        cos, sin = (torch.cat([t, t], -1) for t in (angle.cos(), angle.sin()))
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat([-second, first], -1) * sin

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = (part.view(b, t, 4, d // 4).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        seen = F.scaled_dot_product_attention(self.rope(q), self.rope(k), v, is_causal=True)
        return x + self.out(seen.transpose(1, 2).reshape(b, t, d))


def test_a_block_is_right_and_stays_right_when_its_weights_change() -> None:
    model = Block().eval()
    fast, x = compiled(model), torch.randn(2, 8, 32)
    with torch.no_grad():
        for _ in range(2):
            close(fast(x), model(x))
        model.qkv.weight.mul_(1.5)
        close(fast(x), model(x))
        model.norm.weight.data += 1.0  # no version counter sees this
        close(fast(x), model(x))
        model.load_state_dict(Block().state_dict())
        close(fast(x), model(x))
    assert "kernelwright" in str(kernelwright.explain(model))
    (row,) = kernelwright.explain(model).records[0].rows  # causal attention, its projections and the tables in one
    assert row.used
    assert "attention" in row.operators


def test_a_cache_changed_in_place_is_changed_once_a_call() -> None:
    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("cache", torch.zeros(2, 8, 16))
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            self.cache.index_copy_(1, place, x)
            return torch.softmax(self.cache @ x.transpose(1, 2) + self.calls, -1)

    model = Cached()
    twin = copy.deepcopy(model)
    fast = compiled(model)
    with torch.inference_mode():
        for k in range(4):
            x, place = torch.randn(2, 1, 16), torch.tensor([k])
            close(fast(x, place), twin(x, place))
            close(model.cache, twin.cache)
    assert float(model.calls) == 4


def test_views_and_aliases_come_back_as_eager_gives_them() -> None:
    def forward(x: torch.Tensor) -> Any:
        y = torch.relu(x) + 1
        y.add_(2)
        x.mul_(2)
        return y.transpose(0, 1), y[1:], x.view(-1), y.t().exp()

    fast = compiled(forward)
    with torch.no_grad():
        for _ in range(2):
            mine = torch.randn(4, 6)
            theirs = mine.clone()
            got, want = fast(mine), forward(theirs)
            for a, b in zip(got, want, strict=True):
                close(a, b)
                assert a.stride() == b.stride()
            close(mine, theirs)
            got[2][0] = 5.0
            assert float(mine[0, 0]) == 5.0


def test_training_goes_on_as_with_eager() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 1))
    twin = copy.deepcopy(model)
    fast = compiled(model)
    losses: list[list[float]] = [[], []]
    for run, net, own in ((0, fast, model), (1, twin, twin)):
        torch.manual_seed(1)
        steps = torch.optim.SGD(own.parameters(), 0.1)
        for _ in range(4):
            loss = net(torch.randn(4, 8)).square().mean()
            steps.zero_grad()
            loss.backward()
            steps.step()
            losses[run].append(loss.item())
    assert losses[0] == losses[1]
    assert "gradients" in kernelwright.explain(model).records[0].why


def test_autocast_keeps_eagers_dtypes() -> None:
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32), nn.LayerNorm(32)).eval()
    fast, x = compiled(model), torch.randn(16, 32)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        for _ in range(2):
            got, want = fast(x), model(x)
            assert got.dtype == want.dtype
            torch.testing.assert_close(got, want, rtol=5e-2, atol=5e-2)


def test_sizes_that_vary_are_served_by_one_kernel() -> None:
    model = Block().eval()
    fast = compiled(model)
    with torch.no_grad():
        for steps in (4, 5, 6, 9, 17, 33, 5):
            x = torch.randn(2, steps, 32)
            close(fast(x), model(x))
    first, second = kernelwright.explain(model).records
    assert first.used
    assert second.used
    assert "one kernel for any of them, in use at 5" in second.why


def test_a_graph_that_changes_its_input_gets_no_kernel_for_any_size() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2

    fast = compiled(forward)
    with torch.no_grad():
        for rows in (4, 5, 6):
            x = torch.zeros(rows, 8)
            close(fast(x), torch.full((rows, 8), 2.0))
            close(x, torch.ones(rows, 8))
    assert "changes an input in place" in kernelwright.explain().records[-1].why


def test_a_size_that_keeps_coming_gets_its_program_and_others_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise UnsupportedOperator("this graph", "a test refuses it")

    monkeypatch.setattr("kernelwright.api.backend.kernel_for_any_size", refuse)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
    fast = compiled(model)
    with torch.no_grad():
        for rows in (4, 5, 6, 6, 6, 6, 7, 4):
            x = torch.randn(rows, 8)
            close(fast(x), model(x))
    records = kernelwright.explain(model).records
    assert [r.used for r in records] == [True, False, True]
    assert "1 of at most 4 sizes" in records[1].why
    assert "a test refuses it" in records[1].why


def test_batch_norm_in_use_joins_its_convolution() -> None:
    """It gives two empty tensors beside its result, which nobody reads."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()).eval()
    fast, x = compiled(model), torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        close(fast(x), model(x))
    (row,) = kernelwright.explain(model).records[0].rows
    assert row.used
    assert "batch_norm" in row.operators


def test_batch_norm_in_training_mode_is_designed_by_its_decomposition() -> None:
    model = nn.Sequential(nn.BatchNorm2d(6), nn.ReLU()).train()
    twin = copy.deepcopy(model)
    fast = compiled(model)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(4, 6, 5, 5) * 3 + 1
            close(fast(x), twin(x))
    close(model[0].running_mean, twin[0].running_mean)
    close(model[0].running_var, twin[0].running_var)
    rows = kernelwright.explain(model).records[0].rows
    assert next(row for row in rows if "batch_norm" in row.operators).used


def test_one_of_several_results_is_read_where_they_are_made() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        values, places = torch.sort(x.softmax(-1) @ x.t(), -1)
        late = torch.linalg.solve(values @ values.t() + torch.eye(6), x)  # stays with eager, between two pieces
        return late.tanh() + places.float().mean(-1, keepdim=True)

    fast, x = compiled(forward), torch.randn(6, 6)
    with torch.no_grad():
        close(fast(x), forward(x))
    assert kernelwright.explain().records[-1].used


def test_random_numbers_come_from_eagers_stream() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.multinomial(torch.softmax(x * 2, -1), 2) + torch.relu(x).sum().long()

    fast, x = compiled(forward), torch.randn(3, 10)
    with torch.no_grad():
        torch.manual_seed(3)
        want = [forward(x) for _ in range(3)]
        torch.manual_seed(3)
        assert all(torch.equal(a, fast(x)) for a in want)
    assert kernelwright.explain().records[-1].used


def test_threads_share_a_compiled_model() -> None:
    model = Block().eval()
    fast = compiled(model)
    xs = [torch.randn(2, 8, 32) for _ in range(4)]
    wrong: list[float] = []

    def work(x: torch.Tensor) -> None:
        with torch.no_grad():
            for _ in range(20):
                wrong.append(float((fast(x) - model(x)).abs().max()))

    threads = [threading.Thread(target=work, args=(x,)) for x in xs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wrong) == 80
    assert max(wrong) < 1e-4


def test_eager_serves_until_background_builds_are_there() -> None:
    model = nn.Sequential(nn.Linear(24, 24), nn.Softplus(), nn.LayerNorm(24)).eval()
    fast, x = compiled(model, background=True), torch.randn(5, 24)
    with torch.no_grad():
        close(fast(x), model(x))
        kernelwright.wait()
        close(fast(x), model(x))
    assert used(model)


def test_a_fault_of_ours_leaves_the_graph_with_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Any) -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr("kernelwright.api.program.Program.prepare", fail)
    model = nn.Linear(4, 4)
    fast, x = compiled(model), torch.randn(2, 4)
    with torch.no_grad():
        for _ in range(2):
            close(fast(x), model(x))
    assert "ZeroDivisionError: of ours" in kernelwright.explain(model).records[0].why


def test_options_that_do_not_exist_are_named() -> None:
    fast = torch.compile(nn.ReLU(), backend="kernelwright", options={"speed": 11})
    with torch.no_grad(), pytest.raises(Exception, match="speed") as caught:
        fast(torch.ones(2))
    assert isinstance(caught.value, ConfigError) or "ConfigError" in repr(caught.value)


SECOND = """
import os, sys
import torch
from torch import nn
import kernelwright
from kernelwright.api import libraries
torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 16), nn.SiLU(), nn.LayerNorm(16)).eval()
def refuse(*_):
    raise SystemExit("a build in the second process")
if sys.argv[1] == "second":
    import kernelwright.api.trial as trial
    trial.design = trial.build = refuse
fast = torch.compile(model, backend="kernelwright", options={"race": False})
x = torch.randn(4, 16)
with torch.no_grad():
    for _ in range(2):
        assert torch.allclose(fast(x), model(x), atol=1e-5)
    assert kernelwright.explain(model).records[0].used, kernelwright.explain(model)
    child = os.fork()
    if not child:
        ok = torch.allclose(fast(x), model(x), atol=1e-5)
        os._exit(0 if ok else 9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_a_second_process_builds_nothing_and_forked_ones_compute() -> None:
    for which in ("first", "second"):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(SECOND), which], capture_output=True, text=True, timeout=250, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
