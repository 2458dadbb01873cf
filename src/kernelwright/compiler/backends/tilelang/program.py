"""Tiles of a TileLang block: reductions, products, scans and sorts as tile operations, carried tiles as fragments, stores.

In: effects of a block and the plan of its dimensions. Out: the lines of a kernel's body. Products of fp32 tiles are three tensor-core
products of their upper and lower halves, because T.gemm alone would multiply in tf32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernelwright.compiler.backends.tilelang import op_table
from kernelwright.compiler.backends.tilelang.elements import Elements
from kernelwright.compiler.lower.element_index import Index, fitting
from kernelwright.compiler.lower.tile_programs.elements import Tile, extents, index_at
from kernelwright.compiler.lower.tile_programs.lines import Expr, Name
from kernelwright.compiler.lower.tile_programs.program import outer_values
from kernelwright.compiler.lower.tile_values import Carried, LoopEffect, StoreEffect, Value
from kernelwright.core.dtypes import FLOATS
from kernelwright.core.operations import neutral
from kernelwright.sketch.index import Poly, poly, rejoined
from kernelwright.sketch.nodes import DType

STEPS = {"sum": "({0} + {1})", "prod": "({0} * {1})", "max": "T.max({0}, {1})", "min": "T.min({0}, {1})"}
ATOMIC = {"add": "T.atomic_add", "max": "T.atomic_max", "min": "T.atomic_min"}
FRAGMENT_AXES = 5
"""TileLang 0.1.15 finds layouts for fragments of [2, 8, 4, 2, 4] and none for [2, 8, 4, 2, 4, 2] that is reduced over its last axis."""
STAGES = 3
"""Of a product's operands in shared memory, as its tiles were chosen for (schedule/contraction/block_tiles.py)."""
TENSOR_CORES = frozenset({DType.f32, DType.f16, DType.bf16})


