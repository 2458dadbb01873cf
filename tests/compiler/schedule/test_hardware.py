"""The hardware in every design: the same tasks for four GPUs and two CPUs, with designs that differ where they should, and say why."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from kernelwright.cli import main as cli
from kernelwright.compiler.designer import Design, design_module
from kernelwright.compiler.hardware import capabilities_of
from kernelwright.compiler.language import language
from kernelwright.sketch import nodes
from kernelwright.sketch.check.rules import check
from kernelwright.sketch.interpret import interpreter
from kernelwright.sketch.print import to_source
from kernelwright.sketch.walk import statements
from kernelwright.target import Capabilities, Target

MANY = Target(
    "many",
    "cpu",
    "64 cores with small caches",
    64,
    2e11,
    {"float32": 3e12},
    caches={"L1d": 16 << 10, "L2": 128 << 10},
    features=("avx2",),
)
FEW = Target("few", "cpu", "two cores", 2, 3e10, {"float32": 2e11}, caches={"L1d": 32 << 10, "L2": 1 << 20}, features=("avx2",))
GPUS = ("t4", "a100", "h100", "mi300x")
DEVICES = {name: Capabilities.of(Target.load(name), "blocks") for name in GPUS} | {
    "few": Capabilities.of(FEW),
    "many": Capabilities.of(MANY),
}


class Wrapped(nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *x: torch.Tensor) -> torch.Tensor:
        return self.function(*x)


TASKS: dict[str, tuple[nn.Module, list[torch.Tensor]]] = {
    "product": (Wrapped(torch.matmul), [torch.zeros(512, 1024), torch.zeros(1024, 512)]),
    "half product": (Wrapped(torch.matmul), [torch.zeros(1024, 1024).half(), torch.zeros(1024, 1024).half()]),
    "long sums": (Wrapped(torch.matmul), [torch.zeros(128, 16384), torch.zeros(16384, 128)]),
    "few rows": (Wrapped(lambda x: x.sum(-1)), [torch.zeros(8, 1 << 17)]),
    "some rows": (Wrapped(lambda x: x.softmax(-1)), [torch.zeros(64, 1 << 16)]),
    "convolution": (nn.Conv2d(32, 64, 3, padding=1).eval(), [torch.zeros(4, 32, 40, 40)]),
    "map": (Wrapped(lambda x: torch.relu(x) * 2), [torch.zeros(256, 512)]),
}


@functools.cache
def design(task: str, device: str) -> Design:
    module, inputs = TASKS[task]
    made = design_module(module, inputs, capabilities=DEVICES[device], limit=1)[0]
    assert not check(made.sketch)
    return made


def why(task: str, device: str, word: str) -> str:
    return next(note for note in design(task, device).notes if word in note)


def steps(task: str, device: str) -> list[int]:
    """Extents of the tiles of its loops, kernel by kernel."""
    return [
        s.step.value
        for kernel in design(task, device).sketch.steps
        if isinstance(kernel, nodes.Kernel) and not kernel.once
        for s, _ in statements(kernel.body)
        if isinstance(s, nodes.For) and isinstance(s.step, nodes.Int)
    ]


@pytest.mark.parametrize("device", DEVICES)
def test_every_design_says_what_it_counts_on(device: str) -> None:
    first = design("map", device).notes[0]
    assert first.startswith(f"for {DEVICES[device].title}")
    assert f"{DEVICES[device].units} " in first


def test_tiles_of_products_follow_shared_memory_registers_and_units() -> None:
    assert len({tuple(steps("product", device)) for device in GPUS}) >= 3
    assert "16 terms at a time" in why(
        "product", "t4", "tiles of"
    )  # 64 KiB of shared memory hold three deeper stages not twice
    assert "32 terms at a time" in why("product", "h100", "tiles of")  # a line of 128 bytes
    assert "for 40 units" in why("product", "t4", "tiles of")
    assert "KiB staged of 227" in why("product", "h100", "tiles of")
    assert max(steps("product", "few")) > max(steps("product", "many"))
    assert "for 64 cores with 64 KiB" in why("product", "many", "tiles of")


def test_matrix_units_by_dtype() -> None:
    assert "(f16, matrix units)" in why("half product", "h100", "product")
    assert "(f32, no matrix units)" in why("product", "h100", "product")


def test_long_sums_are_cut_by_the_number_of_units() -> None:
    parts = {}
    for device in GPUS:
        text = why("long sums", device, "parts of the sum")
        parts[device] = int(text.partition(" parts of the sum")[0].rpartition(" ")[2])
    assert parts["t4"] < parts["a100"] < parts["h100"] < parts["mi300x"]
    assert "64 cores" in why("long sums", "many", "parts of the sum")


def test_few_rows_are_cut_into_parts_for_the_units() -> None:
    counts = {
        d: int(why("few rows", d, "parts each").partition(": in ")[2].split()[0]) for d in ("t4", "a100", "h100", "mi300x")
    }
    assert counts["t4"] < counts["a100"] < counts["h100"] < counts["mi300x"]
    assert [len(design("few rows", device).sketch.steps) for device in ("few", "many", "h100")] == [1, 2, 2]


def test_enough_rows_stay_one_kernel() -> None:
    assert [len(design("some rows", device).sketch.steps) for device in ("few", "many", "t4", "h100")] == [1, 1, 1, 1]
    assert len(design("some rows", "mi300x").sketch.steps) > 1  # 304 compute units, 64 rows


def test_convolutions_follow_caches_and_shared_memory() -> None:
    assert steps("convolution", "t4") != steps("convolution", "h100")
    assert steps("convolution", "few") != steps("convolution", "many")
    assert "for 304 units" in why("convolution", "mi300x", "convolution 32 -> 64")


def test_maps_give_every_unit_a_block() -> None:
    tiles = {device: max(steps("map", device)) for device in DEVICES}
    assert tiles["t4"] > tiles["h100"] > tiles["mi300x"]
    assert "tiles of 1,024 elements" in why("map", "many", "tiles of")
    assert "tiles of 2,048 elements" in why("map", "few", "tiles of")


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_computed_does_not_depend_on_the_device(device: str) -> None:
    a, b, x = torch.randn(70, 600), torch.randn(600, 50), torch.randn(3, 70000)
    for function, inputs in ((torch.matmul, [a, b]), (lambda x: x.mean(-1), [x])):
        made = design_module(Wrapped(function), inputs, capabilities=DEVICES[device], limit=1)[0]
        torch.testing.assert_close(interpreter.call(made.sketch, inputs, {}), function(*inputs), rtol=1e-4, atol=1e-3)


def test_a_target_of_ones_own_takes_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = 'title = "Mine 1"\nkind = "cuda"\ncores = 7\nbandwidth = 1e11\nshared_memory = 16_384\nregisters = 16_384\nsource = "a test"\n'
    (tmp_path / "mine.toml").write_text(sheet + "[peak_flops]\nfloat32 = 1e12\n")
    monkeypatch.setenv("KERNELWRIGHT_TARGETS", str(tmp_path))
    module, inputs = TASKS["product"]
    mine = design_module(module, inputs, capabilities=capabilities_of(language("triton"), "mine"), limit=1)[0]
    assert "for Mine 1" in mine.notes[0]
    assert to_source(mine.sketch) not in {to_source(design("product", device).sketch) for device in GPUS}
    task = tmp_path / "task.py"
    task.write_text(
        "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, a, b):\n        return a @ b\n\n"
        "def get_inputs():\n    return [torch.randn(96, 64), torch.randn(64, 80)]\n\ndef get_init_inputs():\n    return []\n"
    )
    assert cli.run(["sketch", str(task), "--dsl", "triton", "--target", "mine", "--check"]) == 0
    said = capsys.readouterr().err
    assert "for Mine 1 (vendor): 7 units" in said
    assert "of 16; " in said
