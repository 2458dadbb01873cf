"""The kernel file: one Python module that builds its C++ source and defines `ModelNew`.

In: programs (a Sketch with its C++ `Source`), one for each set of input shapes that the task has, and the state_dict entries of the
reference module. Out: Python text that needs torch and g++ and nothing else. Parameters get the reference's names and shapes, so
that its state_dict loads; what forward does is written by forward.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernelwright.compiler.backends.cpp import forward
from kernelwright.compiler.backends.cpp.codegen_options import CodegenOptions
from kernelwright.compiler.backends.cpp.kernel import DEFAULT
from kernelwright.compiler.language import State, constructor
from kernelwright.compiler.lower.c_family.source import Entry, Source
from kernelwright.sketch import nodes

FLAGS = [
    "-march=native", "-fopenmp", "-shared", "-fPIC", "-std=c++20", "-fno-math-errno", "-fno-trapping-math", "-fno-tree-pre", "-w",
]  # fmt: skip
"""No -ffast-math: NaN and infinity keep their meaning. -fno-tree-pre: GCC's partial redundancy elimination turns the clamps inside
exp and log into branches over bools, and the loop around them (softplus, mish) is not vectorised any more."""
INTERLEAVE = [
    "-funroll-loops", "-fschedule-insns", "-fsched-pressure", "--param=max-unroll-times=4", "--param=max-unrolled-insns=800",
    "--param=max-average-unrolled-insns=800",
]  # fmt: skip
"""For loops of long polynomials: each step waits for the one before it, so the steps of four vectors are mixed."""

_LOADER = '''
FLAGS = {flags!r}


def _build(code):
    """Compiles a source once for each source, compiler and CPU; the result is kept in a cache folder."""
    compiler = os.environ.get("CXX", "g++")
    try:
        about = subprocess.run([compiler, "-march=native", "-Q", "--help=target", "--version"], capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise RuntimeError(f"{{compiler}} was not found; it is needed to build this kernel. Install it with: apt install g++") from None
    key = hashlib.sha256("\\n".join([code, *FLAGS, about]).encode()).hexdigest()[:24]
    folder = os.path.join(os.environ.get("XDG_CACHE_HOME") or tempfile.gettempdir(), "kernelwright-cpp")
    library = os.path.join(folder, key + ".so")
    if not os.path.exists(library):
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            source, built = os.path.join(work, "kernel.cpp"), os.path.join(work, "kernel.so")
            with open(source, "w") as file:
                file.write(code)
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


_NESTED = (list, tuple, dict)


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


_CHOICE = '''
class _Kept:
    """What was made from the parameters, and from which; shapes that make the same have one of these together."""


class _Shape:
    """The kernels for one set of input shapes; parameters are those of the module it belongs to."""

    def __init__(self, owner, kept):
        self._modules = owner._modules
        self._owner = owner
        self._kept = kept
        self._set_up()

    def __getattr__(self, name):
        return getattr(self._owner, name)

'''

_CHOOSE = """
    def forward(self, *args, **kwargs):
        flat = _flatten((args, kwargs), []) if kwargs or any([type(a) in _NESTED for a in args]) else args
        shapes = tuple([flat[position].shape for position in {positions}])
        program = self._programs.get(shapes)
        if program is None:
            raise ValueError(f"this kernel was made for inputs of the shapes {{list(self._programs)}}, not {{shapes}}")
        return program.forward(*args, **kwargs)
"""


@dataclass(frozen=True)
class Program:
    """One sketch as C++, with the sketch's own text."""

    sketch: nodes.Sketch
    built: Source
    text: str


def render(programs: Sequence[Program], state: State, knobs: CodegenOptions = DEFAULT) -> str:
    """The text of the kernel file."""
    main = programs[0].sketch
    parts = [
        f'"""{_line(main.doc) or main.name}\n\nWritten by Kernelwright from the sketch below; needs torch and g++.\n"""\n',
        "import ctypes\nimport hashlib\nimport os\nimport subprocess\nimport tempfile\n\nimport torch\nfrom torch import nn\n",
        *(_texts(program, _suffix(number)) for number, program in enumerate(programs)),
        *([f"OPTIONS = {knobs.changed!r}\n"] if knobs.changed else []),
        _LOADER.format(flags=build_flags([program.built.text for program in programs], knobs)),
        _MODULE,
        *(_entries(program.built, _suffix(number)) for number, program in enumerate(programs)),
    ]
    declared = constructor(_complete([program.sketch for program in programs], state), state)
    if len(programs) == 1:
        return "\n".join([*parts, _single(programs[0], declared)])
    return "\n".join(
        [*parts, _CHOICE, *(_variant(program, number) for number, program in enumerate(programs)), _chooser(programs, declared)]
    )


