"""What the schedules for GPUs come to, family by family: predicted times of the built-in kernels, from counts of their compiled code.

    python bench/gpu_schedules.py --label before [--dsl triton,cuda_c] [--target a100,h100] [--filter product]
    python bench/gpu_schedules.py --table

Each task is designed and lowered for the target, its launches are compiled and a few of their blocks executed with counts (`gpu/`), and
the interval model predicts their time. Nothing is measured: no GPU takes part. Rows go to bench/results/gpu_schedules.jsonl under their
label; `--table` writes bench/results/gpu_schedules.md: each label beside the bound by memory and arithmetic (speed of light). TileLang
is lowered for sm_80 (its code for sm_90 copies by TMA, which is not executed).
"""

from __future__ import annotations

import argparse
import json
import math
import re
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "gpu_schedules.jsonl"
TABLE = HERE / "results" / "gpu_schedules.md"


@dataclass(frozen=True)
class Case:
    """A module and its inputs; `flops` on the units that `kind` names, `moved` bytes that memory must move at least."""

    name: str
    family: str
    body: str
    inputs: tuple[tuple[int, ...], ...]
    flops: float = 0.0
    dtype: str = "float32"
    init: str = ""

    @property
    def source(self) -> str:
        """A task file."""
        shapes = ", ".join(f"torch.randn({', '.join(map(str, shape))}).to(torch.{self.dtype})" for shape in self.inputs)
        names = ", ".join("abcdefg"[: len(self.inputs)])
        construct = f"    def __init__(self):\n        super().__init__()\n        {self.init}\n" if self.init else ""
        return (
            f"import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\nclass Model(nn.Module):\n{construct}"
            f"    def forward(self, {names}):\n        return {self.body}\n\n\ndef get_inputs():\n    return [{shapes}]\n\n\n"
            "def get_init_inputs():\n    return []\n"
        )


def product(name: str, m: int, n: int, k: int, dtype: str = "float32", body: str = "a @ b", batch: int = 1) -> Case:
    """A matrix product."""
    lead = (batch,) if batch > 1 else ()
    b = (*lead, n, k) if ".mT" in body or "F.linear" in body else (*lead, k, n)
    return Case(name, "products", body, ((*lead, m, k), b), 2.0 * batch * m * n * k, dtype)


HEADS = (4, 16, 1024, 64)
CASES = (
    product("product_1024", 1024, 1024, 1024),
    product("product_2048", 2048, 2048, 2048),
    product("product_4096", 4096, 4096, 4096),
    product("product_4096_bf16", 4096, 4096, 4096, "bfloat16"),
    product("product_1024_bf16", 1024, 1024, 1024, "bfloat16"),
    product("linear_gelu_bf16", 2048, 4096, 1024, "bfloat16", "F.gelu(F.linear(a, b))"),
    product("linear_relu", 2048, 4096, 1024, "float32", "F.relu(F.linear(a, b))"),
    product("product_odd", 1000, 1111, 999),
    product("product_long_k", 256, 256, 65536),
    product("product_skinny", 16, 4096, 4096, "float16"),
    product("product_row", 1, 4096, 4096),
    product("product_batched", 512, 512, 128, batch=64),
    Case("layernorm_rows", "norms", "F.layer_norm(a, (1024,))", ((16384, 1024),)),
    Case("layernorm_few_rows", "norms", "F.layer_norm(a, (4194304,))", ((16, 4194304),)),
    Case("rmsnorm_bf16", "norms", "F.rms_norm(a, (4096,))", ((8192, 4096),), dtype="bfloat16"),
    Case("softmax_rows", "softmax", "torch.softmax(a, -1)", ((8192, 4096),)),
    Case("softmax_long", "softmax", "torch.softmax(a, -1)", ((64, 262144),)),
    Case("logsumexp", "softmax", "torch.logsumexp(a, -1)", ((8192, 8192),)),
    Case("sum_all", "reductions", "a.sum()", ((8192, 8192),)),
    Case("sum_rows", "reductions", "a.sum(-1)", ((8192, 8192),)),
    Case("sum_columns", "reductions", "a.sum(0)", ((8192, 8192),)),
    Case("mse", "losses", "F.mse_loss(a, b)", ((8192, 4096), (8192, 4096))),
    Case("gelu", "pointwise", "F.gelu(a)", ((8192, 8192),)),
    Case("bias_swish", "pointwise", "F.silu(a + b)", ((8192, 8192), (8192,))),
    Case("scale_bf16", "pointwise", "a * 2.0 + b", ((8192, 8192), (8192, 8192)), dtype="bfloat16"),
    Case("transpose", "transposes", "a.t().contiguous()", ((8192, 8192),)),
    Case("cumsum", "scans", "torch.cumsum(a, -1)", ((8192, 8192),)),
    Case("attention", "attention", "F.scaled_dot_product_attention(a, b, c)", (HEADS,) * 3, 4.0 * 64 * 1024 * 1024 * 64),
    Case("attention_causal_fp16", "attention", "F.scaled_dot_product_attention(a, b, c, is_causal=True)", (HEADS,) * 3,
         2.0 * 64 * 1024 * 1024 * 64, "float16"),
    Case("conv3x3", "convolutions", "F.conv2d(a, b, padding=1)", ((16, 128, 56, 56), (128, 128, 3, 3)),
         2.0 * 16 * 56 * 56 * 128 * 128 * 9),
)  # fmt: skip


