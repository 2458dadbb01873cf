"""One kernel of a sketch as OpenCL kernels.

In: a Sketch and one of its kernels. Out: `Launch`es with OpenCL text. How work is cut into groups, what lies in shared memory and where
barriers stand is decided by the CUDA-C coder, whose classes these are; three things differ: work-items of a group meet in local memory,
because OpenCL 1.2 has no shuffles; products have no tensor cores; and the text is OpenCL C.
"""

from __future__ import annotations

from kernelwright.compiler.backends.cuda_c import product_kernel
from kernelwright.compiler.backends.cuda_c.cooperate import NestWriter, Written
from kernelwright.compiler.backends.cuda_c.kernel import THREADS, KernelWriter, Launch
from kernelwright.compiler.backends.cuda_c.schedule import BlockScheduler
from kernelwright.compiler.lower import c_expressions
from kernelwright.compiler.lower.c_family.nest import Reduce
from kernelwright.compiler.lower.c_family.source import indent
from kernelwright.compiler.lower.c_types import COMPUTED, STORED
from kernelwright.sketch.index import Poly
from kernelwright.sketch.nodes import DType
from kernelwright_opencl import dialect


class GroupNest(NestWriter):
    """A nest by all work-items of a group."""

    meeting = False

    def shuffles(self, reduction: Reduce, name: str, width: int) -> list[str]:
        """The results of `width` neighbours become one, which all of them get: a tree in local memory."""
        if width <= 1:
            return []
        self.meeting = True
        kind = COMPUTED[reduction.value.dtype]
        mine, theirs = "meeting_point[threadIdx.x]", "meeting_point[threadIdx.x + o]"
        return [
            "{",
            f"{kind}* const meeting_point = reinterpret_cast<{kind}*>(meeting);",
            f"{mine} = {name};",
            "__syncthreads();",
            f"for (int o = {width // 2}; o > 0; o /= 2) {{",
            f"if (threadIdx.x % {width} < o) {mine} = {c_expressions.reduction(reduction.op, mine, theirs, reduction.value.dtype)};",
            "__syncthreads();",
            "}",
            f"{name} = meeting_point[threadIdx.x / {width} * {width}];",
            "__syncthreads();",
            "}",
        ]

    def done(self, meets: bool = False) -> Written:
        return super().done(meets or self.meeting)


class GroupScheduler(BlockScheduler):
    """What one work-group does."""

    nest_writer = GroupNest
    shared_bytes = 28 * 1024  # every OpenCL device has 32 KiB of local memory


class RegisterProduct(product_kernel.Writer):
    """A large product: blocks of the output in registers, operands staged in local memory."""

    def narrow(self, rows: int, columns: int, depth: int) -> DType | None:
        return None


class OpenCLWriter(KernelWriter):
    """Writes one kernel of a sketch; `launches` are what it became."""

    scheduler = GroupScheduler
    product = RegisterProduct
    meeting_bytes = 8 * THREADS

    def finished(self, name: str, body: list[str], blocks: Poly, threads: int, scratch: Poly) -> Launch:
        name = f"run_{name}"  # a kernel may be called like one of OpenCL's own functions
        parameters = [*self.parameters(), *(["__global char* scratch"] if scratch.terms else [])]
        head = f"__kernel __attribute__((reqd_work_group_size({threads}, 1, 1)))\nvoid {name}({', '.join(parameters)}) {{\n"
        return Launch(name, head + indent(dialect.body(body)) + "}\n", blocks, threads, scratch)

    def parameters(self) -> list[str]:
        found = []
        for name in self.used:
            constant = "" if name in self.written else "const "
            kind = dialect.in_memory(STORED[self.declared[name].dtype])
            found.append(f"__global {constant}{kind}* restrict {dialect.name(self.places[name].pointer)}")
        return found

    def host(self) -> str:
        """Nothing: Python launches."""
        return ""
