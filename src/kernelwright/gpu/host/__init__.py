"""CUDA's host side in software: programs that nvcc compiled in, their launches executed by the machine, or recorded.

    device = Device(attributes_of(sheet), checks=True)     # one device: allocations, modules, launches, errors
    device.open(library)                                   # from here on CUDA calls of this process come to it
    ctypes.CDLL("program.so")                              # host code as nvcc made it, linked to our `libcudart`

1. nvcc compiles a program with PTX inside and links it to `cudart.cpp` (`runtime_library` builds that, with the toolkit's own headers).
2. Loading it registers its fat binary; `images` takes the PTX out; `device` keeps modules, allocations and symbols.
3. `kernel<<<…>>>(…)`, in whatever macro or template, becomes `cudaLaunchKernel`, and that a `Launch`: observed, then executed.

A lifter observes: `with device.observed(see): …` calls `see(launch)` before each launch. A Launch has the mangled `entry`, the `ptx`,
`grid`, `block`, `cluster`, `shared` bytes, `params` (the bytes of the parameter block), `arguments()` (the bytes of each) and `buffers()`
(those that point into an allocation, with its address and size). False from `see` means "recorded, do not execute".

No compiler and no torch is imported here: who compiles is `compiler/offdevice/cuda_build.py`, tensors of torch are allocations like others.
"""

from kernelwright.gpu.host.device import Buffer, Device, Launch
from kernelwright.gpu.host.library import runtime_library

__all__ = ["Buffer", "Device", "Launch", "runtime_library"]
