"""A `.cu` file as it stands (with its `main`, launchers, macros, local headers) → one kernel file whose `ModelNew` calls a function of it.

In: the file, which function to call (`entry`; else the only launcher of the file) and what with (`inputs`, one for each parameter in
order: `"out f32[N,C], f32[N,C], N, C, 256; N=64, C=128"`). Out: the text of a Python file that has nvcc build the CUDA text,
unchanged, and the inputs of forward. Nothing is run or compiled here. Sizes with names are read off the shapes of forward's tensors, so
that other shapes can be tried; results are what is marked `out`, or what a kernel of the file writes and does not read (`io`: both).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernelwright.core.dtypes import DType
from kernelwright.core.errors import KernelFileError

_FILE = '''"""{entry} of {name}, as it stands there; made by kernelwright."""
import ctypes
import os
import subprocess
import tempfile

import torch

FILES = {{
{files}}}

_root = tempfile.mkdtemp(prefix="kernel-cuda-")
for _path, _text in FILES.items():
    os.makedirs(os.path.join(_root, os.path.dirname(_path)), exist_ok=True)
    with open(os.path.join(_root, _path), "w") as _file:
        _file.write(_text)
{build}

class ModelNew(torch.nn.Module):
    def forward(self{arguments}):
{body}

def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''
_LIBRARY = """_library = os.path.join(_root, "kernels.so")
_done = subprocess.run(
    ["nvcc", "-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-I", os.path.join(_root, {folder!r}), "-I", _root, "-o", _library,
     os.path.join(_root, "{entry_file}")],
    capture_output=True, text=True,
)
if _done.returncode:
    raise RuntimeError(_done.stderr.strip()[:2000])
_call = ctypes.CDLL(_library).kernel_entry
_call.restype = None
_call.argtypes = [{types}]
"""
_EXTENSION = """from torch.utils.cpp_extension import load

_call = load("kernels", [os.path.join(_root, {source!r})], extra_include_paths=[_root, os.path.join(_root, {folder!r})]).{entry}
"""
_ENTRY_FILE = "kernel_entry.cu"
_SHIM = """#define main program_main
#include "{source}"
#undef main
{checks}extern "C" void kernel_entry({parameters}) {{ {entry}({arguments}); cudaDeviceSynchronize(); }}
"""
_C = {"f32": "float", "f64": "double", "f16": "__half", "bf16": "__nv_bfloat16", "i8": "signed char", "u8": "unsigned char",
      "i16": "short", "i32": "int", "i64": "long long", "bool": "bool"}  # fmt: skip
_WORDS = {"const", "volatile", "__restrict__", "__restrict", "restrict", "struct", "inline", "static"}
_SIZED = re.compile(r"(?:(out|io|in)\s+)?(\w+)\[([^\]]*)\](?:\s*<\s*(\d+))?")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a C function."""

    name: str
    type: str
    pointer: bool
    const: bool

    @property
    def tensor(self) -> bool:
        """Whether it is one of torch's."""
        return self.type.endswith("Tensor")

    def __str__(self) -> str:
        return f"{'const ' if self.const else ''}{self.type}{'*' if self.pointer else ''} {self.name}"


@dataclass(frozen=True)
class Signature:
    """A function of the file. `launches`: it has `<<<` in it; `kernel`: it is one."""

    name: str
    parameters: tuple[Parameter, ...]
    templates: tuple[str, ...]
    body: str
    kernel: bool

    @property
    def launches(self) -> bool:
        """Whether it launches kernels."""
        return not self.kernel and ("<<<" in self.body or "cudaLaunch" in self.body)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})"


@dataclass
class _Given:
    """What the caller says of one parameter."""

    role: str
    dtype: str
    dims: tuple[str, ...] = ()
    below: str = ""
    number: str = ""
    name: str = field(default="")


