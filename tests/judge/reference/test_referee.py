"""The referee without processes: facts, trials, weights, findings; and once behind its channel."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch

from kernelwright.core.errors import TaskError
from kernelwright.core.task import Task, tree
from kernelwright.judge.reference.referee import Referee
from kernelwright.judge.reference.service import serve
from kernelwright.judge.reference.trials import Trial
from kernelwright.workers import bundle
from kernelwright.workers.channel import Channel, pair

torch.set_num_threads(1)

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def task(body: str, inputs: str, *, arguments: str = "x", init: str = "pass", extra: str = "") -> Task:
    return Task.from_source(
        HEAD
        + f"class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {init}\n"
        + f"    def forward(self, {arguments}):\n        {body}\ndef get_inputs():\n    return [{inputs}]\n{extra}"
    )


def referee(*arguments: Any, **keywords: Any) -> Referee:
    made = Referee(task(*arguments, **keywords), seed=11)
    made.weights(made.facts["state"])
    made.plan(1.0)
    return made


def judge(made: Referee, kernel: Any) -> dict[str, Any] | None:
    """Run a kernel on all trials as the judge does; the first finding."""
    for number in range(len(made.trials)):
        inputs = bundle.clone(made.draw(number)[0])
        finding = made.check(number, kernel(*inputs), inputs)
        if finding:
            return finding
    return None


def status(finding: dict[str, Any] | None) -> str | None:
    return finding["status"] if finding else None


def test_facts_of_a_task() -> None:
    facts = referee("return self.linear(x)", "torch.randn(4, 16)", init="self.linear = nn.Linear(16, 8)").facts
    assert facts["inputs"] == "float32[4, 16]"
    assert facts["outputs"] == "float32[4, 8]"
    assert facts["parameters"] == 16 * 8 + 8
    assert facts["flops"] == 2 * 4 * 16 * 8
    assert facts["longest_reduction"] == 16
    assert (facts["input_bytes"], facts["output_bytes"], facts["parameter_bytes"]) == (256, 128, 544)
    assert facts["eager_seconds"] > 0
    assert facts["aliases_inputs"] is False
    assert referee("return x.t()", "torch.randn(4, 16)").facts["aliases_inputs"] is True


def test_the_plan_has_seeds_distributions_and_a_layout() -> None:
    trials = referee("return torch.relu(x)", "torch.rand(32, 64)").trials
    own = {trial.seed for trial in trials if trial.distribution == "own" and not trial.strided}
    assert len(own) >= 3
    assert {"normal", "sparse", "large"} <= {trial.distribution for trial in trials}
    assert any(trial.strided for trial in trials)


def test_even_without_time_there_are_three_seeds_and_two_distributions() -> None:
    made = Referee(task("return torch.relu(x)", "torch.rand(32, 64)"))
    trials = made.plan(0.0)
    assert len({trial.seed for trial in trials if trial.distribution == "own"}) >= 3
    assert len({trial.distribution for trial in trials}) >= 2


def test_distributions_stay_where_the_reference_is_defined() -> None:
    made = referee("return torch.log(x).sum(1)", "torch.rand(8, 16) + 0.1")
    assert any(trial.positive for trial in made.trials)
    for number, trial in enumerate(made.trials):
        assert trial.special or bool((made.draw(number)[0][0] > 0).all())


def test_views_that_need_contiguous_inputs_get_no_strides() -> None:
    for seed in range(8):  # a slice or transposed memory, as the seed has it
        made = Referee(task("return x.view(-1) * 2", "torch.rand(8, 16)"), seed=seed)
        made.weights(made.facts["state"])
        made.plan(1.0)
        assert not any(trial.strided for trial in made.trials)


def test_indices_stay_in_range() -> None:
    made = referee("return self.table(x)", "torch.randint(0, 10, (8, 4))", init="self.table = nn.Embedding(10, 6)")
    for number in range(len(made.trials)):
        drawn = made.draw(number)[0][0]
        assert int(drawn.min()) >= 0
        assert int(drawn.max()) < 10


def test_the_reference_is_right_and_others_are_not() -> None:
    made = referee("return torch.softmax(x, -1)", "torch.randn(16, 128)")
    assert judge(made, lambda x: torch.softmax(x, -1)) is None
    assert status(judge(made, lambda x: torch.zeros_like(x))) == "wrong_values"
    assert status(judge(made, lambda x: torch.softmax(x.half(), -1).float())) == "wrong_values"
    assert status(judge(made, lambda x: torch.softmax(x, -1).double())) == "wrong_dtype"
    assert status(judge(made, lambda x: torch.softmax(x, -1)[:, :1])) == "wrong_shape"
    assert status(judge(made, lambda x: (torch.softmax(x, -1),))) == "wrong_shape"
    assert status(judge(made, lambda x: None)) == "wrong_shape"
    assert status(judge(made, lambda x: x.exp() / x.exp().sum(-1, keepdim=True))) == "wrong_values", "overflows on large inputs"


def test_a_mismatch_says_where() -> None:
    made = referee("return x * 2", "torch.randn(16, 128)")

    def kernel(x: Any) -> Any:
        y = x * 2
        y[:, 121:] = 0
        return y

    finding = judge(made, kernel)
    assert finding is not None
    assert finding["mismatch"]["region"] == "last 7 columns"
    assert (finding["mismatch"]["wrong"], finding["mismatch"]["total"]) == (16 * 7, 16 * 128)
    assert finding["mismatch"]["samples"][0].startswith("[0, 121]: expected ")
    assert "last 7 columns" in finding["reason"]


def test_inputs_may_not_be_overwritten_unless_the_reference_does() -> None:
    def in_place(x: Any) -> Any:
        return x.relu_()

    assert status(judge(referee("return torch.relu(x)", "torch.randn(4, 8)"), in_place)) == "cheating"
    made = referee("return x.relu_()", "torch.randn(4, 8)")
    assert judge(made, in_place) is None
    assert judge(made, torch.relu) is None


def test_structures_of_outputs() -> None:
    made = referee("return {'a': x * 2, 'b': [x > 0, 3, None]}", "torch.randn(4, 8)")
    assert judge(made, lambda x: {"a": x + x, "b": (x > 0, 3, None)}) is None
    assert status(judge(made, lambda x: {"a": x + x})) == "wrong_shape"
    assert status(judge(made, lambda x: {"a": x + x, "b": [x > 0, 4, None]})) == "wrong_values"
    assert status(judge(made, lambda x: {"a": x + x, "b": [x < 0, 3, None]})) == "wrong_values"


def last_largest(x: Any) -> Any:
    return x.shape[1] - 1 - x.flip(1).argmax(1)


def test_any_of_several_tied_places_is_an_answer() -> None:
    made = referee("return x.argmax(1)", "torch.randint(0, 5, (64, 40)).float()")
    assert judge(made, lambda x: x.argmax(1)) is None
    assert judge(made, last_largest) is None
    assert status(judge(made, lambda x: x.argmin(1))) == "wrong_values"
    assert status(judge(made, lambda x: torch.zeros(64, dtype=torch.int64))) == "wrong_values"
    assert status(judge(made, lambda x: last_largest(x) + 1000)) == "wrong_values"


def test_places_that_only_fp64_can_tell_apart_are_tied() -> None:
    """Probabilities that underflow are all zero in fp32; any two different of them are the next best."""
    made = referee("return torch.topk(torch.softmax(1000 * x, -1), 3, -1).indices", "torch.randn(64, 40)")

    def others(x: Any) -> Any:
        found = torch.softmax(1000 * x, -1)
        places = torch.topk(found, 3, -1).indices
        last = 39 - found.flip(-1).argmin(-1)  # the last of the zeros
        free = (places[:, :2] != last[:, None]).all(-1) & (found.sort(-1).values[:, -3] == 0)
        places[:, 2] = torch.where(free, last, places[:, 2])
        return places

    assert judge(made, others) is None
    assert status(judge(made, lambda x: others(x)[:, [0, 1, 1]])) == "wrong_values", "no place twice"
    assert status(judge(made, lambda x: others(x)[:, [2, 1, 0]])) == "wrong_values"


def test_narrow_integers_at_a_step() -> None:
    body = "s = x.abs().amax(1, keepdim=True) / 127.0; return torch.floor(x / s + 0.5).to(torch.int8)"
    made = referee(body, "torch.randn(64, 2048)")
    assert judge(made, lambda x: torch.floor(x * (1 / (x.abs().amax(1, keepdim=True) / 127.0)) + 0.5).to(torch.int8)) is None
    assert (
        status(judge(made, lambda x: torch.floor(x / (x.abs().amax(1, keepdim=True) / 126.0)).to(torch.int8))) == "wrong_values"
    )


def test_steps_that_rounding_decides_are_excused_one_by_one() -> None:
    made = referee("return torch.round(x / 0.1) * 0.1", "torch.randn(200, 200)")
    assert judge(made, lambda x: torch.round(x * 10.0) * 0.1) is None, "the product may fall on the other side of a step"
    assert status(judge(made, lambda x: torch.floor(x * 10.0) * 0.1)) == "wrong_values"
    assert status(judge(made, lambda x: torch.round(x.half().float() * 10) * 0.1)) == "wrong_values"


def test_casts_inside_the_reference_do_not_narrow_the_truth() -> None:
    body = "h = x.float(); return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)"
    made = referee(body, "torch.randn(16, 64).bfloat16()")
    assert made.reference.refusal == ""
    wide = made.reference.wide(made.draw(0)[0])
    assert wide is not None
    assert wide[0][1].dtype == torch.float64
    assert not torch.equal(wide[0][1], wide[0][1].float().double()), "computed in fp64, not only stored"


def test_a_rounding_that_the_task_asks_for_stays() -> None:
    made = referee("return x.to(torch.bfloat16).float() * 3", "torch.randn(16, 64)")
    assert judge(made, lambda x: x.bfloat16().float() * 3) is None
    assert status(judge(made, lambda x: x * 3)) == "wrong_values"


def test_a_reference_that_refuses_fp64_is_its_own_measure() -> None:
    body = "assert x.dtype == torch.float32; return torch.softmax(x, -1)"
    made = referee(body, "torch.randn(16, 64)")
    assert "fp64" in " ".join(made.flags())
    assert (
        judge(
            made,
            lambda x: (
                torch.exp(x - x.max(-1, keepdim=True).values).div(1)
                / torch.exp(x - x.max(-1, keepdim=True).values).sum(-1, keepdim=True)
            ),
        )
        is None
    )
    assert status(judge(made, lambda x: torch.softmax(x.half(), -1).float())) == "wrong_values"


def test_weights_by_name_are_not_those_of_the_seed() -> None:
    made = Referee(
        task(
            "return self.norm(self.linear(x))",
            "torch.randn(4, 8)",
            init="self.linear = nn.Linear(8, 8); self.norm = nn.LayerNorm(8)",
        )
    )
    drawn = made.loaded.construct(made.seed).state_dict()
    mode, state = made.weights(made.facts["state"])
    assert mode == "names"
    assert state is not None
    assert all(not torch.equal(drawn[name], state[name]) for name in drawn)
    assert len(state["norm.weight"].unique()) > 1


def test_statistics_of_a_batch_norm_stay_legal() -> None:
    made = Referee(task("return self.norm(x)", "torch.randn(4, 8, 5)", init="self.norm = nn.BatchNorm1d(8)"))
    _, state = made.weights(made.facts["state"])
    assert state is not None
    assert bool((state["norm.running_var"] > 0).all())
    assert bool((state["norm.running_mean"] != 0).all())
    assert int(state["norm.num_batches_tracked"]) == 0


def test_without_the_names_the_seed_is_the_convention() -> None:
    made = Referee(task("return self.linear(x)", "torch.randn(4, 8)", init="self.linear = nn.Linear(8, 3)"))
    assert made.weights({"packed": [3, 8]}) == ("seed", None)
    same = made.loaded.construct(made.seed).state_dict()
    assert all(torch.equal(value, same[name]) for name, value in made.reference.model.state_dict().items())
    assert made.unheard({}) is None, "drawn weights cannot be guessed, so they need no place"


def test_a_constant_weight_needs_a_place_to_be_heard() -> None:
    made = Referee(task("return self.norm(x)", "torch.randn(4, 8)", init="self.norm = nn.LayerNorm(8)"))
    finding = made.unheard({"gamma": [8]})
    assert finding is not None
    assert finding["status"] == "wrong_values"
    assert made.unheard({"gamma": [8], "beta": [8]}) is None


def test_a_random_reference_cannot_be_judged() -> None:
    with pytest.raises(TaskError, match="forward is random"):
        Referee(task("return x + torch.rand_like(x)", "torch.randn(4, 8)"))


def test_a_reference_of_nan_cannot_be_judged() -> None:
    with pytest.raises(TaskError, match="nothing but NaN"):
        Referee(task("return x * float('nan')", "torch.randn(4, 8)"))


def test_a_running_sum_may_lose_what_is_small_beside_an_outlier() -> None:
    """Thousands of terms under half a unit of the largest are all cut off: an honest softmax in one pass does that; one in half precision
    is told by other inputs."""
    made = referee("return torch.softmax(x, -1)", "torch.randn(64, 8192)")

    def running(x: torch.Tensor) -> torch.Tensor:
        raised = torch.exp(x - x.amax(-1, keepdim=True))
        return raised / torch.from_numpy(np.add.accumulate(raised.numpy(), axis=-1, dtype=np.float32)[..., -1:].copy())

    for seed in range(10):
        expected = made.expect(Trial(7919 * seed + 5, distribution="outliers"))
        assert expected.check_outputs(running(*expected.inputs)) is None
    assert status(judge(made, lambda x: torch.softmax(x.half(), -1).float())) == "wrong_values"


def test_timed_inputs_are_fresh_and_checked() -> None:
    made = referee("return x * 2", "torch.randn(64, 64)")
    first = made.draw_timed(3, 5)
    again = [tree.transform(inputs, lambda tensor: tensor.clone()) for inputs in first]
    assert not torch.equal(first[0][0], first[1][0])
    exclusive = {"then": [torch.ones(3)], "now": [torch.ones(3)]}
    assert made.check_timed(1, again[1][0] * 2, exclusive) is None
    assert status(made.check_timed(1, again[0][0] * 2, exclusive)) == "wrong_values"
    assert status(made.check_timed(1, again[1][0] * 2, {"then": [torch.zeros(3)], "now": [torch.ones(3)]})) == "cheating"
    assert not torch.equal(made.draw_timed(1, 6)[0][0], again[0][0])


def test_behind_a_channel() -> None:
    channel, theirs = pair()
    thread = threading.Thread(target=serve, args=(Channel(theirs),), daemon=True)
    thread.start()
    subject = task("return x * 2", "torch.randn(8, 8)")
    bad, _ = channel.request({"op": "open", "path": "t.py", "source": "class Model: pass"}, timeout=60)
    assert bad["ok"] is False
    assert "not a torch.nn.Module" in bad["task_error"]
    early, _ = channel.request({"op": "plan"}, timeout=60)
    assert early["ok"] is True or "error" in early
    opened, fds = channel.request({"op": "open", "path": "t.py", "source": subject.source}, timeout=60)
    assert opened["facts"]["outputs"] == "float32[8, 8]"
    assert bundle.unpack(opened["header"], fds[0]) == [[], {}]
    assert channel.request({"op": "weights", "names": {}}, timeout=60)[0]["mode"] == "seed"
    planned, _ = channel.request({"op": "plan", "budget_s": 0.2}, timeout=60)
    drawn, fds = channel.request({"op": "draw", "trial": 0}, timeout=60)
    inputs = bundle.unpack(drawn["header"], fds[0])
    for answer, expected in ((inputs[0] * 2, None), (inputs[0] * 3, "wrong_values")):
        outputs, after = bundle.pack(answer), bundle.pack(inputs)
        message = {"op": "check", "trial": 0, "header": outputs.header, "after_header": after.header}
        reply, _ = channel.request(message, [outputs.fd, after.fd], timeout=60)
        assert status(reply["finding"]) == expected
    forged, _ = channel.request({"op": "check", "trial": 0, "header": {"size": 3}}, [outputs.fd], timeout=60)
    assert status(forged["finding"]) == "cheating"
    assert planned["reference"] == "fp64"
    assert channel.request({"op": "flags"}, timeout=60)[0]["flags"] == []
    assert channel.request({"op": "nonsense"}, timeout=60)[0]["ok"] is False
    channel.close()
    thread.join(timeout=10)
    assert not thread.is_alive()


def test_roundings_are_no_fault_where_the_truth_is_zero_because_terms_cancel() -> None:
    made = referee("return x.sum(1).square() - x.square().sum(1)", "torch.randn(300, 1)")

    def fused(x: torch.Tensor) -> torch.Tensor:  # as a fused multiply-add leaves it: the rounding of the product
        return (x.double().square() - x.square().double()).float().sum(1)

    assert judge(made, fused) is None
    assert status(judge(made, lambda x: fused(x) + 1e-4)) == "wrong_values"


def test_the_least_work_counts_what_algebra_saves_and_what_fused_layers_hide() -> None:
    window = referee("return self.conv(x)", "torch.randn(1, 4, 12, 12)", init="self.conv = nn.Conv2d(4, 4, 3, padding=1)").facts
    assert window["least_flops"] == window["flops"] / 4
    strided = referee("return self.conv(x)", "torch.randn(1, 4, 12, 12)", init="self.conv = nn.Conv2d(4, 4, 3, stride=2)").facts
    assert strided["least_flops"] == strided["flops"]
    product = Referee(task("return x @ x", "torch.randn(1024, 1024)")).facts
    assert product["least_flops"] == 0.875 * product["flops"]
    layer = "self.layer = nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)"
    encoder = referee("return self.layer(x)", "torch.randn(2, 8, 32)", init=layer).facts
    assert encoder["flops"] > 2 * 16 * (4 * 32 * 32 + 2 * 32 * 64)
    recurrent = referee("return self.rnn(x)[0]", "torch.randn(5, 3, 16)", init="self.rnn = nn.LSTM(16, 8)").facts
    assert recurrent["flops"] == 2 * 5 * 3 * 4 * 8 * (16 + 8)


def test_a_short_call_takes_some_time_though_processor_time_comes_in_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.judge.reference.facts.time.process_time", lambda: 0.0)
    made = Referee(task("return torch.relu(x)", "torch.randn(16, 16)"))
    assert made.facts["eager_seconds"] > 0
    made.plan(0.0)
    stale = made.learnt()
    stale["facts"]["eager_seconds"] = 0.0
    assert Referee(made.task, known=stale).facts["eager_seconds"] > 0
