"""The method of a kernel file that looks at its inputs: are these the shapes and dtypes that it was made for?

In: a sketch and its inputs. Out: lines of Python, a method `_check` that raises ValueError in one sentence.
"""

from __future__ import annotations

from kernelwright.compiler.lower.module_file.size_ranges import places, range_tests
from kernelwright.compiler.lower.module_file.values import number, python
from kernelwright.sketch import nodes
from kernelwright.sketch.index import symbols


def check_method(sketch: nodes.Sketch, inputs: list[nodes.Tensor], suffix: str = "") -> list[str]:
    """Says clearly what does not fit; called again only when shapes or dtypes change."""
    out = [f"    def _check{suffix}(self{''.join(f', {t.name}' for t in inputs)}):"]
    out.append('        """Shapes and dtypes that this kernel was made for."""')
    dynamic = {s.name for s in sketch.sizes if s.dynamic}
    sizes = {s.name: s.value for s in sketch.sizes}
    related: list[str] = []
    for tensor in inputs:
        tests = [f"{tensor.name}.dtype == torch.{tensor.dtype.torch_name}", f"{tensor.name}.dim() == {len(tensor.shape)}"]
        shape = []
        for axis, extent in enumerate(tensor.shape):
            if symbols(extent) & dynamic:
                said = python(extent, sketch)
                shape.append(said.removeprefix("(").removesuffix(")"))
                related.append(f"{tensor.name}.shape[{axis}] == {said}")
            else:
                fixed = number(extent, sizes)
                shape.append(str(fixed))
                tests.append(f"{tensor.name}.shape[{axis}] == {fixed}")
        wanted = f"argument {tensor.source} must be a {tensor.dtype.torch_name} tensor of shape [{', '.join(shape)}]"
        out += [f"        if not ({' and '.join(tests)}):"]
        out += [f'            raise ValueError(f"{wanted}, not {{{tensor.name}.dtype}} {{list({tensor.name}.shape)}}")']
    return [*out, *_size_tests(sketch, inputs, related), "        return True", ""]


def _size_tests(sketch: nodes.Sketch, inputs: list[nodes.Tensor], related: list[str]) -> list[str]:
    """Lines that raise for sizes out of range, or that do not fit together."""
    where = places(sketch)
    out = [f"        {name} = {place.text}" for name, place in where.items()]
    out += range_tests(sketch)
    obvious = {f"{p.tensor.name}.shape[{p.axis}] == {name}" for name, p in where.items()}
    tests = [test for test in related if test not in obvious]
    if tests:
        wanted = ", ".join(f"[{', '.join(python(e, sketch) for e in t.shape)}]" for t in inputs)
        given = ", ".join(f"{{list({t.name}.shape)}}" for t in inputs)
        out += [f"        if not ({' and '.join(tests)}):"]
        out += [f'            raise ValueError(f"the inputs must have the shapes {wanted}, not {given}")']
    return out
