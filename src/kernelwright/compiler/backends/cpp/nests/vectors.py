"""Explicit vectors: the innermost loop of a nest over floats, written with the compiler's vector types.

In: a nest whose scalars are made. Out: the same loop bodies over `Vector`s, several of them side by side, so that the steps of
one polynomial wait while those of another run; outputs larger than the caches are streamed from the registers. A nest that
holds anything else than float arithmetic on contiguous elements is left to the compiler's own vectoriser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernelwright.compiler.backends.cpp.nests.fetch import fetches
from kernelwright.compiler.backends.cpp.nests.loops import Loop
from kernelwright.compiler.lower import c_expressions
from kernelwright.compiler.lower.c_family.elements import Elements
from kernelwright.compiler.lower.c_family.nest import Materialize, Reduce, Store
from kernelwright.compiler.lower.c_family.scalars import Scalar, fill
from kernelwright.compiler.lower.c_types import literal
from kernelwright.compiler.lower.element_index import offset
from kernelwright.core.operations import neutral
from kernelwright.sketch.index import Poly, to_c
from kernelwright.sketch.nodes import DType

if TYPE_CHECKING:
    from kernelwright.compiler.backends.cpp.nests.loop_nest import LoopNest

WIDEST = 16
"""Floats of the widest vectors there are."""
SHORTEST = 2 * WIDEST
"""A shorter loop is not worth a vector loop and its remainder, unless its last vector may begin earlier. Half a vector is left to the
compiler, which makes one of it by itself: half the work of a whole one on Zen 4."""

FUNCTIONS = frozenset(
    [
        *("exp_of", "expm1_of", "log_of", "log1p_of", "log1p_exp_of", "sigmoid_of"),
        *("tanh_of", "tanh_plus_one_of", "erf_of", "erf_plus_one_of"),
        *("nan_max", "nan_min", "std::fabs", "std::sqrt"),
    ]
)
_NAME = re.compile(r"(?<![\w.])[A-Za-z_][\w:]*")
_OWN = {"std::fabs": "fabs_of", "std::sqrt": "sqrt_of", "nan_max": "vector_max", "nan_min": "vector_min"}
_RENAMED = re.compile("|".join(_OWN))
_REDUCTIONS = frozenset({"sum", "prod", "max", "min"})


@dataclass
class VectorBody:
    """The innermost body of one nest over vectors; `lines` collects what must stand before the results."""

    nest: LoopNest
    lines: list[str] = field(default_factory=list)
    names: dict[Scalar, str] = field(default_factory=dict)

    @property
    def inner(self) -> Loop:
        return self.nest.loops[-1]

    # ------------------------------------------------------------ may it be written?

    def fits(self, *, split: bool = False) -> bool:
        """True if every output and every scalar that changes in the innermost loop can be a vector of floats; `split`: in an interior
        of the loop, where no guard of its own has to be asked."""
        nest = self.nest
        extent = self.inner.extent.constant
        if nest.ordered() or (nest.elems.borders and not split) or nest.inner_tests or not self._outputs_fit():
            return False
        halved = extent is not None and extent % WIDEST == WIDEST // 2
        if extent is not None and extent < SHORTEST and (extent < WIDEST or halved or not self._repeatable()):
            return False
        seen: set[Scalar] = set()
        return all(self._fits(scalar, seen) for scalar in nest.values)

    def _outputs_fit(self) -> bool:
        for output, scalar in zip(self.nest.outputs, self.nest.values, strict=True):
            if scalar.dtype is not DType.f32:
                return False
            if isinstance(output, Reduce):
                if output.op not in _REDUCTIONS or output.storage.dtype is not DType.f32 or scalar.level < len(self.nest.loops):
                    return False
                if self.inner.axis not in output.axes and not self._contiguous(self.column(output)):
                    return False
                continue
            dtype = output.storage.dtype if isinstance(output, Materialize) else self.nest.context.tensors[output.tensor].dtype
            if dtype is not DType.f32 or not self._contiguous(self.place(output)[1]):
                return False
        return True

    def _contiguous(self, offset: Poly, *, picked: bool = False) -> bool:
        """One element after another; `picked`: also within a row that was chosen at run time, before the loop."""
        step = offset.coefficient(self.inner.var)
        plain = picked or not any(name.startswith("@") for name in offset.names)
        return step is not None and step.constant == 1 and plain

    def _fits(self, scalar: Scalar, seen: set[Scalar]) -> bool:
        depth = len(self.nest.loops)
        if scalar.level < depth or scalar in seen:
            return True
        seen.add(scalar)
        if scalar.always or scalar.dtype not in (DType.f32, DType.bool):
            return False
        if scalar.guards and scalar.dtype is not DType.f32:
            return False
        if isinstance(scalar.pad, Scalar) and not self._fits(scalar.pad, seen):
            return False
        if scalar.place is not None:
            return scalar.dtype is DType.f32 and self._contiguous(
                scalar.place, picked=all(a.level < depth for a in scalar.args)
            )
        if not scalar.args or set(_NAME.findall(scalar.template)) - FUNCTIONS - {"INFINITY"}:
            return False
        if re.search(r"[!=]= 0(?![.\d])", scalar.template):  # a whole number does not meet a vector of floats
            return False
        uniform = any(arg.dtype is DType.bool and arg.level < len(self.nest.loops) for arg in scalar.args)
        if uniform or any(arg.dtype not in (DType.f32, DType.bool) for arg in scalar.args):
            return False
        return all(self._fits(arg, seen) for arg in scalar.args)

    # ------------------------------------------------------------ writing

    def place(self, output: Materialize | Store) -> tuple[str, Poly]:
        """Memory and offset that an output is stored at."""
        nest = self.nest
        if isinstance(output, Materialize):
            return output.storage.name, Elements.offset_in(output.storage, nest.tile_index(output))
        tensor = nest.context.tensors[output.tensor]
        return tensor.pointer, offset(tensor.strides, nest.elems.positions(output.axes, nest.index))

    def column(self, output: Reduce) -> Poly:
        """The offset of the running value of a column, where the innermost axis is not the one that is reduced."""
        return Elements.offset_in(output.storage, self.nest.reduced_index(output))

    def value(self, scalar: Scalar) -> str:
        """The C text of a vector; what does not change in the loop stays a number."""
        depth = len(self.nest.loops)
        if scalar.level < depth:
            return self.nest.lines.write(scalar, depth, True)
        if scalar in self.names:
            return self.names[scalar]
        if scalar.place is not None:
            text = f"load_vector(&{fill(scalar.template, [self.value(arg) for arg in scalar.args])})"
        else:
            whole = "?" in scalar.template or "(" in scalar.template
            texts = [
                f"splat({self.value(arg)})" if whole and arg.level < depth and arg.dtype is DType.f32 else self.value(arg)
                for arg in scalar.args
            ]
            text = fill(_RENAMED.sub(lambda match: _OWN[match.group(0)], scalar.template), texts)
            if scalar.template == "{0}" and scalar.args[0].level < depth:  # only whether it is read changes in the loop
                text = f"splat({text})"
        if guards := self.nest.lines.asked(scalar, True):
            tests = " && ".join(self.nest.lines.write(guard, depth, True) for guard in guards)
            pad = self.value(scalar.pad) if isinstance(scalar.pad, Scalar) else scalar.pad
            uniform = not isinstance(scalar.pad, Scalar) or scalar.pad.level < depth
            text = f"({tests} ? {text} : {f'splat({pad})' if uniform else pad})"
        if scalar.uses > 1 or scalar.hint or len(text) > 90:
            name = self.nest.lines._fresh(scalar.hint)
            kind = "Vector" if scalar.dtype is DType.f32 else "auto"
            self.lines.append(f"const {kind} {name} = {text};")
            self.names[scalar] = name
            return name
        return text

    def step(self, abreast: int, streamed: Store | None, before: list[str], lanes: dict[Reduce, str]) -> list[str]:
        """What one step of the loop does: all vectors are computed, then all are stored; `lanes` names each reduction's vectors."""
        ends: list[str] = []
        stores: list[str] = []
        made: list[str] = []
        part = "[part]" if abreast > 1 else ""
        for output, scalar in zip(self.nest.outputs, self.nest.values, strict=True):
            text = self.value(scalar)
            if isinstance(output, Reduce) and lanes:
                lane = f"{lanes[output]}{part or '[0]'}"
                ends.append(f"{lane} = {_reduction(output.op, lane, self._closed(text))};")
                continue
            if isinstance(output, Reduce):
                memory, offset = output.storage.name, self.column(output)
                old = f"load_vector(&{memory}[{to_c(offset)}])"
                text = _reduction(output.op, old, self._closed(text))
            else:
                memory, offset = self.place(output)
                text = text if scalar.level == len(self.nest.loops) else f"splat({text})"
            how = "stream_vector" if output is streamed else "store_vector"
            if abreast == 1:
                ends.append(f"{how}(&{memory}[{to_c(offset)}], {text});")
                continue
            name = self.nest.name("made")
            made.append(f"Vector {name}[{abreast}];")
            ends.append(f"{name}[part] = {text};")
            stores.append(f"{how}(&{memory}[{to_c(offset)}], {name}[part]);")
        body, self.lines, self.names = self.lines, [], {}
        return [*before, *made, *self._parts(abreast, [*body, *ends]), *(self._parts(abreast, stores) if stores else [])]

    def _parts(self, abreast: int, body: list[str]) -> list[str]:
        if abreast == 1:
            return [f"const int64_t {self.inner.var} = {self.last or self.start};", *body]
        head = f"#pragma GCC unroll {abreast}\nfor (int part = 0; part < {abreast}; ++part) {{"
        return [head, f"const int64_t {self.inner.var} = {self.start} + part * WIDE;", *body, "}"]

    def _repeatable(self) -> bool:
        """Whether elements may be made twice: nothing that is written here is read here too."""
        places = self.nest.elems.places
        written = {place.memory for place in places if place.writes}
        return not any(isinstance(output, Reduce) for output in self.nest.outputs) and not any(
            place.memory in written for place in places if not place.writes
        )

    def _closed(self, text: str) -> str:
        return text if re.fullmatch(r"\w+", text) else f"({text})"

    def abreast(self, wish: int) -> int:
        """Vectors side by side, fewer in a short loop."""
        extent = self.inner.extent.constant
        while extent is not None and wish > 1 and wish * 8 > extent:
            wish //= 2
        return wish

    def write(
        self, low: str, high: str, tail: list[str], streamed: Store | None, lanes: dict[Reduce, str], abreast: int
    ) -> list[str]:
        """The loop: whole groups of vectors, then single ones, and the elements that are left (`tail`)."""
        nest, var = self.nest, self.inner.var
        self.start, self.last = nest.name("start"), ""
        out = [f"int64_t {self.start} = {low};"]
        if streamed is not None:
            memory, offset = self.place(streamed)
            apart = f"uintptr_t(&{memory}[{to_c(offset)}]) % sizeof(Vector)"
            out.append(f"for (int64_t {var} = {self.start}; {var} < {high} && {apart}; ++{var}, ++{self.start}) {{")
            out += [*tail, "}"]
        extent = self.inner.extent.constant if (low, high) == ("0", to_c(self.inner.extent)) else None
        even = extent is not None and streamed is None
        again = streamed is None and not lanes and self._repeatable()
        for count in dict.fromkeys([abreast, 1]):
            if count == 1 and abreast > 1 and even and extent is not None and extent % (abreast * WIDEST) == 0:
                continue
            step = "WIDE" if count == 1 else f"{count} * WIDE"
            fetched = fetches(nest, self.inner, self.start, step) if count == abreast else []
            # written out whole, a short loop would read its row in another order, which the hardware cannot fetch ahead
            together = "#pragma GCC unroll 1\n" if lanes and count > 1 else ""
            head = f"for (; {self.start} + {step} <= {high}; {self.start} += {step})"
            if count == 1 and again and not (even and extent is not None and extent % WIDEST == 0):
                # what is left is less than a vector: the last one begins earlier, and makes some elements a second time
                self.last = f"min_of<int64_t>({self.start}, {high} - WIDE)"
                room = "" if extent is not None else f"if ({high} - {low} >= WIDE) "
                head = f"{room}for (; {self.start} < {high}; {self.start} += WIDE)"
            out.append(f"{together}{head} {{")
            out += [*self.step(count, streamed, fetched, lanes), "}"]
        whole = even and extent is not None and (extent % WIDEST == 0 or again)
        if not whole:
            out += [f"for (int64_t {var} = {self.start}; {var} < {high}; ++{var}) {{", *tail, "}"]
        return out


