"""One loop nest on a CPU: loops of SIMD lanes, run by one thread.

In: a `Nest` (its domain and outputs). Out: C++ lines. The innermost loop is the axis that memory likes best; it is a SIMD loop without
tests: stores are clipped by the loop's bounds, loads that may leave their tensor split it into an interior and two borders.
Reductions along it run in several independent lanes.
"""

from __future__ import annotations

from kernelwright.compiler.backends.cpp.nests.fetch import PICKED, picked_rows
from kernelwright.compiler.backends.cpp.nests.loops import CpuContext, Loop
from kernelwright.compiler.backends.cpp.nests.merging import run_together
from kernelwright.compiler.backends.cpp.nests.reductions import write_columns, write_rows
from kernelwright.compiler.backends.cpp.nests.vectors import VectorBody
from kernelwright.compiler.lower import c_expressions
from kernelwright.compiler.lower.c_family.elements import Elements, TensorPlace
from kernelwright.compiler.lower.c_family.nest import Materialize, Nest, Reduce, Store
from kernelwright.compiler.lower.c_family.scalars import Lines, Scalar
from kernelwright.compiler.lower.c_types import STORED
from kernelwright.compiler.lower.element_index import Index, is_picked
from kernelwright.compiler.lower.element_index import offset as offset_of
from kernelwright.compiler.lower.tile_values import PickAccess, Storage
from kernelwright.sketch.index import Poly, combine, poly, to_c
from kernelwright.sketch.nodes import DType

STREAM_LEAST = 256
"""Shorter rows are stored as they come: their ends would be written in parts of a cache line, if they do not fall on its borders."""
LINE_BYTES = 64