def kernel_text(path: Path, entry: str | None, inputs: str | None) -> str:
    """The kernel file that stands for a `.cu` file."""
    text = path.read_text(encoding="utf-8", errors="replace")
    files, root = _files(path)
    everything = "\n".join(files.values())
    callee, signature = _chosen(path, text, everything, entry)
    extension = any(p.tensor for p in signature.parameters) if signature is not None else "torch/extension.h" in everything
    given, sizes = _given(path, signature, callee, inputs)
    if signature is not None:
        if len(given) != len(signature.parameters):
            raise KernelFileError(path, f"{signature} has {len(signature.parameters)} parameters, --inputs names {len(given)}")
        for one, parameter in zip(given, signature.parameters, strict=True):
            one.name = parameter.name
        _roles(path, signature, given, functions(everything))
    source = path.resolve().relative_to(root).as_posix()
    folder = str(Path(source).parent)
    more: list[str] = []
    if extension:
        build = _EXTENSION.format(source=source, folder=folder, entry=callee.partition("<")[0])
    else:
        assert signature is not None
        named = {p.name for p in signature.parameters}
        more = [
            size for size in sizes if size not in named and re.search(rf"\b{size}\b", callee)
        ]  # a launch may speak of sizes
        files[_ENTRY_FILE] = _shim(source, callee, signature, given, more)
        kinds = ", ".join([*(_ctype(p) for p in signature.parameters), *("ctypes.c_longlong" for _ in more)])
        build = _LIBRARY.format(folder=folder, entry_file=_ENTRY_FILE, types=kinds)
    listed = "".join(f"    {name!r}: r{_quoted(content)},\n" for name, content in sorted(files.items()))
    taken = [one for one in given if one.dtype and one.role in ("in", "io")]
    return _FILE.format(
        entry=callee,
        name=path.name,
        files=listed,
        build=build,
        arguments="".join(f", {one.name}" for one in taken),
        body=_body(given, sizes, more, extension=extension),
        inputs=", ".join(_drawn(one, sizes) for one in taken),
    )


def _quoted(content: str) -> str:
    """A raw literal of the text, or an ordinary one where it cannot be one."""
    if "'''" in content or content.endswith(("'", "\\")):
        return f"''{content!r}"
    return f"'''{content}'''"


# ---------------------------------------------------------------- the file


def _files(path: Path) -> tuple[dict[str, str], Path]:
    """The file and the headers of its own that it includes, by their paths below one folder."""
    found: dict[Path, str] = {}
    queue = [path.resolve()]
    while queue:
        file = queue.pop()
        if file in found:
            continue
        found[file] = file.read_text(encoding="utf-8", errors="replace")
        for name in re.findall(r'^\s*#\s*include\s*[<"]([^">]+)[">]', found[file], re.MULTILINE):
            for folder in (file.parent, path.resolve().parent):
                beside = (folder / name).resolve()
                if beside.is_file():
                    queue.append(beside)
                    break
    root = path.resolve().parent
    while not all(root in file.parents for file in found):
        root = root.parent
    return {file.relative_to(root).as_posix(): text for file, text in found.items()}, root


def _uncommented(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)


def functions(text: str) -> list[Signature]:
    """The function definitions of a text, as far as they can be told without a compiler."""
    clean = _uncommented(text)
    found = []
    for head in re.finditer(
        r"(?:(template\s*<([^{};]*)>)\s*)?((?:[\w:*&<>,\[\]\s\"]|__\w+__\s*(?:\([^()]*\))?)+?)\b(\w+)\s*\(", clean
    ):
        close = _closing(clean, head.end() - 1)
        rest = clean[close + 1 : close + 40].lstrip()
        if head[4] in ("if", "for", "while", "switch", "return", "sizeof", "__launch_bounds__") or not rest.startswith("{"):
            continue
        start = clean.index("{", close)
        body = clean[start : _closing(clean, start, "{", "}") + 1]
        parameters = tuple(p for part in _parts(clean[head.end() : close]) if (p := _parameter(part)) is not None)
        templates = tuple(re.findall(r"(?:typename|class)\s+(\w+)", head[2] or ""))
        found.append(Signature(head[4], parameters, templates, body, "__global__" in head[3]))
    return found


def _closing(text: str, at: int, opening: str = "(", closing: str = ")") -> int:
    depth = 0
    for k in range(at, len(text)):
        depth += (text[k] == opening) - (text[k] == closing)
        if depth == 0:
            return k
    return len(text) - 1


