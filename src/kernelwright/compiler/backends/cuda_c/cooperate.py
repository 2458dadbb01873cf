"""One loop nest by all threads of a block: elements are dealt out to threads, reductions meet in shuffles and shared memory.

In: a `Nest` (its domain and outputs) and the number of threads. Out: CUDA lines, and which memory the nest
reads and writes, so that the scheduler can place barriers. The axis that memory likes best runs along neighbouring threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelwright.compiler.lower import c_expressions
from kernelwright.compiler.lower.c_family.elements import Elements
from kernelwright.compiler.lower.c_family.nest import Materialize, Nest, Output, Reduce, Store
from kernelwright.compiler.lower.c_family.scalars import Lines, Scalar
from kernelwright.compiler.lower.c_types import COMPUTED, STORED, literal
from kernelwright.compiler.lower.element_index import Index
from kernelwright.compiler.lower.element_index import offset as offset_of
from kernelwright.core.dtypes import HALVES
from kernelwright.core.operations import neutral
from kernelwright.sketch.index import Poly, poly, to_c
from kernelwright.sketch.nodes import DType

WARP = 32


@dataclass
class Written:
    """CUDA lines and the memory they touch, by C name."""

    lines: list[str]
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    meets: bool = False  # uses the block's reduction buffer


class NestWriter:
    """Writes one nest; `kind` is the C type of positions. A related language says otherwise how threads meet."""

    def __init__(self, nest: Nest, threads: int, kind: str) -> None:
        self.nest = nest
        self.threads = threads
        self.kind = kind
        self.axes = nest.order()
        self.elements = nest.elements({nest.vars[a]: 1 for a in self.axes})
        self.values = nest.scalars(self.elements)
        taken = nest.context.taken | set(nest.vars.values()) | {"e", "f", "g", "lane", "o"}
        self.lines = Lines(1, taken)
        self.conditions = [self.tests(output) for output in nest.outputs]
        self.lines.count([*self.values, *(s for tests in self.conditions for s in tests)])
        self.out: list[str] = []

    def write(self) -> Written:
        """The whole nest."""
        reductions = [output for output in self.nest.outputs if isinstance(output, Reduce)]
        return self.reductions(reductions) if reductions and self.nest.reduced() else self.plain()

    def tests(self, output: Output) -> list[Scalar]:
        """What must hold for a store to lie inside its tensor."""
        if not isinstance(output, Store):
            return []
        tensor = self.nest.context.tensors[output.tensor]
        positions = self.elements.positions(output.axes, self.nest.index)
        return [self.elements.condition(p) for p in self.elements.outside(tensor.shape, positions)]

    def done(self, meets: bool = False) -> Written:
        reads = {place.memory for place in self.elements.places if not place.writes}
        writes = {place.memory for place in self.elements.places if place.writes}
        for output in self.nest.outputs:
            if isinstance(output, Reduce) and not output.storage.scalar:
                writes.add(output.storage.name)
        return Written(["{", *self.lines.lines[0], *self.out, "}"], reads, writes, meets)

    def decode(self, flat: str, axes: list[int]) -> list[str]:
        """Positions along `axes` from one number, the last axis fastest."""
        lines = []
        rest = flat
        for number, axis in enumerate(reversed(axes)):
            var, extent = self.nest.vars[axis], to_c(self.nest.shape[axis])
            last = number == len(axes) - 1
            lines.append(f"const {self.kind} {var} = {rest if last else f'{rest} % ({extent})'};")
            rest = f"({rest} / ({extent}))"
        return lines

    def count(self, axes: list[int]) -> Poly:
        size = poly(1)
        for axis in axes:
            size = size * self.nest.shape[axis]
        return size

    # ------------------------------------------------------------ stores

    def statements(self, only: tuple[type, ...], *, once: bool = False) -> list[str]:
        """The stores of one element; lines they need go before them. With `once`, one thread writes to tensors; what threads keep for
        themselves every one of them keeps."""
        body: list[str] = []
        for output, value, tests in zip(self.nest.outputs, self.values, self.conditions, strict=True):
            if isinstance(output, only) and isinstance(output, Materialize | Store):
                text = self.lines.write(value, 1, False)
                line = self.store(output, text, [self.lines.write(t, 1, False) for t in tests])
                body.append(f"if (threadIdx.x == 0) {line}" if once and isinstance(output, Store) else line)
        return [*self.inner_lines(), *body]

    def inner_lines(self) -> list[str]:
        inner, self.lines.lines[1] = self.lines.lines[1], []
        return inner

    def store(self, output: Materialize | Store, text: str, tests: list[str]) -> str:
        if isinstance(output, Materialize):
            slot = output.storage.name
            if not output.storage.scalar:
                slot += f"[{to_c(Elements.offset_in(output.storage, self.nest.tile_index(output)))}]"
            return f"{slot} = {c_expressions.store(text, output.storage.dtype)};"
        tensor = self.nest.context.tensors[output.tensor]
        offset = offset_of(tensor.strides, self.elements.positions(output.axes, self.nest.index))
        place = self.lines.write(self.elements.text(offset), 1, False)
        line = put(output, tensor.pointer, place, text, tensor.dtype)
        return f"if ({' && '.join(f'({t})' for t in tests)}) {line}" if tests else line

    def plain(self) -> Written:
        """No reduction: elements are dealt out one by one."""
        total = self.count(self.axes)
        if total.constant == 1:
            self.out += self.statements((Materialize, Store), once=True)
            return self.done()
        body = self.statements((Materialize, Store))
        step = f"for ({self.kind} e = threadIdx.x; e < {to_c(total)}; e += {self.threads}) {{"
        self.out += [step, *self.decode("e", self.axes), *body, "}"]
        return self.done()

    # ------------------------------------------------------------ reductions

    def reductions(self, reductions: list[Reduce]) -> Written:
        bound = self.nest.reduced()
        free = [a for a in self.axes if a not in bound]
        inner = [a for a in self.axes if a in bound]
        outputs, length = self.count(free).constant, self.count(inner).constant
        values = [value for output, value in zip(self.nest.outputs, self.values, strict=True) if isinstance(output, Reduce)]
        names = [f"total{k + 1}" for k in range(len(reductions))]
        starts = [
            f"{COMPUTED[reduction.value.dtype]} {name} = {literal(neutral(reduction.op, reduction.value.dtype), reduction.value.dtype)};"
            for reduction, name in zip(reductions, names, strict=True)
        ]
        body = self.statements((Materialize, Store))
        for reduction, name, value in zip(reductions, names, values, strict=True):
            text = self.lines.write(value, 1, False)
            body += self.inner_lines()
            step = c_expressions.reduction(
                reduction.op, name, text if text.isidentifier() else f"({text})", reduction.value.dtype
            )
            body.append(f"{name} = {step};")
        if not free:
            return self.whole(reductions, names, starts, body, inner)
        along_free = self.axes[-1] not in bound
        many = outputs is None or outputs >= self.threads or (length is not None and length <= 4)
        if many or (along_free and outputs is not None and outputs >= WARP):
            return self.each(reductions, names, starts, body, free, inner)
        return self.grouped(reductions, names, starts, body, free, inner)

    def whole(
        self, reductions: list[Reduce], names: list[str], starts: list[str], body: list[str], inner: list[int]
    ) -> Written:
        """One result: all threads, then warps by shuffles, then the warps' results through shared memory."""
        total = to_c(self.count(inner))
        walk = f"for ({self.kind} e = threadIdx.x; e < {total}; e += {self.threads}) {{"
        self.out += [*starts, walk, *self.decode("e", inner), *body, "}"]
        for reduction, name in zip(reductions, names, strict=True):
            self.out += self.shuffles(reduction, name, min(WARP, self.threads))
            self.out += self.meet(reduction, name)
            self.out.append(f"{reduction.storage.name} = {c_expressions.store(name, reduction.storage.dtype)};")
        return self.done(meets=self.threads > WARP)

    def meet(self, reduction: Reduce, name: str) -> list[str]:
        warps = self.threads // WARP
        if warps <= 1:
            return []
        kind = COMPUTED[reduction.value.dtype]
        step = c_expressions.reduction(reduction.op, name, "meeting_point[o]", reduction.value.dtype)
        return [
            "{",
            f"{kind}* const meeting_point = reinterpret_cast<{kind}*>(meeting);",
            f"if (threadIdx.x % 32 == 0) meeting_point[threadIdx.x / 32] = {name};",
            "__syncthreads();",
            f"{name} = meeting_point[0];",
            f"for (int o = 1; o < {warps}; ++o) {name} = {step};",
            "__syncthreads();",
            "}",
        ]

    def shuffles(self, reduction: Reduce, name: str, width: int) -> list[str]:
        step = c_expressions.reduction(reduction.op, name, f"swap_lanes({name}, o)", reduction.value.dtype)
        return [f"for (int o = {width // 2}; o > 0; o /= 2) {name} = {step};"] if width > 1 else []

    def results(self, reductions: list[Reduce], names: list[str]) -> list[str]:
        lines = []
        for reduction, name in zip(reductions, names, strict=True):
            slot = reduction.storage.name
            if not reduction.storage.scalar:
                index: Index = tuple(
                    poly(0) if a in reduction.axes or self.nest.shape[a].constant == 1 else poly(self.nest.vars[a])
                    for a in range(len(self.nest.shape))
                )
                slot += f"[{to_c(Elements.offset_in(reduction.storage, index[len(index) - len(reduction.storage.shape) :]))}]"
            lines.append(f"{slot} = {c_expressions.store(name, reduction.storage.dtype)};")
        return lines

    def each(
        self, reductions: list[Reduce], names: list[str], starts: list[str], body: list[str], free: list[int], inner: list[int]
    ) -> Written:
        """A thread for each result."""
        self.out += [
            f"for ({self.kind} f = threadIdx.x; f < {to_c(self.count(free))}; f += {self.threads}) {{",
            *self.decode("f", free), *starts,
            *(self.walk(a) for a in inner), *body, *("}" for _ in inner), *self.results(reductions, names), "}",
        ]  # fmt: skip
        return self.done()

    def walk(self, axis: int) -> str:
        var = self.nest.vars[axis]
        return f"for ({self.kind} {var} = 0; {var} < {to_c(self.nest.shape[axis])}; ++{var}) {{"

    def grouped(
        self, reductions: list[Reduce], names: list[str], starts: list[str], body: list[str], free: list[int], inner: list[int]
    ) -> Written:
        """Some lanes of a warp for each result."""
        outputs = self.count(free).constant or 1
        lanes = WARP
        while lanes > 2 and outputs * lanes > self.threads * 2:
            lanes //= 2
        groups = self.threads // lanes
        count = to_c(self.count(free))
        shuffles = [
            line for reduction, name in zip(reductions, names, strict=True) for line in self.shuffles(reduction, name, lanes)
        ]
        self.out += [
            f"for ({self.kind} g = 0; g < {count}; g += {groups}) {{",
            f"const {self.kind} f = g + threadIdx.x / {lanes};",
            *self.decode("f", free), *starts,
            f"if (f < {count}) for ({self.kind} e = threadIdx.x % {lanes}; e < {to_c(self.count(inner))}; e += {lanes}) {{",
            *self.decode("e", inner), *body, "}", *shuffles,
            f"if (f < {count} && threadIdx.x % {lanes} == 0) {{", *self.results(reductions, names), "}", "}",
        ]  # fmt: skip
        return self.done()


def put(output: Store, pointer: str, place: str, text: str, dtype: DType) -> str:
    """One store into a tensor, atomic where the sketch says so."""
    if output.mode == "set":
        return f"{pointer}[{place}] = {c_expressions.store(text, dtype)};"
    suffix = f"_{dtype}" if dtype in HALVES and output.mode == "add" else ""
    value = text if suffix else f"{STORED[dtype]}({text})"
    return f"atomic_{output.mode}{suffix}(&{pointer}[{place}], {value});"
