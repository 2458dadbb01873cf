"""One Triton program: effects of a block in, the lines of a kernel's body out. How tiles are made stands in registers.py."""

from __future__ import annotations

from kernelwright.compiler.backends.triton import op_table
from kernelwright.compiler.backends.triton.elements import Walk
from kernelwright.compiler.backends.triton.registers import Registers
from kernelwright.compiler.lower.element_index import Index, fitting, offset
from kernelwright.compiler.lower.tile_programs.elements import Tile, index_at, undecided
from kernelwright.compiler.lower.tile_programs.lines import Expr, Name
from kernelwright.compiler.lower.tile_programs.program import outer_values
from kernelwright.compiler.lower.tile_values import Block, Carried, LoopEffect, StoreEffect
from kernelwright.sketch.index import Poly
from kernelwright.sketch.nodes import DType

ATOMIC = {"add": "tl.atomic_add", "max": "tl.atomic_max", "min": "tl.atomic_min"}
MOST_COPIES = 8
"""Of a loop's body that are written out: a compiler's time grows with them."""


class Program(Registers):
    """Writes the effects of one program."""

    barrier = "tl.debug_barrier()"
    unrolled: int = 1
    """How often the body that is being written will be copied by the loops around it."""

    def loop(self, effect: LoopEffect) -> None:
        """A loop of the sketch that runs inside the program; its carried tiles are variables."""
        self.prepare(*outer_values(effect))
        tiles = {item.name: self._start(item) for item in effect.carried}
        copies = self._copies(effect)
        word = "range" if copies == 1 else "tl.static_range"
        head = f"{word}({self.scalar(effect.start)}, {self.scalar(effect.stop)}, {self.scalar(effect.step)})"
        self.unrolled *= copies
        self.out.open()
        name = self.out.fresh(effect.var)
        self.out.names[effect.var] = Name(name, (), self.out.depth)
        self.carry(effect.carried, tiles)
        around, self.walk = self.walk, self._walked(effect) if copies == 1 else None
        self.block(effect.body)
        results = []
        for item, final in self.changed(effect):
            target = tiles[item.name].expr
            expr = self.of(final, fitting(final, index_at(tiles[item.name].axes)))
            if expr.text == target.text:  # a product that was added in place
                continue
            new = Expr(self.out.filled(expr, target.dims), target.dims, target.dtype, self.out.depth)
            results.append((target.text, self.out.named(new, f"{target.text}_next")))
        for text, result in results:
            self.out.line(f"{text} = {result.text}")
        for line in self.walk.lines if self.walk is not None else ():
            self.out.line(line)
        self.walk = around
        self.forget()
        self.out.close(f"for {name} in {head}:")
        self.unrolled //= copies
        self.carry(effect.carried, tiles)

    def _walked(self, effect: LoopEffect) -> Walk | None:
        """The loop of a product, over which its operands' pointers may move."""
        products = any(item.final is not None and item.final.op == "gemm" for item in effect.carried)
        step = effect.step.constant
        return Walk(effect.var, effect.start, step, self.out.depth) if products and step else None

    def _copies(self, effect: LoopEffect) -> int:
        """Trips of a short loop that decides how far loops inside it go (the phases of a transposed convolution): written out, those
        have constant bounds. With bounds known only at run time ptxas spills in the innermost of six such loops, at 72 registers."""
        if effect.carried or None in (effect.start.constant, effect.stop.constant, effect.step.constant):
            return 1
        trips = -(-(int(effect.stop.constant or 0) - int(effect.start.constant or 0)) // int(effect.step.constant or 1))
        return trips if 1 < trips * self.unrolled <= MOST_COPIES and _decides(effect.var, effect.body) else 1

    def _start(self, item: Carried) -> Tile:
        """A carried tile's variable with its first value."""
        storage = item.storage
        axes, shape = self.carried_axes(item)
        dims = self.own(axes)
        if item.initial is not None:
            self.prepare(item.initial)
            first = self.of(item.initial, fitting(item.initial, index_at(axes)))
        else:
            first = Expr(op_table.number(0, storage.dtype), (), storage.dtype, 0)
        name = self.out.fresh(item.name)
        text = self.out.filled(first, dims) if dims else self.typed(first).text
        self.out.line(f"{name} = {text}")
        return Tile(Expr(name, dims, storage.dtype, self.out.depth), axes, shape)

    # ------------------------------------------------------------ stores

    def store_at(self, effect: StoreEffect, index: Index, conditions: list[Poly]) -> None:
        """The elements at one index of the region."""
        tensor = self.tensors[effect.tensor]
        names = {dim for p in index for dim in self.out.dims_of(p)}
        walked = self.walks([dim for dim in self.out.sorted([*names]) if self.out.dims[dim].walk == "loop"])
        value = self.of(effect.value, fitting(effect.value, index))
        positions = self.positions(effect.axes, index)
        place = offset(tensor.strides, positions)
        conditions = [*conditions, *self.outside(tensor.shape, positions)]
        every = self.out.sorted(
            [*self.out.dims_of(place), *value.dims, *names, *(dim for p in conditions for dim in self.out.dims_of(p))]
        )
        conditions = undecided([*conditions, *self.guards(every)])
        self._write(effect, tensor.pointer, tensor.dtype, place, value, conditions, every)
        walked()

    def _write(
        self, effect: StoreEffect, pointer: str, dtype: DType, at: Poly, value: Expr, conditions: list[Poly], dims: tuple[str, ...]
    ) -> None:  # fmt: skip
        place = self.out.address(pointer, at, dims)
        if dims and not self.out.dims_of(at):
            place += f" + tl.zeros({self.out.sizes(dims)}, tl.int32)"
        elif dims != self.out.dims_of(at) and dims:
            place = f"tl.broadcast_to({place}, {self.out.sizes(dims)})"
        tests = [self.mask(conditions, dims)] if conditions else []
        text = self.out.shaped(value, dims)
        if effect.mode == "set":
            mask = f", mask={tests[0]}" if tests else ""
            self.out.line(f"tl.store({place}, {text}{mask})")
            return
        # Programs that differ only in a dimension which this store does not have would all update the same place.
        tests += [
            f"({self.grid_start(dim)} == 0)" for dim in self.out.dims.values() if dim.walk == "grid" and dim.name not in dims
        ]
        mask = f", mask={' & '.join(tests)}" if tests else ""
        typed = self.out.filled(value, dims) if dims else self.typed(value).text
        self.out.line(f'{ATOMIC[effect.mode]}({place}, ({typed}).to({op_table.TYPE[dtype]}){mask}, sem="relaxed")')


def _decides(var: str, block: Block) -> bool:
    """Whether a loop inside goes as far as this variable says."""
    loops = [effect for effect in block.effects if isinstance(effect, LoopEffect)]
    return any(var in loop.start.names | loop.stop.names or _decides(var, loop.body) for loop in loops)
