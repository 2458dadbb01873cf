"""A child process: LANGUAGE FILE in. Runs the file's `ModelNew` on the language's runtime, compares it with the file's `Model`, and
compiles what was launched. The files are written the way people write kernels for a GPU, and run here unchanged."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import asdict

import torch

from kernelwright.target import Target


def main(language: str, path: str, compile_too: bool) -> None:
    runtime = importlib.import_module(f"kernelwright.compiler.backends.{language}.runtime")
    target = asdict(Target.load("a100"))
    runtime.install(target)
    spec = importlib.util.spec_from_file_location("stranger", path)
    file = importlib.util.module_from_spec(spec)
    with runtime.context(calling=False):
        spec.loader.exec_module(file)
    torch.manual_seed(0)
    reference, inputs = file.Model(*file.get_init_inputs()).eval(), file.get_inputs()
    with runtime.context(calling=False):
        model = file.ModelNew(*file.get_init_inputs()).eval()
    model.load_state_dict(reference.state_dict())
    with torch.no_grad():
        wanted = torch.utils._pytree.tree_leaves(reference(*inputs))
        with runtime.context(calling=True):
            got = torch.utils._pytree.tree_leaves(model(*inputs))
    for one, other in zip(got, wanted, strict=True):
        loose = 1e-2 if other.dtype in (torch.float16, torch.bfloat16) else 1e-4
        torch.testing.assert_close(one, other, rtol=loose, atol=loose)
    assert runtime.launches() > 0
    if compile_too:
        assert runtime.compile_for(target)["kernels"]
    print("same")


main(sys.argv[1], sys.argv[2], "--compile" in sys.argv)
