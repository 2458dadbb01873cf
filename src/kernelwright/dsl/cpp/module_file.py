"""The kernel file: one Python module that builds its C++ source and defines `ModelNew`.

In: a Sketch, its C++ `Source`, the state_dict entries of the reference module. Out: Python text that needs torch and g++ and nothing
else. Parameters get the reference's names and shapes, so that its state_dict loads; forward checks shapes once per signature, then
allocates and calls; kernels marked `once` run again only when a parameter changed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from kernelwright.dsl.cpp.kernel import Entry, Source
from kernelwright.sketch import nodes
from kernelwright.sketch.nodes import DType

State = Sequence[tuple[str, Sequence[int], str, bool]]
"""(name, shape, dtype as torch prints it without `torch.`, is it a buffer) for each entry of the reference's state_dict."""

TORCH = {
    DType.f64: "float64", DType.f32: "float32", DType.f16: "float16", DType.bf16: "bfloat16", DType.i64: "int64", DType.i32: "int32",
    DType.i16: "int16", DType.i8: "int8", DType.u8: "uint8", DType.bool: "bool",
}  # fmt: skip

FLAGS = "-O3 -march=native -fopenmp -shared -fPIC -std=c++20 -fno-math-errno -fno-trapping-math -w".split()

_LOADER = '''
FLAGS = {flags!r}


def _build():
    """Compiles SOURCE once for each source, compiler and CPU; the result is kept in a cache folder."""
    compiler = os.environ.get("CXX", "g++")
    try:
        about = subprocess.run([compiler, "-march=native", "-Q", "--help=target", "--version"], capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise RuntimeError(f"{{compiler}} was not found; it is needed to build this kernel. Install it with: apt install g++") from None
    key = hashlib.sha256("\\n".join([SOURCE, *FLAGS, about]).encode()).hexdigest()[:24]
    folder = os.path.join(os.environ.get("XDG_CACHE_HOME") or tempfile.gettempdir(), "kernelwright-cpp")
    library = os.path.join(folder, key + ".so")
    if not os.path.exists(library):
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            source, built = os.path.join(work, "kernel.cpp"), os.path.join(work, "kernel.so")
            with open(source, "w") as file:
                file.write(SOURCE)
            done = subprocess.run([compiler, *FLAGS, source, "-o", built], capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError("the C++ source does not compile:\\n" + done.stderr[-4000:])
            os.replace(built, library)
    return ctypes.CDLL(library)
'''

_MODULE = '''
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


def _find(module, name):
    *path, last = name.split(".")
    for part in path:
        module = module._modules[part]
    return getattr(module, last)


def _flatten(tree, into):
    if isinstance(tree, (list, tuple)):
        for item in tree:
            _flatten(item, into)
    elif isinstance(tree, dict):
        for item in tree.values():
            _flatten(item, into)
    else:
        into.append(tree)
    return into
'''


def render(sketch: nodes.Sketch, built: Source, state: State, sketch_text: str) -> str:
    """The text of the kernel file."""
    parts = [
        f'"""{_line(sketch.doc) or sketch.name}\n\nWritten by Kernelwright from the sketch below; needs torch and g++.\n"""\n',
        "import ctypes\nimport hashlib\nimport os\nimport subprocess\nimport tempfile\n\nimport torch\nfrom torch import nn\n",
        f"SKETCH = r'''\n{sketch_text.strip()}\n'''\n",
        f"SOURCE = r'''\n{built.text.strip()}\n'''\n",
        _LOADER.format(flags=FLAGS),
        _MODULE,
        _entries(built),
        _class(sketch, built, _complete(sketch, state)),
    ]
    return "\n".join(parts)


def _line(text: str) -> str:
    return text.strip().replace('"""', "'''").replace("\\", "/")