class LoopNest(Nest):
    """Writes one nest. Use once."""

    context: CpuContext

    def __init__(self, nest: Nest) -> None:
        super().__init__(nest.context, nest.shape, nest.outputs, nest.computing)
        self.out: list[str] = []
        self.line: tuple[Store, str] | None = None  # a store that goes to a strip first, and where

    # ------------------------------------------------------------ writing

    def write(self) -> list[str]:
        """The C lines of the whole nest."""
        axes, extents = run_together(self, self.order())
        self.loops = [Loop(self.vars[a], a, extents[a]) for a in axes]
        self.elems = self.elements({loop.var: k + 1 for k, loop in enumerate(self.loops)})
        self.values = self.scalars(self.elems)
        self.lines = Lines(len(self.loops), self.context.taken | {loop.var for loop in self.loops})
        self.lines.count(self.values)
        self.clip()
        reductions = [r for r in self.outputs if isinstance(r, Reduce)]
        inner_reduced = bool(reductions) and bool(self.loops) and self.loops[-1].axis in self.reduced()
        if reductions and self.loops and not inner_reduced and self.reduced():
            write_columns(self)
        elif inner_reduced:
            write_rows(self)
        else:
            self.write_plain()
        self.note_reads()
        return self.out

    def clip(self) -> None:
        """Turns the conditions of a store into bounds of the loops; what has no loop becomes a test around everything."""
        self.tests: list[str] = []
        self.inner_tests: list[tuple[Store, Scalar]] = []
        for output in self.outputs:
            if not isinstance(output, Store):
                continue
            tensor = self.context.tensors[output.tensor]
            for p in self.elems.outside(tensor.shape, self.elems.positions(output.axes, self.index)):
                owner = next((loop for loop in reversed(self.loops) if loop.var in p.names), None)
                factor = p.coefficient(owner.var) if owner else None
                if any(is_picked(n) for n in p.names) or (owner and (factor is None or factor.constant is None)):
                    condition = self.elems.condition(p)
                    self.lines.count([condition])
                    self.inner_tests.append((output, condition))
                elif owner and factor and factor.constant:
                    bound = _solve(p, owner.var, factor.constant)
                    (owner.low if factor.constant > 0 else owner.high).append(bound)
                else:
                    self.tests.append(f"{to_c(p)} >= 0")

    def head(self, loop: Loop, pragma: str = "") -> str:
        low = _extreme("max_of", ["0", *loop.low])
        high = _extreme("min_of", [to_c(loop.extent), *loop.high])
        return f"{pragma}for (int64_t {loop.var} = {low}; {loop.var} < {high}; ++{loop.var})"

    def open_outer(self, loops: list[Loop], level: int = 0) -> int:
        """Opens loops with the lines that belong before each; returns how many braces were opened."""
        opened = 0
        if level == 0 and self.tests:
            self.out.append(f"if ({' && '.join(self.tests)}) {{")
            opened += 1
        self.out += self.lines.lines[level]
        for k, loop in enumerate(loops):
            self.out.append(self.head(loop) + " {")
            self.out += self.lines.lines[level + k + 1] if level + k + 1 < self.lines.depth else []
            opened += 1
        return opened

    def write_plain(self) -> None:
        """No reduction: every element on its own."""
        if not self.loops:
            body = self.finish(interior=False)
            opened = self.open_outer([])
            self.out += body
            self.out += ["}"] * opened
            return
        inner = self.loops[-1]
        if (vectors := VectorBody(self)).fits():
            self.write_vectors(vectors)
            return
        if streamed := self.streamed():
            self.write_streamed(streamed)
            return
        pragma = "" if self.ordered() else "#pragma omp simd\n"
        low = _extreme("max_of", ["0", *inner.low])
        high = _extreme("min_of", [to_c(inner.extent), *inner.high])
        if self.elems.borders and self.splits():
            self.write_interior(vectors, low, high, pragma)
            return
        body = self.finish(interior=False)
        opened = self.open_outer(self.loops[:-1])
        self.out += self.fetching(inner.var, low, high, "{0}", body, pragma)
        self.out += ["}"] * opened

    def fetching(self, var: str, low: str, high: str, place: str, body: list[str], pragma: str) -> list[str]:
        """The innermost loop; if it picks elements of a row, in pieces between which the next row is fetched. `place` says where in
        its range the innermost axis is at a value of `var`."""
        block = self.name("block")
        ahead = picked_rows(self, self.loops[-1], place.format(block)) if pragma else []
        if not ahead:
            return [f"{pragma}for (int64_t {var} = {low}; {var} < {high}; ++{var}) {{", *body, "}"]
        stop = f"min_of<int64_t>({block} + {PICKED}, {high})"
        return [
            f"for (int64_t {block} = {low}; {block} < {high}; {block} += {PICKED}) {{",
            *ahead,
            f"{pragma}for (int64_t {var} = {block}; {var} < {stop}; ++{var}) {{",
            *body,
            "}",
            "}",
        ]

    def write_interior(self, vectors: VectorBody, low: str, high: str, pragma: str) -> None:
        """Every element on its own: a border, an interior in which no load leaves its tensor along the innermost axis, a border.
        In the interior, tests that hold for the whole row are made once; if one fails, its loads are left out one by one."""
        inner = self.loops[-1]
        begin, end = self.name("inside"), self.name("beyond")
        explicit = vectors.fits(split=True)

        def piece(start: str, stop: str, body: list[str]) -> list[str]:
            return [f"{pragma}for (int64_t {inner.var} = {start}; {inner.var} < {stop}; ++{inner.var}) {{", *body, "}"]

        def interior() -> list[str]:
            body = self.finish(interior=True)
            if not explicit:
                return piece(begin, end, body)
            return ["{", *vectors.write(begin, end, body, None, {}, self.context.options.abreast), "}"]

        tests, changing = self.border_tests()
        if not changing:
            begin, end = low, high
        border = self.finish(interior=False) if changing else []
        clear = interior()
        self.lines.asks_outer = True
        partly = interior() if tests else []
        self.lines.asks_outer = False
        opened = self.open_outer(self.loops[:-1])
        if changing:
            self.interior_bounds(low, high, begin, end)
            self.out += piece(low, begin, border)
        if tests:
            self.out += [f"if ({' && '.join(f'{to_c(p)} >= 0' for p in tests)}) {{", *clear, "} else {", *partly, "}"]
        else:
            self.out += clear
        self.out += [*(piece(end, high, border) if changing else []), *["}"] * opened]

    def write_vectors(self, vectors: VectorBody) -> None:
        """Every element on its own, in explicit vectors."""
        inner = self.loops[-1]
        low = _extreme("max_of", ["0", *inner.low])
        high = _extreme("min_of", [to_c(inner.extent), *inner.high])
        tail = self.finish(interior=True)
        lines = vectors.write(low, high, tail, self.streamed(), {}, self.context.options.abreast)
        opened = self.open_outer(self.loops[:-1])
        self.out += [*lines, *["}"] * opened]

    def streamed(self) -> Store | None:
        """The store of this nest, if its rows are long and go to a large output, one element after another."""
        inner = self.loops[-1]
        stores = [output for output in self.outputs if isinstance(output, Store)]
        if len(stores) != 1 or self.ordered() or self.elems.borders or self.inner_tests:
            return None
        tensor = self.context.tensors[stores[0].tensor]
        offset = offset_of(tensor.strides, self.elems.positions(stores[0].axes, self.index))
        step = offset.coefficient(inner.var)
        if tensor.pointer not in self.context.streamed or step is None or step.constant != 1:
            return None
        long = (inner.extent.constant or 0) >= STREAM_LEAST
        return stores[0] if long or self.whole_lines(offset, tensor.dtype) else None

    def whole_lines(self, offset: Poly, dtype: DType) -> bool:
        """True if every row of a store fills whole lines of the cache; outputs themselves begin at one."""
        inner = self.loops[-1]
        line = LINE_BYTES // dtype.size
        steps = self.context.steps
        moves = {name: (offset.coefficient(name), steps.get(name, poly(1))) for name in offset.names if name != inner.var}
        apart = [None if factor is None else (factor * step).constant for factor, step in moves.values()]
        first = offset.substitute({name: poly(0) for name in offset.names}).constant
        if inner.low or inner.high or (inner.extent.constant or 1) % line or first is None:
            return False
        return first % line == 0 and all(move is not None and move % line == 0 for move in apart)

    def write_streamed(self, put: Store) -> None:
        """Strips of the innermost loop are computed into a buffer in the first cache and streamed from there."""
        inner = self.loops[-1]
        tensor = self.context.tensors[put.tensor]
        most = self.context.options.strip
        extent = inner.extent.constant or most
        whole = [n for n in range(most // 2, most + 1, 16) if extent % n == 0]
        strip = extent if extent <= most else max(whole, default=most)
        start, line, count, at = (self.name(stem) for stem in ("strip", "line", "count", "at"))
        self.line = (put, f"{line}[{at}]")
        body = self.finish(interior=True)
        opened = self.open_outer(self.loops[:-1])
        low = _extreme("max_of", ["0", *inner.low])
        high = _extreme("min_of", [to_c(inner.extent), *inner.high])
        fits = low == "0" and high == str(extent) and extent % strip == 0
        self.out.append(f"for (int64_t {start} = {low}; {start} < {high}; {start} += {strip}) {{")
        self.out.append(f"alignas(64) {STORED[tensor.dtype]} {line}[{strip}];")
        self.out.append(f"const int64_t {count} = {strip if fits else f'min_of<int64_t>({high} - {start}, {strip})'};")
        here = f"const int64_t {inner.var} = {start} + {at};"
        self.out += self.fetching(at, "0", count, f"({start} + {{0}})", [here, *body], "#pragma omp simd\n")
        offset = offset_of(tensor.strides, self.elems.positions(put.axes, self.index)).substitute({inner.var: poly(start)})
        self.out.append(f"stream(&{tensor.pointer}[{to_c(offset)}], {line}, {count});")
        self.out += ["}"] * (opened + 1)

    def variants(self) -> dict[bool, list[str]]:
        """The innermost body, with guards (False) and, where there are guards, without (True)."""
        guarded = self.finish(interior=False)
        return {False: guarded, True: self.finish(interior=True)} if self.elems.borders else {False: guarded, True: guarded}

    def ordered(self) -> bool:
        """True if iterations may meet at one address (scatter, atomic update): no SIMD then."""
        return any(
            isinstance(r, Store) and (r.mode != "set" or any(isinstance(a, PickAccess) for a in r.axes)) for r in self.outputs
        )

    def border_tests(self) -> tuple[list[Poly], list[Poly]]:
        """The conditions of guarded loads: those that hold for whole rows, and those that the innermost loop decides."""
        conditions = list(dict.fromkeys(self.elems.borders))
        outer = [p for p in conditions if self.elems.level(p) < len(self.loops) and self.loops[-1].var not in p.names]
        return outer, [p for p in conditions if p not in outer]

    def splits(self) -> bool:
        """Whether the innermost range has an interior: every condition that changes along it is a bound of it."""
        factors = [p.coefficient(self.loops[-1].var) for p in self.border_tests()[1]]
        return all(factor is not None and factor.constant for factor in factors)

    def interior_bounds(self, low: str, high: str, begin: str, end: str) -> None:
        """Writes the bounds of the innermost range in which all loads are inside along it."""
        inner = self.loops[-1]
        lows, highs = [low], [high]
        for p in self.border_tests()[1]:
            factor = p.coefficient(inner.var)
            assert factor is not None
            assert factor.constant
            (lows if factor.constant > 0 else highs).append(_solve(p, inner.var, factor.constant))
        self.out.append(f"// from {begin} up to {end} no load leaves its tensor")
        self.out.append(f"const int64_t {begin} = min_of<int64_t>({_extreme('max_of', lows)}, {high});")
        self.out.append(f"const int64_t {end} = max_of<int64_t>({_extreme('min_of', highs)}, {begin});")

    def interior(self, low: str, high: str) -> tuple[str, str] | None:
        """Writes the bounds of the innermost range in which all loads are inside, empty where a test of the whole row fails; None
        if there is no such split."""
        if not self.splits():
            return None
        begin, end = self.name("inside"), self.name("beyond")
        self.interior_bounds(low, high, begin, end)
        if tests := self.border_tests()[0]:
            held = " && ".join(f"{to_c(p)} >= 0" for p in tests)
            self.out[-1] = self.out[-1].replace(" = ", f" = !({held}) ? {begin} : ", 1)
        return begin, end

    def split(self, low: str, high: str) -> list[tuple[str, str, bool]]:
        """The innermost range as pieces (begin, end, interior)."""
        if not self.elems.borders:
            return [(low, high, True)]
        found = self.interior(low, high)
        if found is None:
            return [(low, high, False)]
        begin, end = found
        return [(low, begin, False), (begin, end, True), (end, high, False)]

    def name(self, stem: str) -> str:
        name = stem
        while name in self.lines.taken:
            name += "_"
        self.lines.taken.add(name)
        return name

    def finish(self, *, interior: bool, lane: str = "", lanes: dict[Reduce, str] | None = None) -> list[str]:
        """The lines of the innermost body, with the stores and accumulations of all outputs; `lane` (for all reductions) or `lanes`
        (for each) say where accumulations go, if not to the kept tile itself."""
        depth = len(self.loops)
        ends: list[str] = []
        for output, scalar in zip(self.outputs, self.values, strict=True):
            text = self.lines.write(scalar, depth, interior)
            if isinstance(output, Materialize):
                ends.append(
                    f"{self.slot(output.storage, self.tile_index(output))} = {c_expressions.store(text, output.storage.dtype)};"
                )
            elif isinstance(output, Store):
                ends.append(self.put(output, text, interior=interior))
            else:
                apart = lanes[output] if lanes else f"{output.storage.name}_lanes[{lane}]" if lane else ""
                target = apart or self.slot(output.storage, self.reduced_index(output))
                old = target if apart else c_expressions.load(target, output.storage.dtype)
                step = c_expressions.reduction(output.op, old, text if _plain(text) else f"({text})", output.value.dtype)
                ends.append(f"{target} = {step if apart else c_expressions.store(step, output.storage.dtype)};")
        return [*self.lines.forget_inner(), *ends]

    def slot(self, storage: Storage, index: Index) -> str:
        return storage.name if storage.scalar else f"{storage.name}[{to_c(Elements.offset_in(storage, index))}]"

    def put(self, output: Store, text: str, *, interior: bool) -> str:
        tensor = self.context.tensors[output.tensor]
        if self.line is not None and self.line[0] is output:
            return f"{self.line[1]} = {c_expressions.store(text, tensor.dtype)};"
        offset = offset_of(tensor.strides, self.elems.positions(output.axes, self.index))
        template, args = self.elems.holes(to_c(offset))
        depth = len(self.loops)
        where = f"{tensor.pointer}[{template.format(*(self.lines.write(a, depth, interior) for a in args))}]"
        tests = [self.lines.write(condition, depth, interior) for owner, condition in self.inner_tests if owner is output]
        test = f"if ({' && '.join(tests)}) " if tests else ""
        if output.mode == "set":
            return f"{test}{where} = {c_expressions.store(text, tensor.dtype)};"
        return f"{test}atomic_{output.mode}{_half_suffix(tensor)}(&{where}, {text});"

    def note_reads(self) -> None:
        """What this nest reads is in the cache for the nests after it."""
        pointers = {tensor.pointer for tensor in self.context.tensors.values()}
        for place in self.elems.places:
            if not place.writes and place.memory in pointers:
                self.context.touched.add(place.memory)


def _solve(p: Poly, var: str, factor: int) -> str:
    """The bound that `p >= 0` sets to a variable: the first value that holds (factor > 0), or one past the last."""
    rest = p.substitute({var: poly(0)})
    if factor > 0:
        return to_c(combine("//", rest * -1 + (factor - 1), poly(factor)))
    return to_c(combine("//", rest, poly(-factor)) + 1)


def _extreme(function: str, texts: list[str]) -> str:
    result = texts[0]
    for text in dict.fromkeys(texts[1:]):
        if text != result:
            result = f"{function}<int64_t>({result}, {text})"
    return result


def _plain(text: str) -> bool:
    return " " not in text and not text.startswith("-")


def _half_suffix(tensor: TensorPlace) -> str:
    return f"_{tensor.dtype}" if tensor.dtype in ("f16", "bf16") else ""
