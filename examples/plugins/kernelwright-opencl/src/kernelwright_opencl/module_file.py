"""The kernel file: OpenCL source for each set of input shapes, and a `ModelNew` that launches it through pyopencl.

In: sketches and the reference's state_dict entries. Out: Python text that needs torch and pyopencl. The module around the launches is the
one that GPU languages share (compiler/lower/module_file/launches.py); tensors stay in host memory, which OpenCL buffers are laid over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelwright.compiler.language import State
from kernelwright.compiler.lower.module_file.launches import Call, Program, contiguous, render
from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.print import to_source
from kernelwright.target import Capabilities
from kernelwright_opencl.prelude_text import prelude
from kernelwright_opencl.writer import OpenCLWriter

_LOADER = '''

def _device():
    """A CPU if there is one, since torch's tensors lie in host memory; else the first device of any kind."""
    try:
        devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error:
        devices = []
    if not devices:
        raise RuntimeError("no OpenCL device was found. PoCL makes one of the CPU: apt install pocl-opencl-icd")
    return next((device for device in devices if device.type & cl.device_type.CPU), devices[0])


class _Program:
    """One OpenCL source, built when it first runs."""

    def __init__(self, source):
        self.source, self.kernels = source, None

    def build(self):
        self.context = cl.Context([_device()])
        self.queue = cl.CommandQueue(self.context)
        built = cl.Program(self.context, self.source).build(options=["-cl-std=CL1.2"])
        self.kernels = {kernel.function_name: kernel for kernel in built.all_kernels()}

    def buffer(self, tensor):
        """A buffer over the tensor's own memory."""
        count = tensor.numel() * tensor.element_size()
        if not count:
            return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, 16)
        memory = (ctypes.c_char * count).from_address(tensor.data_ptr())
        return cl.Buffer(self.context, cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR, hostbuf=memory)

    def run(self, tensors, written, launches):
        """Each launch: kernel, work-groups, work-items of a group, bytes of scratch memory, its tensors."""
        if self.kernels is None:
            self.build()
        places = {tensor.data_ptr(): tensor for tensor in tensors.values()}
        buffers = {place: self.buffer(tensor) for place, tensor in places.items()}
        for name, groups, items, scratch, names in launches:
            given = [buffers[tensors[one].data_ptr()] for one in names]
            if scratch:
                given.append(cl.Buffer(self.context, cl.mem_flags.READ_WRITE, scratch))
            kernel = self.kernels[name]
            kernel.set_args(*given)
            if groups:
                cl.enqueue_nd_range_kernel(self.queue, kernel, (groups * items,), (items,))
        for name in written:  # what a device keeps elsewhere comes back when it is mapped
            if tensors[name].numel():
                buffer = buffers[tensors[name].data_ptr()]
                mapped, _ = cl.enqueue_map_buffer(self.queue, buffer, cl.map_flags.READ, 0, (buffer.size,), "uint8")
                mapped.base.release(self.queue)
        self.queue.finish()

'''


def lower(
    sketch: nodes.Sketch, *, state: State = (), shapes: Sequence[nodes.Sketch] = (), capabilities: Capabilities | None = None
) -> str:
    """One Python file. `shapes` are sketches of the same module for other input shapes."""
    programs: list[Program] = []
    sources: list[str] = []
    for number, each in enumerate((sketch, *shapes)):
        suffix = f"_{number}" if number else ""
        text, steps = _steps(_fixed(each), f"_PROGRAM{suffix}")
        programs.append(Program(each, to_source(each), steps))
        sources.append(f"SOURCE{suffix} = r'''\n{text.strip()}\n'''\n_PROGRAM{suffix} = _Program(SOURCE{suffix})\n")
    kernels = _LOADER + "\n".join(sources)
    return render(programs, state, imports="import ctypes\nimport pyopencl as cl", kernels=kernels, needs="pyopencl")


def _fixed(sketch: nodes.Sketch) -> nodes.Sketch:
    """The sketch with every size a number: there is a program for each set of shapes."""
    return replace(sketch, sizes=tuple(replace(size, dynamic=False) for size in sketch.sizes))


def _steps(sketch: nodes.Sketch, program: str) -> tuple[str, tuple[Call | nodes.LibraryCall, ...]]:
    """The OpenCL source of a sketch, and its steps: consecutive kernels are one call."""
    functions: list[str] = []
    steps: list[Call | nodes.LibraryCall] = []
    group: list[OpenCLWriter] = []

    def flush() -> None:
        if group:
            steps.append(_call(sketch, program, group))
            group.clear()

    for step in sketch.steps:
        if isinstance(step, nodes.LibraryCall):
            flush()
            steps.append(step)
            continue
        if group and group[-1].kernel.once != step.once:
            flush()
        writer = OpenCLWriter(sketch, step, ())
        functions.append(writer.write())
        group.append(writer)
    flush()
    body = "\n".join(functions)
    return f"{prelude(body)}\n{body}", tuple(steps)


def _call(sketch: nodes.Sketch, program: str, group: list[OpenCLWriter]) -> Call:
    """Lines that run kernels one after the other. An input that is also returned has a contiguous twin."""
    tensors = tuple(dict.fromkeys(name for writer in group for name in writer.used))
    written = [name for name in tensors if any(name in writer.written for writer in group)]
    twins = contiguous(sketch)
    given = ", ".join(f"{name!r}: {twins[name]}" for name in tensors)
    lines = [f"{program}.run(", f"    {{{given}}},", f"    written={written},", "    launches=["]
    for writer in group:
        for launch in writer.launches:
            blocks, scratch = launch.blocks.constant, launch.scratch.constant if launch.scratch.terms else 0
            if blocks is None or scratch is None:
                raise SketchError(f"the size of kernel {writer.kernel.name} is not known before it runs")
            lines.append(f"        ({launch.name!r}, {blocks}, {launch.threads}, {blocks * scratch}, {list(writer.used)}),")
    return Call((*lines, "    ],", ")"), tensors, group[0].kernel.once)
