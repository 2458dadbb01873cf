"""What a prompt shows of a kernel file."""

from __future__ import annotations

from kernelwright.agents.excerpt import WHOLE, shown_kernel, without_sketch

CARRIED = 'SKETCH = r\'\'\'\n"""Rows."""\nreturns("y")\n\'\'\'\n\n'
SMALL = "import torch\n\n" + CARRIED + 'SOURCE = r"""\nextern "C" void f() {}\n"""\n'


def test_a_carried_sketch_is_not_shown() -> None:
    assert shown_kernel(SMALL) == without_sketch(SMALL) == SMALL.replace(CARRIED, "")


def test_of_a_large_file_the_parts_that_matter_are_shown_as_they_stand() -> None:
    body = [f"    y[{number}] = x[{number}] * {number}.0f;  // a line of an unrolled kernel" for number in range(1500)]
    native = (
        "#include <cmath>\nstatic void inner(float* y) {\n"
        + "\n".join(body)
        + '\n}\nextern "C" void f(float* y) { inner(y); }\n'
    )
    file = f'import torch\n\nSOURCE = r"""\n{native}"""\n\n\nclass ModelNew:\n    def forward(self, x):\n        return x\n'
    shown = shown_kernel(file, (1000,))
    assert len(shown) < WHOLE + 1000
    lines = set(file.splitlines())
    assert all(line in lines or line.startswith("[… lines ") for line in shown.splitlines())
    pointed = native.splitlines()[998]
    assert pointed in shown, "the line that the compiler counts as the 1000th, or one beside it"
    assert 'extern "C" void f' in shown
    assert "class ModelNew" in shown
    assert "are left out and stay as they are" in shown
