"""Migration by its parts: what a file carries, the sketch as a reference, re-scheduling by a device's rules, recorded outputs, refusals."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from kernelwright.cli.main import run
from kernelwright.compiler.language import language
from kernelwright.core.errors import KernelFileError, TaskError
from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.core.task.load import load_task
from kernelwright.jobs.migrate import device_rules, golden, reference, sides
from kernelwright.jobs.migrate.lifting import resized
from kernelwright.jobs.migrate.reschedule import Rules, breaches, reschedule
from kernelwright.jobs.migrate.source import carried
from kernelwright.sketch.check.rules import check
from kernelwright.sketch.interpret import interpreter
from kernelwright.sketch.module import SketchModule, widened
from kernelwright.sketch.parse import parse
from kernelwright.target import Capabilities, Target

PAIRS = Path(__file__).parents[3] / "bench" / "migration.py"

LINEAR = '''"""x @ w.T + b."""

name = "linear"

x = tensor([100, 130], f32, role="input", source="0")
w = tensor([70, 130], f32, role="param", source="fc.weight")
b = tensor([70], f32, role="param", source="fc.bias")
y = tensor([100, 70], f32, role="output")

@kernel
def linear():
    for i in parallel(0, 100, 50):
        for j in parallel(0, 70, 35):
            acc = full([50, 35], 0.0, f32)
            for k in range(0, 130, 65):
                left = load(x[i:i + 50, k:k + 65], pad=0.0)
                right = load(w[j:j + 35, k:k + 65], pad=0.0)
                acc = gemm(left, permute(right, [1, 0]), acc)
            store(y[i:i + 50, j:j + 35], acc + load(b[j:j + 35], pad=0.0))

returns("y")
'''

LOOKUP = '''"""Rows of a table."""

name = "lookup"

ids = tensor([20], i64, role="input", source="0")
table = tensor([7, 8], f32, role="param", source="weight")
y = tensor([20, 8], f32, role="output")

@kernel
def lookup():
    for i in parallel(0, 20):
        at = load(ids[i:i + 1])
        store(y[i:i + 1, :], load(table[pick(at), :]))

returns("y")
'''


def written(text: str, dsl: str) -> str:
    return language(dsl).lower(parse(text))


@pytest.fixture(scope="module")
def pairs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("migration_bench", PAIRS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["migration_bench"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("dsl", ["cpp", "triton", "tilelang", "cuda_c"])
def test_a_kernel_carries_its_sketch_and_its_state_in_every_language(dsl: str) -> None:
    found = carried(Kernel.from_source(written(LINEAR, dsl), dsl=dsl))
    assert [parse(text) for text in found.texts] == [parse(LINEAR)]
    assert found.state == (("fc.weight", (70, 130), "float32", False), ("fc.bias", (70,), "float32", False))


def test_a_file_that_is_not_python_or_carries_nonsense_is_one_sentence() -> None:
    with pytest.raises(KernelFileError, match="not Python"):
        carried(Kernel.from_source("def f(:\n", dsl="cpp"))
    with pytest.raises(KernelFileError, match="does not parse"):
        carried(Kernel.from_source("SKETCH = 'for x in'\n", dsl="cpp"))


def test_a_sketch_stands_as_a_task_also_in_fp64() -> None:
    text = reference.task_text("linear", [parse(LINEAR)], ())
    loaded = load_task(Task.from_source(text, path="linear_as_task.py"))
    model, inputs = loaded.construct(0), loaded.draw(0)[0]
    state = model.state_dict()
    wanted = inputs[0] @ state["fc.weight"].T + state["fc.bias"]
    torch.testing.assert_close(model(*inputs), wanted, rtol=1e-4, atol=1e-4)
    wide = model.double()(inputs[0].double())
    assert wide.dtype == torch.float64
    torch.testing.assert_close(wide, inputs[0].double() @ state["fc.weight"].double().T + state["fc.bias"].double())


def test_a_cast_below_the_inputs_stays_a_rounding_in_fp64() -> None:
    text = 'name = "r"\n\nx = tensor([4], f32, role="input", source="0")\ny = tensor([4], f32, role="output")\n\n@kernel\ndef r():\n'
    text += '    store(y[0:4], cast(cast(load(x[0:4]), bf16), f32))\n\nreturns("y")\n'
    x = torch.tensor([1.001, 2.0, 3.14159, -0.3], dtype=torch.float64)
    got = interpreter.call(widened(parse(text)), [x], {})
    assert torch.equal(got, x.bfloat16().double())
    assert torch.equal(SketchModule([text])(x.float()), x.float().bfloat16().float())


def test_inputs_follow_from_the_sketch_and_picked_positions_exist() -> None:
    assert reference.inputs_of(parse(LOOKUP)) == "i64[20]<7"
    with pytest.raises(TaskError, match=r"the kernel takes i64\[20\]<7, not i64\[21\]"):
        reference.task_text("lookup", [parse(LOOKUP)], (), ["i64[21]"])


def test_other_sizes_are_odd_and_equal_ones_stay_equal() -> None:
    assert resized("f32[128, 512], f32[512], i64[8]<7, 0.5") == "f32[101,409], f32[409], i64[8]<7, 0.5"


def test_only_what_breaks_a_rule_is_changed_and_the_result_is_checked() -> None:
    h100, t4 = (Capabilities.of(Target.load(name), "blocks") for name in ("h100", "t4"))
    plan = reschedule(parse(LINEAR), h100)
    assert plan.changes
    assert all("is not made of whole 16s" in change.why for change in plan.changes)
    assert not check(plan.sketch)
    left = breaches(plan.sketch, Rules.of(h100))
    assert sum(b.amount for b in left) < sum(b.amount for b in breaches(parse(LINEAR), Rules.of(h100)))
    inputs = torch.randn(100, 130)
    state = {"fc.weight": torch.randn(70, 130), "fc.bias": torch.randn(70)}
    torch.testing.assert_close(
        interpreter.call(plan.sketch, [inputs], state), interpreter.call(parse(LINEAR), [inputs], state), rtol=1e-4, atol=1e-3
    )
    assert Rules.of(t4).staged < Rules.of(h100).staged
    kept = reschedule(parse(LOOKUP), h100)
    assert kept.changes == ()
    assert kept.sketch == parse(LOOKUP)


def test_ascend_has_no_float64_and_wants_aligned_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sheet = 'title = "Ascend"\nkind = "ascend"\ncores = 24\nbandwidth = 1.6e12\nsource = "test"\n'
    (tmp_path / "ascend.toml").write_text(sheet)
    monkeypatch.setenv("KERNELWRIGHT_TARGETS", str(tmp_path))
    with pytest.raises(device_rules.NotOnDevice, match="float64"):
        device_rules.adapted([parse(LINEAR.replace("f32", "f64"))], "ascend")
    remarks = device_rules.adapted([parse(LINEAR)], "ascend")
    assert any("rows of x are 520 bytes" in remark for remark in remarks)
    assert device_rules.adapted([parse(LINEAR)], "h100") == []


def test_recorded_outputs_are_reproduced_or_the_case_is_named(tmp_path: Path) -> None:
    state = {"weight": torch.randn(7, 8)}
    ids = torch.randint(0, 7, (20,))
    torch.save([{"inputs": [ids], "outputs": state["weight"][ids], "state": state}], tmp_path / "good.pt")
    torch.save({"inputs": [ids], "outputs": state["weight"][ids] + 1, "state": state}, tmp_path / "bad.pt")
    assert golden._compare(str(tmp_path / "good.pt"), [LOOKUP]) == 1
    with pytest.raises(golden.Disagrees, match="case 0, output 0"):
        golden._compare(str(tmp_path / "bad.pt"), [LOOKUP])


def test_a_recording_says_what_a_kernel_is_called_with(tmp_path: Path) -> None:
    torch.save(
        [{"inputs": [torch.zeros(3, 4), {"ids": torch.zeros(5, dtype=torch.int64)}, 2.0], "outputs": ()}], tmp_path / "r.pt"
    )
    assert golden._inputs(str(tmp_path / "r.pt")) == "f32[3,4], i64[5]"


def test_functions_are_joined_by_the_sketchs_kernels() -> None:
    one, two = (sides.functions(written(LINEAR, dsl)) for dsl in ("triton", "cpp"))
    found = sides.pairs(["linear"], one, two)
    title, left, right = found[0]
    assert title == "linear"
    assert "@triton.jit" in left
    assert "static void linear(" in right
    assert 'extern "C"' not in right
    assert all(line[sides.WIDTH :].startswith(" |") for line in sides.columns(left, right).splitlines())


@pytest.mark.slow
def test_all_twelve_pairs_compute_the_same(pairs: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [task for task in pairs.sample(400) if task[1] in ("softmax", "linear_gelu", "gelu", "cumsum")][:2]
    monkeypatch.setattr(pairs, "sample", lambda count: tasks)
    rows = pairs.run(2)
    assert len(tasks) == 2
    assert {row["pair"] for row in rows} == {f"{a} {b}" for a in pairs.LANGUAGES for b in pairs.LANGUAGES}
    assert [(row["task"], row["pair"], row["result"]) for row in rows if row["result"] != "same"] == []


@pytest.mark.slow
def test_all_twelve_pairs_of_every_family(pairs: ModuleType) -> None:
    rows = [row for row in pairs.run(40) if not row["result"].startswith("no ")]
    wrong = [(row["task"], row["pair"], row["result"]) for row in rows if row["result"].startswith("wrong")]
    assert wrong == []
    assert sum(row["result"] == "same" for row in rows) > 0.9 * len(rows)


def test_migrate_from_the_command_line_without_a_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kernel.py").write_text(written(LOOKUP, "cuda_c"))
    out = tmp_path / "out"
    assert run(["migrate", str(tmp_path / "kernel.py"), "--to", "cpp", "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"]["status"] == told["source_verdict"]["status"] == "correct"
    assert {"kernel", "sketch", "verdict", "run"} <= set(told)
    assert {path.name for path in out.iterdir()} >= {"kernel.py", "sketch.py", "verdict.json", "migration.md", "task.py"}
    text = (out / "migration.md").read_text()
    assert "## Side by side" in text
    assert "__global__" in text
    assert run(["show", told["run"]]) == 0
    assert run(["resume", told["run"], "--json"]) == 0


@pytest.mark.parametrize(
    ("text", "extra", "words"),
    [
        ("print(1)\n", ["--to", "cpp"], "no kernel language was recognised"),
        ("import triton\n", ["--to", "fortran"], "there is no language 'fortran'"),
        ("import triton\n", ["--to", "cpp", "--inputs", "f33[4]"], "there is no dtype 'f33'"),
        ("import triton\n", ["--to", "cpp", "--target", "h100"], "run on this machine's CPU, not on h100"),
        ("import triton\n", ["--to", "cpp", "--golden", "nowhere.pt"], "there is no such file of recorded outputs"),
    ],
)
def test_what_cannot_be_migrated_is_one_sentence(
    tmp_path: Path, text: str, extra: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kernel.py").write_text(text)
    assert run(["migrate", str(tmp_path / "kernel.py"), *extra]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said