@dataclass(frozen=True)
class Launched:
    """A launch that was asked for and did not run."""

    ptx: str
    entry: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    params: bytes
    shared: int


See = Callable[[Launched], Any]


@contextmanager
def told(see: See) -> Iterator[None]:
    """Launches of `gpu/` are told instead of executed, while their tensors live."""
    from kernelwright.gpu.program import Program
    from kernelwright.gpu.report import Report

    texts: dict[int, str] = {}
    make, launch = Program.from_ptx.__func__, Program.launch  # type: ignore[attr-defined]
    busy = False

    def from_ptx(cls: Any, text: str, **options: Any) -> Any:
        program = make(cls, text, **options)
        texts[id(program)] = text
        return program

    def tell(self: Any, entry: str, grid: Any, block: Any, params: bytes, shared: int = 0, **options: Any) -> Report:
        nonlocal busy
        if busy:  # the profile executes some blocks
            return launch(self, entry, grid, block, params, shared, **options)
        busy = True
        try:
            see(Launched(texts[id(self)], entry, tuple(grid), tuple(block), bytes(params), shared))
        finally:
            busy = False
        return Report(entry)

    Program.from_ptx, Program.launch = classmethod(from_ptx), tell  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Program.from_ptx, Program.launch = classmethod(make), launch  # type: ignore[assignment, method-assign]


def launches_of(kernel: str, dsl: str, target: str, inputs: list[torch.Tensor], see: See) -> None:
    """Tells what a kernel file launches for these inputs."""
    with tempfile.TemporaryDirectory() as work:
        place = Path(work) / "kernel.py"
        place.write_text(kernel)
        _CAPTURE[dsl](place, target, inputs, see)


def _triton(place: Path, target: str, inputs: list[torch.Tensor], see: See) -> None:
    from kernelwright.compiler.backends.triton.simulated import simulated

    with told(see), simulated(target):
        _model(place)(*inputs)


def _cuda_c(place: Path, target: str, inputs: list[torch.Tensor], see: See) -> None:
    import dataclasses

    from kernelwright.compiler.backends.cuda_c import builds, runtime
    from kernelwright.target import Target

    sheet = dataclasses.asdict(Target.load(target))
    if builds._device is None:
        runtime.install(sheet)
    else:
        builds._target = sheet

    def observe(launch: Any) -> bool:
        see(Launched(launch.ptx, launch.entry, launch.grid, launch.block, launch.params, launch.shared))
        return False

    with builds.device().observed(observe), runtime.context(calling=True):
        _model(place)(*inputs)


