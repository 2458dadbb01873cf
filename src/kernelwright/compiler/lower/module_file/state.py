"""What a kernel file declares: the class's head, and its state under the names of the reference's state_dict."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.compiler.language import State
from kernelwright.compiler.lower.module_file.values import number
from kernelwright.sketch import nodes

DECLARE = '''
def _declare(module, name, tensor, buffer):
    """Registers a tensor under a dotted state_dict name."""
    *path, last = name.split(".")
    for part in path:
        if part not in module._modules:
            module.add_module(part, nn.Module())
        module = module._modules[part]
    if buffer:
        module.register_buffer(last, tensor)
    else:
        module.register_parameter(last, nn.Parameter(tensor, requires_grad=False))
'''

FLATTEN = """def _flatten(tree, into):
    if isinstance(tree, (list, tuple)):
        for item in tree:
            _flatten(item, into)
    elif isinstance(tree, dict):
        for item in tree.values():
            _flatten(item, into)
    else:
        into.append(tree)
    return into
"""

HEAD = ["", "class ModelNew(nn.Module):", "    def __init__(self, *args, **kwargs):", "        super().__init__()"]


def docstring(sketch: nodes.Sketch, needs: str) -> str:
    """The first lines of a kernel file."""
    doc = sketch.doc.strip().replace('"""', "'''").replace("\\", "/") or sketch.name
    return f'"""{doc}\n\nWritten by Kernelwright from the sketch below; needs torch and {needs}.\n"""\n'


def suffix(number: int) -> str:
    """What the names of a program end with; the first has none."""
    return f"_{number}" if number else ""


def shape(sketch: nodes.Sketch, tensor: nodes.Tensor) -> tuple[int, ...]:
    """A tensor's shape in numbers."""
    sizes = {s.name: s.value for s in sketch.sizes} | {t.name: t.value for t in sketch.tunables}
    return tuple(number(i, sizes) for i in tensor.shape)


def entries(sketches: Sequence[nodes.Sketch], state: State) -> list[tuple[str, tuple[int, ...], str, bool]]:
    """All state_dict entries: those given, then parameters that only a sketch names."""
    known = [(name, tuple(extents), str(dtype).removeprefix("torch."), bool(buffer)) for name, extents, dtype, buffer in state]
    names = {entry[0] for entry in known}
    for sketch in sketches:
        for tensor in sketch.tensors:
            if tensor.role == "param" and tensor.source not in names:
                names.add(tensor.source)
                known.append((tensor.source, shape(sketch, tensor), tensor.dtype.torch_name, False))
    return known
