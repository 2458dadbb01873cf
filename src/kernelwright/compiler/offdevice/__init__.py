"""Running a file that was written for a GPU on a machine without one.

`redirect` makes torch's CUDA API answer from the CPU and a target's sheet; it knows no language. A language's runtime module
(`OffDeviceRuntime` in compiler/language.py) installs it in the sandboxed process of a candidate and adds what the language itself needs.
"""