def _parts(text: str, brackets: str = "(<[{)>]}") -> list[str]:
    """The text cut at commas outside of brackets."""
    parts, depth, last = [], 0, 0
    half = len(brackets) // 2
    for k, c in enumerate(text):
        depth += (c in brackets[:half]) - (c in brackets[half:])
        if c == "," and depth == 0:
            parts.append(text[last:k])
            last = k + 1
    return [part.strip() for part in (*parts, text[last:]) if part.strip()]


def _parameter(text: str) -> Parameter | None:
    text = text.partition("=")[0]
    words = re.findall(r"[\w:]+(?:\s*<[^<>]*>)?", text)
    if not words or words == ["void"]:
        return None
    kept = [w for w in words if w not in _WORDS]
    name = kept[-1] if len(kept) > 1 else "unnamed"
    type = " ".join(kept[:-1] if len(kept) > 1 else kept)
    return Parameter(name, type, "*" in text or "[" in text, "const" in words)


def _chosen(path: Path, text: str, everything: str, entry: str | None) -> tuple[str, Signature | None]:
    """The expression to call, and the function behind it."""
    known = functions(everything)
    own = functions(text)
    if entry is None:
        launchers = [f for f in own if f.launches and f.name != "main" and any(p.pointer or p.tensor for p in f.parameters)]
        called = {name for f in launchers for name in re.findall(r"\b(\w+)\s*(?:<[^<>;]*>)?\s*\(", f.body)}
        outer = [f for f in launchers if f.name not in called] or launchers
        if len(outer) == 1:
            return outer[0].name, outer[0]
        if outer:
            raise KernelFileError(
                path, f"several functions launch kernels ({', '.join(f.name for f in outer)}): say which with --entry"
            )
        kernels = [f.name for f in own if f.kernel]
        if not kernels:
            raise KernelFileError(path, "it has neither a function that launches kernels nor a kernel")
        raise KernelFileError(
            path,
            f"no function with pointers launches its kernels ({', '.join(kernels)}): say how with --entry '{_example(text, kernels[0])}'",
        )
    base = re.match(r"[\w:]+", entry)
    name = base[0].split("::")[-1] if base else entry
    found = next((f for f in known if f.name == name), None)
    if found is None:
        if "torch/extension.h" in everything:
            return entry, None  # made by a macro
        has = ", ".join(dict.fromkeys(f.name for f in own if f.launches or f.kernel)) or "no function that could be called"
        raise KernelFileError(path, f"it defines no {name}; it has {has}")
    if found.kernel and "<<<" not in entry:
        raise KernelFileError(path, f"{name} is a kernel: say its launch too, as in --entry '{_example(text, entry)}'")
    return entry, found


def _example(text: str, kernel: str) -> str:
    """How the file itself launches a kernel, else an invented way."""
    base = kernel.partition("<")[0]
    seen = re.search(rf"\b{base}\s*(<[^<>;]*>)?\s*<<<(.*?)>>>", _uncommented(text), re.DOTALL)
    return f"{base}{seen[1] or ''}<<<{' '.join(seen[2].split())}>>>" if seen else f"{base}<<<(N+255)/256, 256>>>"


# ---------------------------------------------------------------- what it is called with


def _given(path: Path, signature: Signature | None, callee: str, inputs: str | None) -> tuple[list[_Given], dict[str, int]]:
    if not inputs:
        shown, example = (
            (str(signature), _example_inputs(signature)) if signature is not None else (callee, "f32[64,100], out f32[64,100]")
        )
        raise KernelFileError(path, f'say what {shown} is called with, each parameter in order, as in --inputs "{example}"')
    items, _, values = inputs.partition(";")
    sizes: dict[str, int] = {}
    for part in _parts(values):
        name, _, value = part.partition("=")
        if not name.strip().isidentifier() or not value.strip().isdigit():
            raise KernelFileError(path, f"{part!r} in --inputs is not a size such as N=64")
        sizes[name.strip()] = int(value)
    given = []
    for k, part in enumerate(_parts(items, "([)]")):
        shaped = _SIZED.fullmatch(part)
        if shaped is None:
            given.append(_Given("number", "", number=part, name=f"x{k}"))
            continue
        if shaped[2] not in DType.__members__:
            raise KernelFileError(path, f"unknown dtype {shaped[2]} in --inputs; known are {', '.join(DType.__members__)}")
        dims = tuple(d.strip() for d in shaped[3].split(",") if d.strip())
        given.append(_Given(shaped[1] or "", shaped[2], dims, shaped[4] or "", name=f"x{k}"))
    unknown = {w for g in given for d in (*g.dims, g.number) for w in re.findall(r"\b[A-Za-z_]\w*\b", d)} - set(sizes)
    unknown -= {"e", "true", "false", "True", "False", "None", "nullptr"}
    if unknown:
        raise KernelFileError(
            path, f"--inputs names {', '.join(sorted(unknown))} and gives no size: add ; {sorted(unknown)[0]}=64"
        )
    return given, sizes


