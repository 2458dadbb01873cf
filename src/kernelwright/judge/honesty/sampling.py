"""What the samples of a candidate's time give away: shares of its work in libraries in, a suspicion in words out.

A library that is reached behind the dispatcher's back (a symbol of the MKL inside libtorch, numpy, a fork, code that behaves while it
is traced) still shows in the samples that `workers/sampling.py` takes from outside; where the kernel refuses those, the verdict
carries a warning.
"""

from __future__ import annotations

import re

from kernelwright.workers.sampling import Sighting

PER_CALL, PER_BLOCK = 60e-6, 200e-6
"""Seconds inside libtorch that are nobody's work: allocating outputs, and the stopwatch's reading of a few elements per block."""

BLAS = re.compile(r"(openblas|mkl|blis|lapack|cblas|dnnl|onednn)[^/]*\.so", re.IGNORECASE)
NUMPY = re.compile(r"/(numpy|scipy)(\.libs)?/.*\.so|/lib(?:scipy)[^/]*\.so")
TORCH = re.compile(r"/libtorch_cpu[^/]*\.so")
COMPUTING = re.compile(r"!(mkl|dnnl|kernel|code)$")
"""Parts of libraries that compute (code_owners.py): no allocation, no copy and no dispatching ever runs there."""
RUNTIME = re.compile(r"/lib(gomp|omp|iomp5|python|c10|torch_python)[^/]*\.so|/_ctypes[^/]*\.so|/ld-linux|^\[v|/python3[^/]*$")
"""Waiting and calling: threads spin in OpenMP's library, Python interprets. No work is done there, so it is left out of shares."""
INTERPRETER = re.compile(r"/lib(python|torch_python)[^/]*\.so|/python3[^/]*$")
SYSTEM = re.compile(
    r"^/(usr|lib|lib64|opt)/.*/lib(?!(c|m|mvec|dl|rt|pthread|stdc\+\+|gcc_s|ffi|gomp|omp|iomp5|c10|torch\w*|python[\d.]*|shm)[-.])[\w+-]+\.so"
)
"""Any other library that came with the system: a kernel brings its own code, or has a compiler make it."""
COMPUTING_SHARE = 0.04
FEW = 12
"""Samples of work that prove nothing yet."""
SMALL_BESIDE_PYTHON = 0.1
"""A kernel that is written in Python itself spends its time interpreting; what turns its lists into tensors is small beside that."""


def working(seen: Sighting) -> int:
    """Samples of work: waiting and calling are left out."""
    return seen.total - seen.count(RUNTIME)


def suspicion(seen: Sighting, copied_bytes: int) -> str:
    """What a kernel on track pure may not have spent its time on, in words; empty when there is nothing to say.

    Few samples prove nothing. Time inside libtorch is normal as far as allocation (microseconds a call) and the copies that the
    trace listed explain it; those are granted generously, at 2 GB/s. In another process they explain nothing: the trace is of this one."""
    blas, array, torch = seen.count(BLAS), seen.count(NUMPY), seen.count(TORCH)
    work = working(seen)
    if work < FEW:
        return ""
    afar = sum(number for path, number in seen.elsewhere.items() if TORCH.search(path))
    if afar >= 5 and afar > 0.1 * work:
        return f"{100 * afar / work:.0f} % of forward's CPU time was spent inside libtorch by another process that it started"
    inside = seen.count(COMPUTING)
    if inside >= 5 and inside > COMPUTING_SHARE * work:
        most = max((path for path in seen.files if COMPUTING.search(path)), key=lambda path: seen.files[path])
        file, _, part = most.rpartition("/")[2].partition("!")
        what = {"mkl": "the BLAS routines", "dnnl": "the code generators", "kernel": "the inner loops of operators"}.get(
            part, "code"
        )
        return f"{100 * inside / work:.0f} % of forward's CPU time was spent in {what} of {file}"
    if blas >= 5 and blas > 0.05 * work:
        return f"{100 * blas / work:.0f} % of forward's CPU time was spent in a BLAS library"
    if array >= 8 and array > 0.3 * work:
        return f"{100 * array / work:.0f} % of forward's CPU time was spent in numpy"
    other = seen.count(SYSTEM)
    if other >= 8 and other > 0.3 * work:
        most = max((path for path in seen.files if SYSTEM.search(path)), key=lambda path: seen.files[path])
        return f"{100 * other / work:.0f} % of forward's CPU time was spent in {most.rpartition('/')[2]}"
    explained = PER_CALL + PER_BLOCK * seen.blocks / max(1, seen.calls) + copied_bytes / 2e9
    beside_python = torch > SMALL_BESIDE_PYTHON * (work + seen.count(INTERPRETER))
    if torch >= 8 and torch > 0.3 * work and beside_python and seen.seconds_per_call(TORCH) > explained:
        return f"{100 * torch / work:.0f} % of forward's CPU time was spent inside libtorch, which no traced operator explains"
    return ""
