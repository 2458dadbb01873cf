"""The program that triton-ascend's Python runs. It knows nothing of Kernelwright: it is sent as text, and imports only Triton.

In (a JSON file): the architecture, and kernels as `text.Work`. Out (another): how far each kernel went, `ttir`, `linalg` or `binary`; or
the first error, with the stage that found it. The arguments' types and specialisation are Triton's own (a launch is begun, and
stopped by its hook before it compiles); the stages are run one by one, so that without CANN's compiler the last one is left out
instead of failing.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import tempfile
from typing import Any

import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend
from triton.runtime.jit import JITFunction, MockTensor

STAGES = {"ttir": "ttir", "ttadapter": "linalg", "npubin": "binary"}
"""triton-ascend's names of its stages, and ours."""


class Driver:
    """An NPU that is not there."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def get_current_target(self) -> Any:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: Any = None) -> int:
        return 0


def defined(text: str, name: str, folder: str) -> Any:
    """The kernel, from a file: Triton reads a function's source there."""
    path = os.path.join(folder, "kernel_text.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    spec = importlib.util.spec_from_file_location("kernel_text", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel_text"] = module
    spec.loader.exec_module(module)
    return getattr(module, name)


def argument(said: dict[str, Any]) -> Any:
    """An argument as Triton is given it: a tensor without memory, a dtype, a number."""
    if "pointer" in said:
        return MockTensor(said["pointer"])
    return tl.dtype(said["dtype"]) if "dtype" in said else said["value"]


def specialised(function: Any, work: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Signature, constants and attributes as a launch would have them."""
    seen: dict[str, Any] = {}

    def hook(**told: Any) -> bool:
        seen.update(told["compile"])
        return True

    JITFunction.cache_hook = staticmethod(hook)
    kwargs = {name: argument(said) for name, said in work["kwargs"].items()}
    function.run(*map(argument, work["args"]), grid=(1,), warmup=True, **kwargs)
    return seen["signature"], seen["constants"], seen["configs"][0]


def lowered(work: dict[str, Any], target: Any, folder: str, *, binary: bool) -> dict[str, Any]:
    """One kernel through the stages; its `stage` is the last one that was entered, also when that fails."""
    work["stage"] = "ttir"
    function = defined(work["text"], work["function"], folder)
    source = ASTSource(function, *specialised(function, work))
    backend = make_backend(target)
    options = backend.parse_options(dict(work["options"]))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(options, backend.get_codegen_implementation(), backend.get_module_map(), context)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options)
    metadata = {"hash": "kernel", "target": target, **options.__dict__}
    for name, stage in stages.items():
        if name == "npubin" and not binary:
            break
        work["stage"] = STAGES[name]
        module = stage(module, metadata)
    return {"function": work["function"], "stage": work["stage"]}


def told(error: BaseException) -> dict[str, str]:
    """An error as text, its innermost cause, and what a program that failed has printed."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    printed = getattr(error, "stderr", None)
    said = printed.decode(errors="replace") if isinstance(printed, bytes) else str(printed or "")
    return {"kind": type(cause).__name__, "text": str(error)[-4000:], "cause": str(cause)[-2000:], "printed": said[:8000]}


def main(request: str, answer: str) -> None:
    """Lower everything that is asked for, up to the first error."""
    with open(request, encoding="utf-8") as file:
        asked = json.load(file)
    target = GPUTarget("npu", asked["arch"], 0)
    triton.runtime.driver.set_active(Driver(target))
    binary = shutil.which("bishengir-compile") is not None
    result: dict[str, Any] = {"version": triton.__version__, "kernels": [], "error": None}
    with tempfile.TemporaryDirectory() as folder:
        for work in asked["kernels"]:
            try:
                result["kernels"].append(lowered(work, target, folder, binary=binary))
            except Exception as error:
                result["error"] = {"function": work["function"], "stage": work["stage"], **told(error)}
                break
    with open(answer, "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main(*sys.argv[1:3])
