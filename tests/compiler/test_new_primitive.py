"""A new scalar primitive is one row and one line for each language (docs/add-a-primitive.md): a package adds one, and PyTorch's
operator of that name is designed, checked, interpreted, built, run and emitted.

It happens in a process of its own, so that the tables of this one stay as they are.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGE = '''
"""sin(pi x) / (pi x), 1 at zero."""
from kernelwright.compiler.backends.tilelang import op_table as tilelang
from kernelwright.compiler.backends.triton import op_table as triton
from kernelwright.compiler.lower import c_expressions as c
from kernelwright.core.operations import Operation, add

add(Operation("sinc", 1, cost=20.0))

PI = 3.141592653589793
c.UNARY["sinc"] = f"({{0}} == 0 ? {{1}} : sin_of({PI}f * {{0}}) / ({PI}f * {{0}}))"
triton.UNARY["sinc"] = f"tl.where({{0}} == 0, 1.0, tl.sin({PI} * {{0}}) / ({PI} * {{0}}))"
tilelang.UNARY["sinc"] = f"T.if_then_else({{0}} == 0, {{0}} + 1, T.sin({{0}} * {PI}) / ({{0}} * {PI}))"
'''

USE = """
import types
import torch
from torch import nn
import cardinal_sine
from kernelwright.compiler.designer import design_module
from kernelwright.compiler.language import language
from kernelwright.sketch import nodes
from kernelwright.sketch.check.rules import require
from kernelwright.sketch.interpret.interpreter import call
from kernelwright.sketch.parse import parse
from kernelwright.sketch.print import to_source


class Model(nn.Module):
    def forward(self, x):
        return (torch.sinc(x) * 2).sum(dim=-1)


x = torch.randn(8, 300)
x[0, 0] = 0
want = Model()(x)
sketch = require(design_module(Model().eval(), [x])[0].sketch)
assert "sinc(" in to_source(sketch)
assert parse(to_source(sketch)) == sketch
torch.testing.assert_close(call(sketch, [x], {}), want)
kernel = types.ModuleType("kernel")
exec(compile(language("cpp").lower(sketch), "kernel.py", "exec"), kernel.__dict__)
torch.testing.assert_close(kernel.ModelNew()(x), want, rtol=1e-4, atol=1e-4)
for name, sign in (("cuda_c", "sin_of("), ("triton", "tl.sin("), ("tilelang", "T.sin(")):
    assert sign in language(name).lower(sketch), name
print("designed, built, run, emitted")
"""


def test_one_row_and_one_line_for_each_language(tmp_path: Path) -> None:
    (tmp_path / "cardinal_sine.py").write_text(PACKAGE)
    done = subprocess.run([sys.executable, "-c", USE], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert "designed, built, run, emitted" in done.stdout, done.stderr


def test_a_language_without_the_line_says_so(tmp_path: Path) -> None:
    (tmp_path / "cardinal_sine.py").write_text(PACKAGE.replace('c.UNARY["sinc"]', 'unused = {}; unused["sinc"]'))
    done = subprocess.run([sys.executable, "-c", USE], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert "SketchError" in done.stderr, done.stderr
    assert "sinc" in done.stderr.splitlines()[-1]