def _tilelang(place: Path, target: str, inputs: list[torch.Tensor], see: See) -> None:
    from kernelwright.compiler.backends.tilelang import launch as handed
    from kernelwright.compiler.backends.tilelang.aot import INCLUDES, lowered
    from kernelwright.compiler.offdevice.nvcc import NVCC, run

    class Recorder:
        """Stands for a compiled kernel."""

        def __init__(self, function: Any, passes: Any) -> None:
            source, entries, _ = lowered(handed.Launched(function, dict(passes or {}), (), ()), "sm_80")
            with tempfile.TemporaryDirectory() as work:
                text, out = Path(work) / "k.cu", Path(work) / "k.ptx"
                text.write_text(source)
                flags = [f"-I{folder}" for folder in INCLUDES]
                code, said = run([str(NVCC), "-ptx", "-arch=sm_80", "-std=c++20", "-w", *flags, "-o", str(out), str(text)], 300)
                assert code == 0, said
                self.ptx = out.read_text()
            self.entries, self.source = entries, source
            self.names = [str(function.buffer_map[var].name) for var in function.params]

        def __call__(self, *given: torch.Tensor) -> None:
            by_name = dict(zip(self.names, given, strict=True))
            for name, attributes in self.entries:
                signature = re.search(rf"\b{name}\(([^)]*)\)[^;]*$", self.source, re.MULTILINE)
                assert signature is not None
                order = [part.split()[-1].lstrip("*") for part in signature[1].split(",")]
                extents = {str(axis): int(n) for axis, n in dict(attributes["thread_extent"]).items()}
                grid, block = (tuple(extents.get(f"{kind}Idx.{axis}", 1) for axis in "xyz") for kind in ("block", "thread"))
                params = struct.pack(f"<{len(order)}Q", *(by_name[each].data_ptr() for each in order))
                dynamic = int(attributes.get("dyn_shared_memory_buf") or 0)
                see(Launched(self.ptx, name, grid, block, params, dynamic))

    handed.teach(lambda func=None, *_, pass_configs=None, **__: Recorder(func, pass_configs))
    _model(place)(*inputs)


_CAPTURE = {"triton": _triton, "cuda_c": _cuda_c, "tilelang": _tilelang}


