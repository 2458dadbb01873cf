"""Triton's own interpreter, made ready for other people's kernels.

1. `patches`         the language patched once for good; every launch is put down for the compiler
2. `bf16`            arithmetic that the interpreter gets wrong; `reductions` also scans
3. `checked_memory`  bounds, and elements that a mask leaves undefined
4. `speed`           what takes long and can be short
"""