def _example_inputs(signature: Signature) -> str:
    """How `--inputs` might look for a function; its shapes are for the reader to mend."""
    sizes = [
        p.name for p in signature.parameters if not p.pointer and not p.tensor and p.type not in ("float", "double", "bool")
    ]
    shape = ",".join(sizes[:2]) or "1024"
    kinds = {name: kind for kind, name in _C.items()} | {"half": "f16"}
    items = []
    for p in signature.parameters:
        if p.pointer or p.tensor:
            items.append(f"{'' if p.const or p.tensor else 'out '}{kinds.get(p.type, 'f32')}[{shape}]")
        else:
            items.append(p.name if p.name in sizes else "1.0")
    return ", ".join(items) + (f"; {', '.join(f'{name}=64' for name in sizes)}" if sizes else "")


def _roles(path: Path, signature: Signature, given: list[_Given], known: list[Signature]) -> None:
    """Who is a result: as the caller says, else what is not const and a kernel of the file writes."""
    unsaid = [(p, g) for p, g in zip(signature.parameters, given, strict=True) if g.dtype and not g.role]
    open_ = []
    for parameter, one in unsaid:
        if parameter.const or parameter.tensor:
            one.role = "in"
            continue
        writes, reads = _use(signature, parameter.name, known, 0)
        one.role = "io" if writes and reads else "out" if writes else "in"
        if not writes:
            open_.append(parameter.name)
            if any(p.const for p in signature.parameters if p.pointer):
                one.role = "io"  # the author says what is only read; that this is written was not seen
    if not any(g.role in ("out", "io") for g in given) and not any(p.tensor for p in signature.parameters):
        raise KernelFileError(
            path,
            f'which of {", ".join(open_) or "its parameters"} is the result of {signature.name}? say "out f32[…]" in --inputs',
        )


def _use(function: Signature, name: str, known: list[Signature], depth: int) -> tuple[bool, bool]:
    """Whether a function writes, and whether it reads, what a parameter points to."""
    body = function.body
    aliases = re.findall(rf"\*\s*(?:const\s+|__restrict__\s+)?(\w+)\s*=\s*[^;=]*\b{name}\b[^;]*;", body)
    if depth <= 3 and (others := [a for a in dict.fromkeys(aliases) if a != name]):
        found = [_use(function, alias, known, depth + 1) for alias in others]
        if any(w for w, _ in found):
            return True, any(r for _, r in found) or _use(replace(function, body=""), name, known, depth)[1]
    index = rf"\b{name}\s*(?:\[(?:[^\[\]]|\[[^\]]*\])*\])"
    pointed = rf"{index}|\*\s*{name}\b|\(\s*{name}\s*\+[^;]*?\)"
    writes = bool(re.search(rf"(?:{pointed})[\s)\].xyzw\[\d]*(?:[-+*/|&^]|<<|>>)?=(?!=)", body)) or bool(
        re.search(rf"(?:atomic\w+\s*\(\s*&?\s*\(?|cuda(?:Memcpy|Memset)\w*\s*\(\s*){name}\b", body)
    )
    reads = bool(re.search(rf"(?:{pointed})[\s)\].xyzw\[\d]*(?:[-+*/|&^]|<<|>>)=(?!=)", body))
    plain = re.sub(rf"(?:{index})\s*=(?!=)", " = ", body)
    reads = reads or bool(re.search(index, plain)) or ("atomic" in body and writes)
    if depth > 3:
        return writes, reads
    for other in known:
        if other.name == function.name:
            continue
        for call in re.finditer(rf"\b{other.name}\s*(?:<[^;]*?>)?\s*(?:<<<.*?>>>)?\s*\(", body, re.DOTALL):
            arguments = _parts(body[call.end() : _closing(body, call.end() - 1)])
            for argument, parameter in zip(arguments, other.parameters, strict=False):
                if parameter.pointer and re.search(rf"\b{name}\b", argument):
                    more = _use(other, parameter.name, known, depth + 1)
                    writes, reads = writes or more[0], reads or more[1]
    return writes, reads


