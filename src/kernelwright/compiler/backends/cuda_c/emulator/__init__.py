"""The CUDA emulator: CUDA C++ source in, a shared library for this CPU out.

1. `tokens`   C++ text as tokens that know what is comment, string and directive
2. `rewrite`  what g++ cannot read (`<<<…>>>`, `__shared__`, `threadIdx.x`, inline PTX) as calls into the emulator
3. `build`    the compiler run: instrumented kernel code, the runtime beside it, both cached by content
4. `library`  a built library in this process: bounds of tensors go in, errors come out as exceptions
5. `device/*.h`, `device/runtime.cpp`: CUDA's names for the CPU; fibers, barriers, warps and the checks
"""
