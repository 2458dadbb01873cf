"""A kernel file of a language of the C family: sources, how they are built, and `ModelNew` that calls them by ctypes.

In: `Program`s and the state_dict entries of the reference module; the language's loader, a text that defines `_build(source)`. Out:
Python text that needs torch and the language's compiler and nothing else. Parameters get the reference's names and shapes, so that its
state_dict loads; what forward does is written by forward.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelwright.compiler.language import State, constructor
from kernelwright.compiler.lower.c_family.source import Entry, Source
from kernelwright.compiler.lower.module_file import forward
from kernelwright.compiler.lower.module_file.size_table import arguments, chooser
from kernelwright.compiler.lower.module_file.state import DECLARE, FLATTEN, HEAD, docstring, entries, suffix
from kernelwright.compiler.lower.module_file.values import input_shapes
from kernelwright.core.size_choice import SizeTable
from kernelwright.sketch import nodes

_NESTED = """

_NESTED = (list, tuple, dict)


"""

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

_CHOOSE_BY_SIZE = """
    def forward(self, *args, **kwargs):
        flat = _flatten((args, kwargs), []) if kwargs or any([type(a) in _NESTED for a in args]) else args
        try:
            number = _choose({sizes})
        except (AttributeError, IndexError):
            number = 0  # it says what does not fit
        return self._programs[number].forward(*args, **kwargs)
"""


_BUILD = '''
def _build(code):
    """{doc}"""
{prepare}
    folder = os.path.join(os.environ.get("XDG_CACHE_HOME") or tempfile.gettempdir(), "{folder}")
    library = os.path.join(folder, key + ".so")
    if not os.path.exists(library):
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            source, built = os.path.join(work, "kernel.{ending}"), os.path.join(work, "kernel.so")
            with open(source, "w") as file:
                file.write(code)
{compile}
            if done.returncode:
                raise RuntimeError("the {language} source does not compile:\\n" + done.stderr[-4000:])
            os.replace(built, library)
    return ctypes.CDLL(library)
'''


def loader(*, doc: str, prepare: str, folder: str, ending: str, compile: str, language: str) -> str:
    """The text of `_build`, which compiles a source once and keeps the library in a cache folder. `prepare` are the lines that set `key`;
    `compile` those that make `built` of `source` and set `done`."""
    return _BUILD.format(
        doc=doc, prepare=prepare.strip("\n"), folder=folder, ending=ending, compile=compile.strip("\n"), language=language
    )


@dataclass(frozen=True)
class Program:
    """One sketch in a language, with the sketch's own text."""

    sketch: nodes.Sketch
    built: Source
    text: str


def render(
    programs: Sequence[Program],
    state: State,
    *,
    loader: str,
    needs: str,
    options: Mapping[str, int] | None = None,
    device: str = "",
    table: SizeTable | None = None,
) -> str:
    """The text of the kernel file. `options` are put down where they differ from the defaults; `device` is where new tensors lie, if
    not in the host's memory. Several programs are for several shapes of inputs; with a `table` each of them is for all sizes, and the
    table chooses."""
    place = f', device="{device}"' if device else ""
    parts = [
        docstring(programs[0].sketch, needs),
        "import ctypes\nimport hashlib\nimport os\nimport subprocess\nimport tempfile\n\nimport torch\nfrom torch import nn\n",
        *(_texts(program, suffix(number)) for number, program in enumerate(programs)),
        *([f"OPTIONS = {dict(options)!r}\n"] if options else []),
        loader,
        f"{DECLARE}{_NESTED}{FLATTEN}",
        *(_entries(program.built, suffix(number)) for number, program in enumerate(programs)),
    ]
    declared = constructor(entries([program.sketch for program in programs], state), state)
    if len(programs) == 1:
        return "\n".join([*parts, _single(programs[0], declared, place)])
    variants = [_variant(program, number, place) for number, program in enumerate(programs)]
    if table is not None:
        return "\n".join([*parts, _CHOICE, *variants, chooser(table), _chooser_by_size(programs, declared, table)])
    return "\n".join([*parts, _CHOICE, *variants, _chooser(programs, declared)])


def _texts(program: Program, suffix: str) -> str:
    return f"SKETCH{suffix} = r'''\n{program.text.strip()}\n'''\n\nSOURCE{suffix} = r'''\n{program.built.text.strip()}\n'''\n"


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


def _single(program: Program, declared: list[str], device: str) -> str:
    lines = [
        *HEAD,
        *declared,
        *forward.attributes(program.sketch, device=device),
        *forward.methods(program.sketch, program.built, _prefix(""), device=device),
    ]
    return "\n".join(lines) + "\n"


def _variant(program: Program, number: int, device: str) -> str:
    holder = "self._kept"
    lines = [f"class _Shape{number}(_Shape):", "    def _set_up(self):", *forward.attributes(program.sketch, holder, device)]
    return (
        "\n".join([*lines, *forward.methods(program.sketch, program.built, _prefix(suffix(number)), holder, device)]) + "\n\n"
    )


def _chooser_by_size(programs: Sequence[Program], declared: list[str], table: SizeTable) -> str:
    kept, lines = _shared(programs)
    lines = [*HEAD, *declared, *lines, "        self._programs = ["]
    lines += [f"            _Shape{number}(self, kept[{own}])," for number, own in enumerate(kept)]
    return "\n".join([*lines, "        ]"]) + "\n" + _CHOOSE_BY_SIZE.format(sizes=arguments(table, programs[0].sketch))


def _shared(programs: Sequence[Program]) -> tuple[list[int], list[str]]:
    """Which of the things that are made once each program has, and the line that makes room for them."""
    numbers: dict[Any, int] = {}
    prepared = [forward.preparation(program.sketch, numbers) for program in programs]
    distinct = list(dict.fromkeys(prepared))
    return [distinct.index(each) for each in prepared], [f"        kept = [_Kept() for _ in range({len(distinct)})]"]


def _chooser(programs: Sequence[Program], declared: list[str]) -> str:
    shapes = [input_shapes(program.sketch) for program in programs]
    positions = sorted(set.intersection(*(set(each) for each in shapes)))
    kept, lines = _shared(programs)
    lines = [*HEAD, *declared, *lines, "        self._programs = {"]
    for number, each in enumerate(shapes):
        shape = tuple(each[position] for position in positions)
        lines.append(f"            {shape}: _Shape{number}(self, kept[{kept[number]}]),")
    return "\n".join([*lines, "        }"]) + "\n" + _CHOOSE.format(positions=positions)