# ---------------------------------------------------------------- the text


def _ctype(parameter: Parameter) -> str:
    if parameter.pointer:
        return "ctypes.c_void_p"
    if parameter.type in ("float", "double", "bool"):
        return f"ctypes.c_{parameter.type}"
    return "ctypes.c_longlong"


def _shim(source: str, callee: str, signature: Signature, given: list[_Given], more: list[str]) -> str:
    passed, arguments, checks = [], [], ""
    for parameter, one in zip(signature.parameters, given, strict=True):
        if parameter.pointer:
            base = _C[one.dtype] if one.dtype and parameter.type in (*signature.templates, "") else parameter.type
            passed.append(f"void* {parameter.name}")
            if one.dtype and base != "void":
                size = DType(one.dtype).size
                said = f"--inputs says that {parameter.name} has elements of {one.dtype}, the file's {base} has another size"
                checks += (
                    f'static_assert(sizeof({base}) % {size} == 0, "{said}");\n'
                    if parameter.type not in signature.templates
                    else ""
                )
            arguments.append(f"({'const ' if parameter.const else ''}{base}*){parameter.name}")
        else:
            plain = parameter.type if parameter.type in ("float", "double", "bool") else "long long"
            passed.append(f"{plain} {parameter.name}")
            arguments.append(parameter.name if parameter.type in signature.templates else f"({parameter.type}){parameter.name}")
    passed += [f"long long {size}" for size in more]
    return _SHIM.format(
        source=source, checks=checks, parameters=", ".join(passed), entry=callee, arguments=", ".join(arguments)
    )


def _body(given: list[_Given], sizes: dict[str, int], more: list[str], *, extension: bool) -> str:
    lines = []
    bound: set[str] = set()
    for one in given:
        if one.dtype and one.role in ("in", "io"):
            for k, dim in enumerate(one.dims):
                if dim in sizes and dim not in bound:
                    bound.add(dim)
                    lines.append(f"{dim} = {one.name}.shape[{k}]")
    lines += [f"{name} = {value}" for name, value in sizes.items() if name not in bound]
    results = []
    for one in given:
        kind = f"torch.{DType(one.dtype).torch_name}" if one.dtype else ""
        if one.role == "out":
            shape = f"({', '.join(one.dims)},)" if one.dims else "()"
            lines.append(f'{one.name} = torch.zeros({shape}, dtype={kind}, device="cuda")')
        elif one.role == "io":
            lines.append(f"{one.name} = {one.name}.contiguous().clone()")
        elif one.dtype:
            lines.append(f"{one.name} = {one.name}.contiguous()")
        if one.role in ("out", "io"):
            results.append(one.name)
    passed = [one.name if one.dtype and extension else f"{one.name}.data_ptr()" if one.dtype else one.number for one in given]
    passed = ["None" if p == "nullptr" else p for p in passed]
    lines.append(f"{'made = ' if not results else ''}_call({', '.join([*passed, *more])})")
    lines.append(f"return {', '.join(results) if results else 'made'}")
    return "".join(f"        {line}\n" for line in lines)


def _drawn(one: _Given, sizes: dict[str, int]) -> str:
    shape = f"[{', '.join(str(eval_size(d, sizes)) for d in one.dims)}]"
    kind = DType(one.dtype)
    if kind.value in ("f16", "bf16", "f32", "f64"):
        return f"torch.randn({shape}).to(torch.{kind.torch_name})"
    return f"torch.randint(0, {one.below or 2}, {shape}).to(torch.{kind.torch_name})"


def eval_size(text: str, sizes: dict[str, int]) -> int:
    """A size or a product of sizes as a number."""
    total = 1
    for factor in text.split("*"):
        word = factor.strip()
        total *= sizes[word] if word in sizes else int(word)
    return total


__all__ = ["Parameter", "Signature", "eval_size", "functions", "kernel_text"]
