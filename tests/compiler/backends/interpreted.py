"""A child process of the coders' tests: LANGUAGE FOLDER [EXECUTION] in; lowers the folder's sketches, runs the kernels on the language's
runtime and compares with the sketch's own interpreter."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from kernelwright.compiler.language import language
from kernelwright.sketch.index import evaluate
from kernelwright.sketch.interpret import interpreter
from kernelwright.sketch.interpret.operations import TORCH_DTYPE
from kernelwright.sketch.parse import parse
from kernelwright.target import Target

NAME = sys.argv[1]
runtime = importlib.import_module(f"kernelwright.compiler.backends.{NAME}.runtime")


def inputs_of(sketch, given: dict[str, int]) -> list[torch.Tensor]:
    sizes = {s.name: s.value for s in sketch.sizes} | {t.name: t.value for t in sketch.tunables} | given
    made = []
    for tensor in sorted((t for t in sketch.tensors if t.role == "input"), key=lambda t: int(t.source)):
        shape, kind = [int(evaluate(i, sizes)) for i in tensor.shape], TORCH_DTYPE[tensor.dtype]
        made.append(torch.randn(shape).to(kind) if kind.is_floating_point else torch.randint(0, 4, shape).to(kind))
    return made


def compare(path: Path) -> str:
    case = json.loads(path.read_text())
    sketch = parse(case["sketch"])
    file = path.with_suffix(".kernel.py")
    file.write_text(language(NAME).lower(sketch))
    spec = importlib.util.spec_from_file_location(f"kernel_{path.stem}", file)
    module = importlib.util.module_from_spec(spec)
    with runtime.context(calling=False):
        spec.loader.exec_module(module)
        model = module.ModelNew()
    state = {name: torch.randn(tensor.shape).to(tensor.dtype) for name, tensor in model.state_dict().items()}
    model.load_state_dict(state)
    for sizes in case.get("sizes", [{}, {}]):
        inputs = inputs_of(sketch, sizes)
        wanted = interpreter.call(sketch, [x.clone() for x in inputs], state)
        with torch.no_grad(), runtime.context(calling=True):
            got = model(*inputs)
        one, two = torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(wanted)
        for a, b in zip(one, two, strict=True):
            close = {"rtol": 2e-4, "atol": 2e-5} if a.dtype == torch.float32 else {}
            torch.testing.assert_close(a, b, equal_nan=True, msg=lambda text, at=sizes: f"{at}: {text}", **close)
    return "same"


def main(folder: Path) -> None:
    torch.manual_seed(0)
    how = {"execution": sys.argv[3]} if len(sys.argv) > 3 else {}
    runtime.install(asdict(Target.load("h100")) | how)
    found = {}
    for path in sorted(folder.glob("*.json")):
        name = json.loads(path.read_text())["name"]
        try:
            found[name] = compare(path)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(found))


main(Path(sys.argv[2]))