def _complete(sketch: nodes.Sketch, state: State) -> list[tuple[str, tuple[int, ...], str, bool]]:
    """All state_dict entries: those given, then parameters that only the sketch names."""
    known = [(name, tuple(shape), str(dtype).removeprefix("torch."), bool(buffer)) for name, shape, dtype, buffer in state]
    names = {entry[0] for entry in known}
    sizes = {s.name: s.value for s in sketch.sizes} | {t.name: t.value for t in sketch.tunables}
    for tensor in sketch.tensors:
        if tensor.role == "param" and tensor.source not in names:
            names.add(tensor.source)
            known.append((tensor.source, tuple(_number(i, sizes) for i in tensor.shape), TORCH[tensor.dtype], False))
    return known


def _number(index: nodes.Index, sizes: dict[str, int]) -> int:
    from kernelwright.sketch.symbolic import evaluate

    return int(evaluate(index, sizes))


def _entries(built: Source) -> str:
    lines = ["_library = _build()"]
    for step in built.steps:
        if isinstance(step, Entry):
            kinds = ", ".join(["ctypes.c_void_p"] * len(step.tensors) + ["ctypes.c_int64"] * len(step.sizes))
            lines += [f"_{step.name} = _library.{step.name}", f"_{step.name}.argtypes = [{kinds}]", f"_{step.name}.restype = None"]
    return "\n".join(lines) + "\n"


def _class(sketch: nodes.Sketch, built: Source, state: list[tuple[str, tuple[int, ...], str, bool]]) -> str:
    """`ModelNew`: constructor, checks, forward."""
    inputs = [t for t in sketch.tensors if t.role == "input"]
    params = [t for t in sketch.tensors if t.role == "param"]
    constants = [t for t in sketch.tensors if t.role == "constant"]
    used = {t for step in built.steps if isinstance(step, Entry) for t in step.tensors}
    used |= {t for step in built.steps if isinstance(step, nodes.LibraryCall) for t in (*step.inputs, *step.outputs)}
    once = [s for s in built.steps if isinstance(s, Entry) and s.once]
    once_made = {t for s in once for t in s.tensors if _role(sketch, t) in ("temp", "output")}
    out = ["", "class ModelNew(nn.Module):", "    def __init__(self, *args, **kwargs):", "        super().__init__()"]
    for name, shape, dtype, buffer in state:
        out.append(f"        _declare(self, {name!r}, torch.zeros({list(shape)!r}, dtype=torch.{dtype}), {buffer})")
    values = dict(sketch.constants)
    for tensor in constants:
        numbers = json.dumps(values[tensor.source]).replace("Infinity", "float('inf')").replace("NaN", "float('nan')")
        numbers = numbers.replace("true", "True").replace("false", "False")
        shape = [_number(i, {s.name: s.value for s in sketch.sizes}) for i in tensor.shape]
        out.append(f"        self._{tensor.name} = torch.tensor({numbers}, dtype=torch.{TORCH[tensor.dtype]}).reshape({shape})")
    out += ["        self._seen = None", "        self._made_from = None", ""]
    out += _check_method(sketch, inputs)
    if once:
        out += _prepare_method(sketch, once, once_made, params)
    out += _forward_method(sketch, built, inputs, params, constants, used, once, once_made)
    return "\n".join(out) + "\n"


def _role(sketch: nodes.Sketch, name: str) -> str:
    return next(t.role for t in sketch.tensors if t.name == name)


def _check_method(sketch: nodes.Sketch, inputs: list[nodes.Tensor]) -> list[str]:
    """Says clearly what does not fit; called again only when shapes or dtypes change."""
    out = [f"    def _check(self, {', '.join(t.name for t in inputs)}):" if inputs else "    def _check(self):"]
    out.append('        """Shapes and dtypes that this kernel was made for."""')
    dynamic = {s.name for s in sketch.sizes if s.dynamic}
    sizes = {s.name: s.value for s in sketch.sizes}
    for tensor in inputs:
        tests = [f"{tensor.name}.dtype == torch.{TORCH[tensor.dtype]}", f"{tensor.name}.dim() == {len(tensor.shape)}"]
        shape = []
        for axis, extent in enumerate(tensor.shape):
            if isinstance(extent, nodes.Sym) and extent.name in dynamic:
                shape.append(extent.name)
            else:
                number = _number(extent, sizes)
                shape.append(str(number))
                tests.append(f"{tensor.name}.shape[{axis}] == {number}")
        wanted = f"argument {tensor.source} must be a {TORCH[tensor.dtype]} tensor of shape [{', '.join(shape)}]"
        out += [f"        if not ({' and '.join(tests)}):"]
        out += [f'            raise ValueError(f"{wanted}, not {{{tensor.name}.dtype}} {{list({tensor.name}.shape)}}")']
    out += ["        return True", ""]
    return out