def _reduction(op: str, old: str, text: str) -> str:
    return _RENAMED.sub(lambda match: _OWN[match.group(0)], c_expressions.reduction(op, old, text, DType.f32))


def begin_lanes(reduction: Reduce, name: str, abreast: int) -> list[str]:
    """The vectors of a reduction, and one more for the elements that fill no vector."""
    start = literal(neutral(reduction.op, DType.f32), DType.f32)
    return [
        f"Vector {name}[{abreast}];",
        f"for (auto& lane : {name}) lane = splat({start});",
        f"float {name}_rest[WIDE];",
        f"for (auto& lane : {name}_rest) lane = {start};",
    ]


def end_lanes(reduction: Reduce, name: str, abreast: int) -> list[str]:
    """All vectors into the rest, and that halved until one number is left: as exact as pairwise summation."""
    step = c_expressions.reduction
    return [
        f"#pragma GCC unroll 8\nfor (int part = 1; part < {abreast}; ++part) "
        f"{name}[0] = {_reduction(reduction.op, f'{name}[0]', f'{name}[part]')};",
        f"for (int lane = 0; lane < WIDE; ++lane) "
        f"{name}_rest[lane] = {step(reduction.op, f'{name}[0][lane]', f'{name}_rest[lane]', DType.f32)};",
        "#pragma GCC unroll 4\nfor (int half = WIDE / 2; half > 0; half /= 2)",
        f"for (int lane = 0; lane < half; ++lane) "
        f"{name}_rest[lane] = {step(reduction.op, f'{name}_rest[lane]', f'{name}_rest[lane + half]', DType.f32)};",
    ]
