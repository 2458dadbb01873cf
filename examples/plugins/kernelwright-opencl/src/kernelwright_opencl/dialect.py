"""OpenCL C for what the CUDA-C coder writes: C without templates and constructors, address spaces, OpenCL's own names.

In: the lines of a kernel's body as written for CUDA. Out: lines of OpenCL C. The coder's text has few forms, each of which has its rule
here; local arrays go to the top of the kernel, the only place where OpenCL C allows them.
"""

from __future__ import annotations

import re

TYPES = {
    "double": "double", "float": "float", "int64_t": "long", "int32_t": "int", "int": "int", "int16_t": "short", "int8_t": "char",
    "uint8_t": "uchar", "uint16_t": "ushort", "uint32_t": "uint", "bool": "bool", "unsigned char": "uchar", "size_t": "size_t",
    "char": "char",
}  # fmt: skip
"""The coder's types by their OpenCL names."""

_KEYWORDS = """
kernel global local constant private generic half uchar ushort uint ulong pipe image2d_t image3d_t event_t sampler_t quad restrict
read_only write_only read_write vec_step uniform complex imaginary
"""
_FUNCTIONS = """
acos acosh asin asinh atan atan2 atanh cbrt ceil clamp copysign cos cosh cross degrees distance dot erf erfc exp exp2 exp10 expm1 fabs
fdim floor fma fmax fmin fmod fract frexp hypot ilogb ldexp length lgamma log log10 log1p log2 logb mad maxmag minmag mix modf
nan nextafter normalize pow pown powr radians remainder remquo rint rootn round rsqrt sign sin sincos sinh smoothstep sqrt step tan tanh
tgamma trunc isnan isinf isfinite isequal select any all abs rotate upsample barrier popcount clz shuffle convert as
"""
_TAKEN = re.compile(rf"\b({'|'.join(_KEYWORDS.split())})\b|\b({'|'.join(_FUNCTIONS.split())})\b(?!\()")
_SHARED = re.compile(r"__shared__ (?:__align__\(\d+\) )?(unsigned char|\w+) (\w+)((?:\[\d+\])+);")
_POINTER = re.compile(r"(const )?(\w+)\* (const )?(\w+) = (.*);")
_CAST = re.compile(rf"\b({'|'.join(t for t in TYPES if ' ' not in t)})\(")
_WORDS = (
    (re.compile(r"\bstd::"), ""),
    (re.compile(r"__syncthreads\(\);"), "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"),
    (re.compile(r"\bthreadIdx\.x\b"), "(int)get_local_id(0)"),
    (re.compile(r"\bblockIdx\.x\b"), "(int)get_group_id(0)"),
    (re.compile(r"\bgridDim\.x\b"), "(int)get_num_groups(0)"),
    (re.compile(r"\bINT64_MIN\b"), "LONG_MIN"),
    (re.compile(r"\batomic_(add|max|min)"), r"put_\1"),
)


def name(word: str) -> str:
    """A variable's name that OpenCL C does not know as something else."""
    return _TAKEN.sub(lambda found: f"{found.group()}_", word)


def in_memory(kind: str) -> str:
    """The type of an element of an array or buffer: a bool has no size of its own in OpenCL."""
    return "uchar" if kind == "bool" else TYPES[kind]


def body(lines: list[str]) -> list[str]:
    """A kernel's body: its local arrays, then everything else."""
    return _Body().write(lines)


class _Body:
    """Remembers which names lie in which memory."""

    def __init__(self) -> None:
        self.arrays: dict[str, str] = {}  # local arrays: name → declaration
        self.globals: set[str] = {"scratch", "scratch_of_block"}
        self.renamed: list[tuple[int, str, str]] = []  # depth of the block in which a name stands for another
        self.depth = 0

    def write(self, lines: list[str]) -> list[str]:
        written = [self.line(line) for line in lines]
        return [*self.arrays.values(), *(line for line in written if line is not None)]

    def line(self, line: str) -> str | None:
        if line.startswith("#pragma unroll"):  # OpenCL 1.2 has no such word; loops of known length need none
            return None
        if line.startswith("//"):
            return line
        line = name(line)
        shared = _SHARED.fullmatch(line)
        if shared:
            self.array(*shared.groups())
            return None
        for _, old, new in self.renamed:
            line = re.sub(rf"\b{old}\b", new, line)
        pointer = _POINTER.fullmatch(line)
        text = self.pointer(*pointer.groups()) if pointer else expression(line)
        self.depth += line.count("{") - line.count("}")
        self.renamed = [item for item in self.renamed if item[0] <= self.depth]
        return text

    def array(self, kind: str, array: str, extents: str) -> None:
        """A local array; another of the same name in another block gets a name of its own."""
        fresh, k = array, 1
        made = f"__local {in_memory(kind)} {{}}{extents} __attribute__((aligned(16)));"
        while self.arrays.get(fresh, made.format(fresh)) != made.format(fresh):
            k += 1
            fresh = f"{array}_{k}"
        self.arrays[fresh] = made.format(fresh)
        if fresh != array:
            self.renamed.append((self.depth, array, fresh))

    def pointer(self, constant: str | None, kind: str, fixed: str | None, variable: str, value: str) -> str:
        """A pointer into local memory, into a buffer, or to a work-item's own variable."""
        value = re.sub(r"reinterpret_cast<\w+\*>\((.*)\)$", r"\1", value)
        source = re.match(r"\w+", value)
        home = source.group() if source else ""
        if home in self.globals:
            self.globals.add(variable)
        space = "__global " if home in self.globals else "__local " if home in self.arrays else ""
        kind = f"{space}{constant or ''}{in_memory(kind)}*"
        return f"{kind} {fixed or ''}{variable} = ({kind})({expression(value)});"


def expression(text: str) -> str:
    """An expression or statement in OpenCL's words."""
    for pattern, instead in _WORDS:
        text = pattern.sub(instead, text)
    text = re.sub(r"\b(\w+_of)<(\w+)>\(", lambda found: f"{found.group(1)}_{TYPES[found.group(2)]}(", text)
    text = re.sub(r"__builtin_bit_cast\((\w+), ", lambda found: f"as_{in_memory(found.group(1))}(", text)
    text = _CAST.sub(lambda found: f"({TYPES[found.group(1)]})(", text)
    return re.sub(r"\b(u?int\d+_t)\b", lambda found: TYPES[found.group(1)], text)