def _prepare_method(
    sketch: nodes.Sketch, once: list[Entry], made: set[str], params: list[nodes.Tensor]
) -> list[str]:
    names = [p.name for p in params]
    out = [f"    def _prepare(self, {', '.join(names)}):" if names else "    def _prepare(self):"]
    out.append('        """What depends on parameters only (folding, packing); kept until one changes."""')
    for tensor in sketch.tensors:
        if tensor.name in made:
            out.append(f"        {tensor.name} = self._{tensor.name} = {_empty(sketch, tensor)}")
    for tensor in sketch.tensors:
        if tensor.role == "constant" and any(tensor.name in step.tensors for step in once):
            out.append(f"        {tensor.name} = self._{tensor.name}")
    for step in once:
        out.append(f"        _{step.name}({', '.join([f'{t}.data_ptr()' for t in step.tensors] + list(step.sizes))})")
    return [*out, ""]


def _empty(sketch: nodes.Sketch, tensor: nodes.Tensor) -> str:
    shape = ", ".join(_python(i, sketch) for i in tensor.shape)
    return f"torch.empty(({shape}{',' if len(tensor.shape) == 1 else ''}), dtype=torch.{TORCH[tensor.dtype]})"


def _python(index: nodes.Index, sketch: nodes.Sketch) -> str:
    values = {s.name: s.value for s in sketch.sizes if not s.dynamic} | {t.name: t.value for t in sketch.tunables}
    if isinstance(index, nodes.Int):
        return str(index.value)
    if isinstance(index, nodes.Sym):
        return str(values.get(index.name, index.name))
    left, right = _python(index.left, sketch), _python(index.right, sketch)
    if index.op in ("min", "max"):
        return f"{index.op}({left}, {right})"
    text = f"({left} {index.op} {right})"
    return str(eval(text)) if not any(c.isalpha() for c in text) else text  # digits and operators only