def build_flags(sources: Sequence[str], knobs: CodegenOptions) -> list[str]:
    """Polynomials want to be interleaved; matrix products have their registers counted out and are left as written."""
    texts = "".join(sources)
    polynomials = re.search(r"\b(exp|expm1|log|log1p_exp|tanh|tanh_plus_one|erf|erf_plus_one|sin|cos)_of\(", texts)
    wanted = (
        bool(knobs.interleave) if knobs.interleave >= 0 else bool(polynomials) and not re.search("gemm_(tile|packing)<", texts)
    )
    return [f"-O{knobs.optimize}", *FLAGS, *(INTERLEAVE if wanted else [])]


def _line(text: str) -> str:
    return text.strip().replace('"""', "'''").replace("\\", "/")


def _suffix(number: int) -> str:
    return f"_{number}" if number else ""


def _texts(program: Program, suffix: str) -> str:
    return f"SKETCH{suffix} = r'''\n{program.text.strip()}\n'''\n\nSOURCE{suffix} = r'''\n{program.built.text.strip()}\n'''\n"


def _complete(sketches: Sequence[nodes.Sketch], state: State) -> list[tuple[str, tuple[int, ...], str, bool]]:
    """All state_dict entries: those given, then parameters that only a sketch names."""
    known = [(name, tuple(shape), str(dtype).removeprefix("torch."), bool(buffer)) for name, shape, dtype, buffer in state]
    names = {entry[0] for entry in known}
    for sketch in sketches:
        sizes = {s.name: s.value for s in sketch.sizes} | {t.name: t.value for t in sketch.tunables}
        for tensor in sketch.tensors:
            if tensor.role == "param" and tensor.source not in names:
                names.add(tensor.source)
                shape = tuple(forward.number(i, sizes) for i in tensor.shape)
                known.append((tensor.source, shape, tensor.dtype.torch_name, False))
    return known


def _prefix(suffix: str) -> str:
    return f"_shape{suffix}_" if suffix else "_"


def _entries(built: Source, suffix: str) -> str:
    """The C functions as Python names with their argument types."""
    lines = [f"_library{suffix} = _build(SOURCE{suffix})"]
    for step in built.steps:
        if isinstance(step, Entry):
            name = _prefix(suffix) + step.name
            kinds = ", ".join(
                ["ctypes.c_void_p"] * (1 if step.by_array else len(step.tensors)) + ["ctypes.c_int64"] * len(step.sizes)
            )
            lines += [f"{name} = _library{suffix}.{step.name}", f"{name}.argtypes = [{kinds}]", f"{name}.restype = None"]
    return "\n".join(lines) + "\n"


HEAD = ["", "class ModelNew(nn.Module):", "    def __init__(self, *args, **kwargs):", "        super().__init__()"]


def _single(program: Program, declared: list[str]) -> str:
    lines = [
        *HEAD,
        *declared,
        *forward.attributes(program.sketch),
        *forward.methods(program.sketch, program.built, _prefix("")),
    ]
    return "\n".join(lines) + "\n"


def _variant(program: Program, number: int) -> str:
    holder = "self._kept"
    lines = [f"class _Shape{number}(_Shape):", "    def _set_up(self):", *forward.attributes(program.sketch, holder)]
    return "\n".join([*lines, *forward.methods(program.sketch, program.built, _prefix(_suffix(number)), holder)]) + "\n\n"


def _chooser(programs: Sequence[Program], declared: list[str]) -> str:
    shapes = [forward.input_shapes(program.sketch) for program in programs]
    positions = sorted(set.intersection(*(set(each) for each in shapes)))
    numbers: dict[Any, int] = {}
    prepared = [forward.preparation(program.sketch, numbers) for program in programs]
    distinct = list(dict.fromkeys(prepared))
    lines = [*HEAD, *declared, f"        kept = [_Kept() for _ in range({len(distinct)})]", "        self._programs = {"]
    for number, each in enumerate(shapes):
        shape, own = tuple(each[position] for position in positions), distinct.index(prepared[number])
        lines.append(f"            {shape}: _Shape{number}(self, kept[{own}]),")
    return "\n".join([*lines, "        }"]) + "\n" + _CHOOSE.format(positions=positions)
