"""The kernel file: one Python module that builds its C++ source and defines `ModelNew`; here is how it is built."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelwright.compiler.backends.cpp.codegen_options import CodegenOptions
from kernelwright.compiler.language import State
from kernelwright.compiler.lower.module_file import compiled
from kernelwright.compiler.lower.module_file.compiled import Program
from kernelwright.core.size_choice import SizeTable

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

_PREPARE = """
    compiler = os.environ.get("CXX", "g++")
    try:
        about = subprocess.run([compiler, "-march=native", "-Q", "--help=target", "--version"], capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise RuntimeError(f"{compiler} was not found; it is needed to build this kernel. Install it with: apt install g++") from None
    key = hashlib.sha256("\\n".join([code, *FLAGS, about]).encode()).hexdigest()[:24]
"""
_COMPILE = """
            done = subprocess.run([compiler, *FLAGS, source, "-o", built], capture_output=True, text=True)
"""


def render(programs: Sequence[Program], state: State, options: CodegenOptions, table: SizeTable | None = None) -> str:
    """The text of the kernel file."""
    build = compiled.loader(
        doc="Compiles a source once for each source, compiler and CPU; the result is kept in a cache folder.",
        prepare=_PREPARE, folder="kernelwright-cpp", ending="cpp", compile=_COMPILE, language="C++",
    )  # fmt: skip
    loader = f"\nFLAGS = {build_flags([program.built.text for program in programs], options)!r}\n\n{build}"
    return compiled.render(programs, state, loader=loader, needs="g++", options=options.changed, table=table)


def build_flags(sources: Sequence[str], options: CodegenOptions) -> list[str]:
    """Polynomials want to be interleaved; matrix products have their registers counted out and are left as written."""
    texts = "".join(sources)
    polynomials = re.search(r"\b(exp|expm1|log|log1p_exp|tanh|tanh_plus_one|erf|erf_plus_one|sin|cos)_of\(", texts)
    wanted = (
        bool(options.interleave)
        if options.interleave >= 0
        else bool(polynomials) and not re.search("gemm_(tile|packing)<", texts)
    )
    return [f"-O{options.optimize}", *FLAGS, *(INTERLEAVE if wanted else [])]
