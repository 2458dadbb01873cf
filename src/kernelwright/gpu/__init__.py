"""A GPU in software: PTX in; execution on the CPU, errors with their source lines and counts out.

    program = Program.from_ptx(text)                       # translated to C++, built by g++, cached
    report = program.launch("softmax", (1024,), (128,), params, shared=16)

What compilers of CUDA-C, Triton and TileLang make for a device is what runs here: pointers are addresses of this process, so
kernels work on tensors of the CPU as they are.

- `ptx/` reads PTX into a frozen module, and executes nothing: other readers of PTX use it too.
- `translate/` makes C++ of it: a warp is vectors of 32 lanes and a mask, a thread block is warps in turns.
- `runtime/` is the other half in C++: vectors of lanes, memory (plain, or checked and counted), matrices, blocks over cores.
- `build` builds and caches; `program` loads and launches; `report` says what was seen.

Neither torch nor any compiler is imported here.
"""

from kernelwright.gpu.program import Memory, Program, Sample, allocations
from kernelwright.gpu.report import Count, Fault, Report
from kernelwright.gpu.translate.module import EntryPoint

__all__ = ["Count", "EntryPoint", "Fault", "Memory", "Program", "Report", "Sample", "allocations"]