def _forward_method(
    sketch: nodes.Sketch, built: Source, inputs: list[nodes.Tensor], params: list[nodes.Tensor], constants: list[nodes.Tensor],
    used: set[str], once: list[Entry], once_made: set[str],
) -> list[str]:  # fmt: skip
    out: list[str] = []
    by_position = {int(t.source): t for t in inputs}
    count = max(by_position, default=-1) + 1
    names = [by_position[k].name if k in by_position else f"unused_{k}" for k in range(count)]
    out.append("    def forward(self, *args, **kwargs):")
    if count:
        out.append(f"        if len(args) != {count} or kwargs or any(type(a) in (list, tuple, dict) for a in args):")
        out.append("            args = _flatten((args, kwargs), [])")
        out.append(f"        {', '.join(names)}{',' if count == 1 else ''} = args[:{count}]")
    signature = ", ".join(f"{t.name}.shape, {t.name}.dtype" for t in inputs)
    if inputs:
        out.append(f"        signature = ({signature})")
        out.append("        if signature != self._seen:")
        out.append(f"            self._check({', '.join(t.name for t in inputs)})")
        out.append("            self._seen = signature")
    returned = set(_leaves(json.loads(sketch.returns)))
    for tensor in inputs:
        if tensor.name in used:
            target = f"{tensor.name}_" if tensor.name in returned else tensor.name
            out.append(f"        {target} = {tensor.name} if {tensor.name}.is_contiguous() else {tensor.name}.contiguous()")
    dynamic = [s.name for s in sketch.sizes if s.dynamic]
    for name in dynamic:
        place = next(
            ((t.name, axis) for t in inputs for axis, e in enumerate(t.shape) if isinstance(e, nodes.Sym) and e.name == name), None
        )
        value = f"{place[0]}.shape[{place[1]}]" if place else str(next(s.value for s in sketch.sizes if s.name == name))
        out.append(f"        {name} = {value}")
    for tensor in params:
        if tensor.name in used:
            path = "".join(f'._modules["{part}"]' for part in tensor.source.split(".")[:-1])
            kind = "_parameters" if not _is_buffer(tensor) else "_buffers"
            out.append(f"        {tensor.name} = _find(self, {tensor.source!r})" if not path else f"        {tensor.name} = self{path}.{tensor.source.split('.')[-1]}")
            del kind
    for tensor in constants:
        if tensor.name in used:
            out.append(f"        {tensor.name} = self._{tensor.name}")
    if once:
        key = ", ".join(f"{p.name}.data_ptr(), {p.name}._version" for p in params if any(p.name in s.tensors for s in once))
        chosen = ", ".join(p.name for p in params)
        out.append(f"        made_from = ({key}{',' if key else ''})")
        out.append("        if made_from != self._made_from:")
        out.append(f"            self._prepare({chosen})")
        out.append("            self._made_from = made_from")
        for name in sorted(once_made):
            out.append(f"        {name} = self._{name}")
    for tensor in sketch.tensors:
        if tensor.role in ("output", "temp") and tensor.name in used and tensor.name not in once_made:
            out.append(f"        {tensor.name} = {_empty(sketch, tensor)}")
    for step in built.steps:
        if isinstance(step, Entry):
            if not step.once:
                pointers = [f"{t}_.data_ptr()" if t in returned and _role(sketch, t) == "input" else f"{t}.data_ptr()" for t in step.tensors]
                out.append(f"        _{step.name}({', '.join(pointers + list(step.sizes))})")
        else:
            out += _library_call(sketch, step)
    out.append(f"        return {_tree(json.loads(sketch.returns))}")
    return out


def _is_buffer(tensor: nodes.Tensor) -> bool:
    return False


def _leaves(tree: object) -> list[str]:
    if isinstance(tree, str):
        return [tree]
    if isinstance(tree, list):
        return [leaf for item in tree for leaf in _leaves(item)]
    if isinstance(tree, dict):
        return [leaf for item in tree.values() for leaf in _leaves(item)]
    return []


def _tree(tree: object) -> str:
    """The returned structure as a Python expression: lists in the JSON are tuples, `$list` are lists."""
    if isinstance(tree, str):
        return tree
    if isinstance(tree, list):
        return f"({', '.join(_tree(item) for item in tree)}{',' if len(tree) == 1 else ''})"
    if isinstance(tree, dict):
        if list(tree) == ["$list"]:
            return f"[{', '.join(_tree(item) for item in tree['$list'])}]"
        return "{" + ", ".join(f"{key!r}: {_tree(item)}" for key, item in tree.items()) + "}"
    return repr(tree)


def _library_call(sketch: nodes.Sketch, step: nodes.LibraryCall) -> list[str]:
    """Track hybrid: one ATen operator left to torch; results are copied into the declared tensors."""
    path = step.operator.split(".")
    operator = ".".join(["torch.ops", *path] if path[0] == "aten" else ["torch.ops.aten", *path])
    attributes = json.loads(step.attributes)
    keywords = "".join(f", {key}={value!r}" for key, value in attributes.items())
    lines = [f"        results = {operator}({', '.join(step.inputs)}{keywords})"]
    if len(step.outputs) == 1:
        return [*lines, f"        {step.outputs[0]}.copy_(results)"]
    return [*lines, *(f"        {name}.copy_(results[{k}])" for k, name in enumerate(step.outputs))]