def _model(place: Path) -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location(f"kernel_{place.parent.name}", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ModelNew()


def kernel_of(case: Case, dsl: str, target: str) -> tuple[str, tuple[str, ...]]:
    """The built-in kernel, and the reasons of its design."""
    from kernelwright.compiler.designer import design_task
    from kernelwright.compiler.hardware import capabilities_of
    from kernelwright.compiler.language import language
    from kernelwright.core.task import Task

    spoken = language(dsl)
    capabilities = capabilities_of(spoken, target)
    design = design_task(Task.from_source(case.source, path=f"{case.name}.py"), capabilities=capabilities)[0]
    return spoken.lower(design.sketch, capabilities=capabilities), design.notes


def light(case: Case, target: Any, inputs: list[torch.Tensor]) -> float:
    """Seconds that no kernel for the case can beat: each input read and each output written once, and all multiplications."""
    scope: dict[str, Any] = {}
    exec(compile(case.source, case.name, "exec"), scope)
    with torch.device("meta"):
        out = scope["Model"]()(*(torch.empty_like(x, device="meta") for x in inputs))
    moved = sum(x.numel() * x.element_size() for x in (*inputs, out))
    return max(moved / target.bandwidth, case.flops / target.peak(case.dtype))


def measure(case: Case, dsl: str, name: str, text: str) -> dict[str, Any]:
    """One row: a kernel's text on a target."""
    from kernelwright.compiler.offdevice.profiling import hardware, profile_launch
    from kernelwright.target import Target

    target = Target.load(name)
    inputs = [torch.ones(shape, dtype=getattr(torch, case.dtype)) for shape in case.inputs]
    profiles: list[Any] = []

    def see(x: Launched) -> None:
        profiles.append(profile_launch(x.ptx, x.entry, x.grid, x.block, x.params, x.shared, target))

    launches_of(text, dsl, name, inputs, see)
    seconds = sum(p.prediction.seconds + hardware(target).launch_seconds for p in profiles)
    bound = light(case, target, inputs)
    worst = max(profiles, key=lambda p: p.prediction.seconds)
    accesses = [e for p in profiles for e in p.counted.executed if e.requests]
    near = [e for e in accesses if _shared(e)]
    far = [e for e in accesses if not _shared(e)]
    share = [sum(e.least * e.warps for e in far) / max(1e-9, sum(e.units * e.warps for e in far))] if far else [1.0]
    banks = sum(e.wavefronts for e in near) / max(1e-9, sum(e.least for e in near)) if near else 1.0
    return {
        "ms": round(seconds * 1e3, 5), "light_ms": round(bound * 1e3, 5), "of_light": round(bound / seconds, 3),
        "launches": len(profiles), "bound": worst.prediction.bound, "registers": max(p.registers for p in profiles),
        "spills": max(p.spills for p in profiles), "blocks": max(p.counted.blocks for p in profiles),
        "occupancy": round(worst.occupancy.fraction, 3), "sector_efficiency": round(share[0], 3), "bank_passes": round(banks, 3),
    }  # fmt: skip


def _shared(e: Any) -> bool:
    from kernelwright.gpu.profile.sampling import global_access

    return not global_access(e)


def rows() -> list[dict[str, Any]]:
    """What was put down so far, the newest of each case."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for line in RESULTS.read_text().splitlines() if RESULTS.exists() else ():
        row = json.loads(line)
        found[row["label"], row["case"], row["dsl"], row["target"]] = row
    return list(found.values())


def table() -> str:
    """All labels beside each other."""
    known = rows()
    labels = list(dict.fromkeys(row["label"] for row in known))
    out = ["# Schedules for GPUs: predicted times", "", "Written by `python bench/gpu_schedules.py --table`: predictions from counts, "
           "no GPU took part (docs/gpu_predictions.md says how near they come).",
           "Milliseconds; in brackets the share of speed of light.",
           "Blocks of causal attention differ: its figure is the mean of those sampled.", ""]  # fmt: skip
    for dsl, target in dict.fromkeys((row["dsl"], row["target"]) for row in known):
        own = [row for row in known if (row["dsl"], row["target"]) == (dsl, target)]
        out += [
            f"## {dsl}, {target}",
            "",
            f"| case | {' | '.join(labels)} | speed of light |",
            "| --- |" + " --- |" * (len(labels) + 1),
        ]
        for case in dict.fromkeys(row["case"] for row in own):
            at = {row["label"]: row for row in own if row["case"] == case}
            cells = [
                ""
                if (r := at.get(label)) is None
                else r["error"][:60]
                if "error" in r
                else f"{r['ms']:.4g} ({r['of_light']:.0%})"
                for label in labels
            ]
            best = next((r["light_ms"] for r in at.values() if "light_ms" in r), 0.0)
            out.append(f"| {case} | {' | '.join(cells)} | {best:.4g} |")
        for label in labels[1:]:
            pairs = [
                (a["ms"], b["ms"])
                for a in own for b in own
                if a["label"] == labels[0] and b["label"] == label and a["case"] == b["case"] and "ms" in a and "ms" in b
            ]  # fmt: skip
            if pairs:
                mean = math.exp(sum(math.log(a / b) for a, b in pairs) / len(pairs))
                out += ["", f"{label} against {labels[0]}: {mean:.2f}x (geometric mean of {len(pairs)})"]
        out.append("")
    return "\n".join(out)


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--label", default="now")
    parser.add_argument("--dsl", default="triton,cuda_c,tilelang")
    parser.add_argument("--target", default="a100,h100")
    parser.add_argument("--filter", default="")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    dsls, targets = options.dsl.split(","), options.target.split(",")
    asked = [(c, dsl, target) for c in CASES if re.search(options.filter, c.name) for dsl in dsls for target in targets]
    texts: list[str | Exception] = []
    for case, dsl, target in () if options.table else asked:  # all before the first capture changes this process
        try:
            texts.append(kernel_of(case, dsl, target)[0])
        except Exception as error:
            texts.append(error)
    for (case, dsl, target), text in zip(asked, texts, strict=False):
        row = {"label": options.label, "case": case.name, "family": case.family, "dsl": dsl, "target": target}
        try:
            if isinstance(text, Exception):
                raise text
            row |= measure(case, dsl, target, text)
        except Exception as error:  # a row says so
            row["error"] = f"{type(error).__name__}: {error}"[:300]
        with RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print({k: v for k, v in row.items() if k not in ("family", "label")}, file=sys.stderr)
    TABLE.write_text(table())


if __name__ == "__main__":
    main()