class Program(Elements):
    """Writes the effects of one block."""

    barrier = "T.sync_threads()"

    # ------------------------------------------------------------ element statements

    def fill(self, name: str, dims: tuple[str, ...], make: Callable[[], Expr]) -> None:
        """`name[…] = …` over dimensions."""
        self.out.open()
        outer, self.walked = self.walked, dims
        expr = make()
        self.walked = outer
        place = ", ".join(map(self.out.label, dims)) or "0"
        self.out.line(f"{name}[{place}] = {self.truth(expr)}")
        self.out.close_around(dims)

    def tile(self, value: Value | None, hint: str, dims: tuple[str, ...], dtype: DType, kind: str = "fragment") -> str:
        return self.out.allocate(kind, (value.name if value is not None else "") or hint, dims, dtype.torch_name)

    def tile_as(self, name: str, value: Value, axes: tuple[str, ...], dims: tuple[str, ...]) -> Tile:
        return Tile(Expr(name, dims, value.dtype, self.out.depth), axes, extents(value))

    def axis_dims(self, axes: Sequence[str]) -> tuple[str, ...]:
        """Dimensions of a tile's buffer: lanes first, then its own axes in order."""
        return (*(dim for dim in self.lanes if dim not in axes), *dict.fromkeys(dim for dim in axes if dim))

    def walks(self, dims: Sequence[str]) -> Callable[[], None]:
        heads = []
        for name in dims:
            dim, label = self.out.dims[name], self.out.label(name)
            step = self.out.fresh(f"{label}_step")
            heads.append(f"for {step} in T.serial({self.out.place(poly(dim.steps), ())}):")
            self.out.open()
            self.begins[name] = f"{step} * {self.out.size(name)}"
            self.out.names[name] = Name(f"({self.begins[name]} + {label})", (name,), self.out.depth)

        def close() -> None:
            while heads:
                self.out.close(heads.pop())

        return close

    def guarded(self, expr: Expr, dims: Sequence[str], start: float | int | bool, dtype: DType) -> Expr:
        """Positions beyond the extent count as the neutral element."""
        tests = self.guards(dims)
        if not tests:
            return expr
        text = f"T.if_then_else({self.mask(tests, ())}, {self.truth(expr)}, {op_table.number(start, dtype)})"
        return Expr(text, self.out.sorted([*expr.dims, *dims]), dtype, self.out.depth)

    # ------------------------------------------------------------ tiles

    def loaded(self, value: Value) -> Tile:
        axes = self.axes_of(value)
        dims = self.axis_dims(axes)
        name = self.tile(value, "tile", dims, value.dtype)
        self.fill(name, dims, lambda: self.load(value, index_at(axes)))
        return self.tile_as(name, value, axes, dims)

    def reduce(self, value: Value) -> Tile:
        op, _ = value.data
        x, dtype, flag = value.args[0], value.dtype, value.dtype is DType.bool
        axes, own, index = self.reduced_axes(value)
        start = neutral(op, dtype)
        if op in ("any", "all"):
            op, dtype, start = ("max" if op == "any" else "min"), DType.i32, int(start)
        result = self.axis_dims(axes)
        dims = (*result, *(dim for dim in dict.fromkeys(own) if dim not in result))

        def element() -> Expr:
            expr = self.of(x, index)
            if flag:
                expr = self.out.apply('T.cast({0}, "int32")', [Expr(self.truth(expr), expr.dims, dtype, expr.level)], dtype)
            return self.guarded(expr, own, start, dtype)

        # What is reduced last is added up in order, one position after another, where the fragment has too many axes for it.
        one_by_one = [dim for dim in dims[FRAGMENT_AXES:] if dim not in result and self.out.dims[dim].walk != "loop"]
        dims = tuple(dim for dim in dims if dim not in one_by_one)
        total = self.tile(value, "total", dims, dtype)
        walked = [dim for dim in own if self.out.dims[dim].walk == "loop"]
        place = ", ".join(map(self.out.label, dims)) or "0"
        if walked or one_by_one:
            self.fill(total, dims, lambda: Expr(op_table.number(start, dtype), (), dtype, 0))
            close = self.walks(walked)
            for _ in one_by_one:
                self.out.open()
            self.fill(total, dims, lambda: Expr(STEPS[op].format(f"{total}[{place}]", element().text), dims, dtype, 0))
            for dim in reversed(one_by_one):
                self.out.close(f"for {self.out.label(dim)} in T.serial({self.out.size(dim)}):")
            close()
        else:
            self.fill(total, dims, element)
        name = self._reduced(op, total, dims, [dim for dim in dims if dim not in result], value, dtype)
        self.reduced[name] = self.sizes(dims)
        if flag:
            self.flags.add(name)
        return self.tile_as(name, value, axes, result)

    def _reduced(
        self, op: str, name: str, dims: tuple[str, ...], own: list[str], value: Value, dtype: DType
    ) -> str:  # fmt: skip
        """Reduces a fragment over dimensions, the last first."""
        while own:
            dim = own.pop()
            axis, left = dims.index(dim), tuple(other for other in dims if other != dim)
            smaller = self.tile(value, "total", left, dtype)
            if op == "prod" or dtype not in (DType.f32, DType.f64, DType.i32, DType.f16, DType.bf16):
                self._reduce_in_order(op, name, smaller, dims, dim, dtype)
            else:
                self.out.line(f"T.reduce_{op}({name}, {smaller}, dim={axis})")
            name, dims = smaller, left
        return name

    def _reduce_in_order(self, op: str, name: str, smaller: str, dims: tuple[str, ...], dim: str, dtype: DType) -> None:
        """A reduction that TileLang lacks: one after another, through shared memory."""
        whole = self.out.allocate("shared", f"{name}_shared", dims, dtype.torch_name)
        self.out.line(f"T.copy({name}, {whole})")
        left = tuple(other for other in dims if other != dim)
        self.fill(smaller, left, lambda: Expr(op_table.number(neutral(op, dtype), dtype), (), dtype, 0))
        step = self.out.fresh(f"{self.out.label(dim)}_at")
        self.out.open()
        here = ", ".join(map(self.out.label, left)) or "0"
        there = ", ".join(step if other == dim else self.out.label(other) for other in dims)
        self.fill(smaller, left, lambda: Expr(STEPS[op].format(f"{smaller}[{here}]", f"{whole}[{there}]"), left, dtype, 0))
        self.out.close(f"for {step} in T.serial({self.out.size(dim)}):")

    def gemm(self, value: Value) -> Tile:
        a, b, *rest = value.args
        axes, inner = self.product_axes(value)
        self.distinct(axes, inner)
        *batch, rows, columns = axes
        dims = self.axis_dims(axes)
        cores = bool(rows and columns and inner) and not any(batch) and not self.lanes and a.dtype in TENSOR_CORES
        cores = cores and b.dtype is a.dtype and value.dtype is DType.f32
        acc = self._accumulator(value, rest, axes, dims)
        close = self.walks([inner] if inner and self.out.dims[inner].walk == "loop" else [])
        if cores:
            sides = (a, "left", (rows, inner), (*batch, rows, inner)), (b, "right", (inner, columns), (*batch, inner, columns))
            (left, low_left, transposed_left), (right, low_right, transposed_right) = (
                self._operand_tile(*side, inner) for side in sides
            )
            transposed = (", transpose_A=True" if transposed_left else "") + (", transpose_B=True" if transposed_right else "")
            if a.dtype is DType.f32:
                self.out.line(f"T.gemm({low_left}, {right}, {acc}{transposed})")
                self.out.line(f"T.gemm({left}, {low_right}, {acc}{transposed})")
            self.out.line(f"T.gemm({left}, {right}, {acc}{transposed})")
        else:
            self._multiply(value, acc, axes, dims, inner)
        close()
        return self.tile_as(acc, value, axes, dims)

    def _accumulator(self, value: Value, rest: Sequence[Value], axes: tuple[str, ...], dims: tuple[str, ...]) -> str:
        if rest and rest[0].id in self.in_place.get(value.id, ()):
            tile = self.tiles[self.key(rest[0])]
            if tile.expr.dims == dims:
                self.out.known.pop(("exposed", tile.expr.text), None)
                return tile.expr.text
        name = self.tile(value, "product", dims, value.dtype)
        if rest:
            self.fill(name, dims, lambda: self.of(rest[0], index_at(axes)))
        else:
            self.out.line(f"T.clear({name})")
        return name

    in_place: dict[int, tuple[int, ...]]
    """Products that may be added to the carried tile they start from."""

    def _operand_tile(
        self, value: Value, hint: str, dims: tuple[str, str], axes: tuple[str, ...], inner: str
    ) -> tuple[str, str, bool]:  # fmt: skip
        """An operand in shared memory, its lower half if it is fp32, and whether it lies there transposed, as it does in global
        memory."""
        hint, kind = f"{value.name or hint}_shared", value.dtype.torch_name
        source, order = self._box(value, index_at(axes), dims, inner) or ("", dims)
        name, low = self.out.allocate("shared", hint, order, kind), ""
        if value.dtype is DType.f32:
            zeros = [] if source else [inner]
            low = self._halved(name, order, lambda: self.guarded(self.of(value, index_at(axes)), zeros, 0, value.dtype))
        elif source:
            self.out.line(f"T.copy({source}, {name})")
        else:
            self.fill(name, dims, lambda: self.guarded(self.of(value, index_at(axes)), [inner], 0, value.dtype))
        return name, low, order != dims

    def _box(self, value: Value, index: Index, dims: tuple[str, str], inner: str) -> tuple[str, tuple[str, str]] | None:
        """The corner of a box in global memory that is just this tile, and the order of its two dimensions there."""
        while value.op in ("permute", "squeeze", "unsqueeze") and not self.is_stored(value):
            value, index = value.args[0], self.viewed(value, index)
        if value.op != "load" or self.is_stored(value) or value.data.pad:
            return None
        tensor = self.tensors[value.data.tensor]
        if any(hasattr(axis, "indices") for axis in value.data.axes):
            return None
        positions = [rejoined(p) for p in self.positions(value.data.axes, index)]
        along = [self.out.dims_of(p) for p in positions]
        if len(positions) < 2 or any(along[:-2]) or {along[-2], along[-1]} != {(dims[0],), (dims[1],)}:
            return None
        order = (along[-2][0], along[-1][0])
        rest = [p - poly(dim) for p, dim in zip(positions[-2:], order, strict=True)]
        if any(self.out.dims_of(p) for p in rest):
            return None
        # Zeros must begin where the inner dimension ends: at the tensor's edge, or nowhere.
        if any(guard not in set(self.outside(tensor.shape, positions)) for guard in self.guards([inner])):
            return None
        texts = [self.out.place(p, ()) for p in positions[:-2]]
        for p, dim in zip(rest, order, strict=True):
            begin = self.begins[dim]
            texts.append(
                begin if not p.terms else self.out.place(p, ()) if begin == "0" else f"{self.out.place(p, ())} + {begin}"
            )
        return f"{tensor.pointer}[{', '.join(texts)}]", order

    def _halved(self, name: str, dims: tuple[str, ...], make: Callable[[], Expr]) -> str:
        """Fills an fp32 tile with what tf32 holds of each element; the rest goes into a tile of its own. Rounded, not cut off: the product
        of the two rests is left out, and rests that all have the sign of their element add up (a convolution's error: 1.8 times
        torch's when cut off, 0.9 times when rounded). Both in one loop: one that reads back what lies in shared memory has a barrier
        in each of its steps, and took 255 registers where this takes 120."""
        low = self.out.allocate("shared", f"{name}_low", dims, "float32")
        place = ", ".join(map(self.out.label, dims))
        self.out.open()
        outer, self.walked = self.walked, dims
        element = self.out.named(make(), "element")
        self.walked = outer
        high = self.out.fresh("high")
        self.out.line(
            f'{high} = T.reinterpret((T.reinterpret({element.text}, "int32") + T.int32(4096)) & T.int32(-8192), "float32")'
        )
        self.out.line(f"{name}[{place}] = {high}")
        self.out.line(f"{low}[{place}] = {element.text} - {high}")
        self.out.close_around(dims)
        return low

    def _multiply(self, value: Value, acc: str, axes: tuple[str, ...], dims: tuple[str, ...], inner: str) -> None:
        """A product without tensor cores: one position of the inner dimension after another."""
        *batch, rows, columns = axes
        a, b = value.args[:2]
        place = ", ".join(map(self.out.label, dims)) or "0"

        def element() -> Expr:
            left, right = (
                op_table.cast(self.of(side, index_at(at)).text, side.dtype, value.dtype)
                for side, at in ((a, (*batch, rows, inner)), (b, (*batch, inner, columns)))
            )
            product = self.guarded(
                Expr(f"({left} * {right})", dims, value.dtype, self.out.depth), [inner] if inner else [], 0, value.dtype
            )
            return Expr(f"{acc}[{place}] + {product.text}", dims, value.dtype, self.out.depth)

        if not inner:
            self.fill(acc, dims, element)
            return
        before = self.out.names[inner]
        label = self.out.label(inner)
        self.out.open()
        self.fill(acc, dims, element)
        self.out.names[inner] = before
        self.out.close(f"for {label} in T.serial({self.out.size(inner)}):")

    # ------------------------------------------------------------ order

    def scan(self, value: Value) -> Tile:
        op, axis, reverse, exclusive = value.data
        x = value.args[0]
        axes = self.axes_of(value)
        dims, own, index = self.axis_dims(axes), axes[axis], index_at(axes)
        start = -float("inf") if op == "logsumexp" else neutral(op, value.dtype)
        name = self.tile(value, "running", dims, value.dtype, "shared")
        self.shared.add(name)

        def element() -> Expr:
            if not own:
                return Expr(op_table.number(start, value.dtype), (), value.dtype, 0) if exclusive else self.of(x, index)
            if not exclusive:
                return self.guarded(self.of(x, index), [own], start, value.dtype)
            shift = poly(own) + (1 if reverse else -1)
            inside = poly(self.out.dims[own].extent) - 2 - poly(own) if reverse else poly(own) - 1
            expr = self.of(x, (*index[:axis], shift, *index[axis + 1 :]))
            text = f"T.if_then_else({self.out.condition(inside, ())}, {expr.text}, {op_table.number(start, value.dtype)})"
            return self.guarded(Expr(text, dims, value.dtype, self.out.depth), [own], start, value.dtype)

        self.fill(name, dims, element)
        if own:
            self._run_along(op, name, dims, own, reverse, value.dtype)
        return self.tile_as(name, value, axes, dims)

    def _run_along(self, op: str, name: str, dims: tuple[str, ...], own: str, reverse: bool, dtype: DType) -> None:
        if op == "sum" and len(dims) <= 2 and dtype is DType.f32:
            self.out.line(f"T.cumsum({name}, dim={dims.index(own)}, reverse={reverse})")
            return
        step = self.out.fresh(f"{self.out.label(own)}_at")
        left = tuple(dim for dim in dims if dim != own)
        size = self.out.size(own)
        now, last = (f"{size} - 2 - {step}", f"{size} - 1 - {step}") if reverse else (f"{step} + 1", step)

        def place(at: str) -> str:
            return f"{name}[{', '.join(at if dim == own else self.out.label(dim) for dim in dims)}]"

        self.out.open()
        self.out.open()
        a, b = place(last), place(now)
        if op == "logsumexp":
            top, low = f"T.max({a}, {b})", f"T.min({a}, {b})"
            sum_ = f"{top} + T.log({op_table.number(1, dtype)} + T.exp({low} - {top}))"
            text = f"T.if_then_else({low} == {op_table.number(-float('inf'), dtype)}, {top}, {sum_})"
        else:
            text = STEPS[op].format(a, b)
        self.out.line(f"{b} = {text}")
        self.out.close_around(left)
        self.out.close(f"for {step} in T.serial({size} - 1):")

    def argsort(self, value: Value) -> Tile:
        """Every element counts how many stand before it; that is its place."""
        axis, descending = value.data
        axes = self.axes_of(value)
        dims, own = self.axis_dims(axes), axes[axis]
        x = value.args[0]
        name = self.out.allocate("shared", value.name or "order", dims, "int32")
        self.shared.add(name)
        if not own:
            self.fill(name, dims, lambda: Expr("0", (), DType.i32, 0))
            return self.tile_as(name, value, axes, dims)
        keys = self.out.allocate("shared", "keys", dims, x.dtype.torch_name)
        rank = self.out.allocate("fragment", "rank", dims, "int32")
        self.fill(keys, dims, lambda: self.of(x, index_at(axes)))
        self.fill(rank, dims, lambda: Expr("0", (), DType.i32, 0))
        label = self.out.label(own)
        other = self.out.fresh(f"{label}_at")
        place = ", ".join(map(self.out.label, dims))
        there = ", ".join(other if dim == own else self.out.label(dim) for dim in dims)
        mine, its = f"{keys}[{place}]", f"{keys}[{there}]"
        first = f"{its} > {mine}" if descending else f"{its} < {mine}"
        if x.dtype in FLOATS:
            nan = (f"({its} != {its})", f"({mine} != {mine})")
            apart = f"({nan[0]} & ({mine} == {mine}))" if descending else f"({nan[1]} & ({its} == {its}))"
            same = f"(({its} == {mine}) | ({nan[0]} & {nan[1]}))"
            first = f"(({first}) | {apart})"
        else:
            same = f"({its} == {mine})"
        self.out.open()
        before = f"({first}) | ({same} & ({other} < {label}))"
        self.fill(rank, dims, lambda: Expr(f"{rank}[{place}] + T.if_then_else({before}, 1, 0)", dims, DType.i32, 0))
        self.out.close(f"for {other} in T.serial({self.out.place(poly(self.out.dims[own].extent), ())}):")
        self.out.open()
        tests = self.guards([own])
        # Places beyond the end keep themselves. A store under a condition would be refused where the threads that make it are no
        # whole warps: TileLang has to put a barrier before it.
        its_place = f"T.if_then_else({self.mask(tests, ())}, {rank}[{place}], {label})" if tests else f"{rank}[{place}]"
        goal = ", ".join(its_place if dim == own else self.out.label(dim) for dim in dims)
        self.out.line(f"{name}[{goal}] = {label}")
        self.out.close_around(dims)
        return self.tile_as(name, value, axes, dims)

    # ------------------------------------------------------------ loops

    def loop(self, effect: LoopEffect) -> None:
        self.prepare(*outer_values(effect))
        tiles = {item.name: self._start(item) for item in effect.carried}
        start, stop, step = (self.scalar(p) for p in (effect.start, effect.stop, effect.step))
        trips = f"T.ceildiv({stop} - ({start}), {step})" if step != "1" else f"{stop} - ({start})" if start != "0" else stop
        if all(text.lstrip("-").isdigit() for text in (start, stop, step)):
            trips = str(max(0, -(-(int(stop) - int(start)) // int(step))))
        self.out.open()
        name = self.out.fresh(effect.var)
        text = name if step == "1" else f"{name} * {step}"
        self.out.names[effect.var] = Name(text if start == "0" and step == "1" else f"({start} + {text})", (), self.out.depth)
        self.carry(effect.carried, tiles)
        self.block(effect.body)
        self._commit([item for item, final in self.changed(effect) if not self._done(final, tiles[item.name])], tiles)
        self.forget()
        lines = [line.strip() for line in self.out.frames[-1].lines]
        staged = all(line.startswith(("T.copy(", "T.gemm(")) for line in lines) and any(
            line.startswith("T.gemm(") for line in lines
        )
        # copies of the next steps are on their way while one is multiplied
        walk = f"T.Pipelined({trips}, num_stages={STAGES})" if staged else f"T.serial({trips})"
        self.out.close(f"for {name} in {walk}:")
        self.carry(effect.carried, tiles)

    def _done(self, final: Value, tile: Tile) -> bool:
        """Whether a product was added to the carried tile in place."""
        key = self.key(final)
        return key in self.tiles and self.tiles[key].expr.text == tile.expr.text

    def _commit(self, changed: Sequence[Carried], tiles: dict[str, Tile]) -> None:
        """New values of carried tiles: all are made before the first is overwritten."""
        later = []
        for item in changed:
            tile = tiles[item.name]
            final = item.final
            assert final is not None
            name = tile.expr.text
            if len(changed) > 1:
                name = self.out.allocate("fragment", f"{name}_next", tile.expr.dims, tile.expr.dtype.torch_name)
                later.append(f"T.copy({name}, {tile.expr.text})")
            index: Index = fitting(final, index_at(tile.axes))
            self.fill(name, tile.expr.dims, lambda final=final, index=index: self.of(final, index))  # type: ignore[misc]
            self.out.known.pop(("exposed", tile.expr.text), None)
        for line in later:
            self.out.line(line)

    def _start(self, item: Carried) -> Tile:
        storage = item.storage
        axes, shape = self.carried_axes(item)
        dims = self.axis_dims(axes)
        index = index_at(axes)
        name = self.out.allocate("fragment", item.name, dims, storage.dtype.torch_name)
        initial = item.initial
        if initial is not None:
            self.prepare(initial)
            self.fill(name, dims, lambda: self.of(initial, fitting(initial, index)))
        else:
            self.out.line(f"T.clear({name})")
        return Tile(Expr(name, dims, storage.dtype, self.out.depth), axes, shape)

    # ------------------------------------------------------------ stores

    def store_at(self, effect: StoreEffect, index: Index, conditions: list[Poly]) -> None:
        tensor = self.tensors[effect.tensor]
        names = [dim for p in index for dim in self.out.dims_of(p)]
        close = self.walks([dim for dim in self.out.sorted(names) if self.out.dims[dim].walk == "loop"])
        self.out.open()
        value = self.of(effect.value, fitting(effect.value, index))
        positions = self.positions(effect.axes, index)
        dims = self.out.sorted(
            [*names, *value.dims, *(d for p in (*positions, *conditions) for d in self.out.dims_of(p)), *self.lanes]
        )
        # TileLang drops stores outside of a tensor; where the block ends before the tensor does, it must be said.
        outside = set(self.outside(tensor.shape, positions))
        tests = [*conditions, *(guard for guard in self.guards(dims) if guard not in outside)]
        place = self.element(tensor, positions)
        text = self.truth(value)
        lines = [f"{place} = {text}"]
        masks = [self.mask(tests, dims)] if tests else []
        if effect.mode != "set":
            lines = [f"{ATOMIC[effect.mode]}({place}, {text})"]
            # Blocks that differ only in a dimension which this store does not have would all update the same place.
            masks += [
                f"({self.grid_start(dim)} == 0)"
                for dim in self.out.dims.values()
                if dim.walk == "grid" and dim.name not in dims
            ]
            if not dims:
                masks.append("(T.get_thread_binding(0) == 0)")
        if masks:
            lines = [f"if {' & '.join(masks)}:", *(f"    {line}" for line in lines)]
        for line in lines:
            self.out.line(line)
        self.out.close_around(dims)
        close()
