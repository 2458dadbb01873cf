"""Random sketches for property tests, from a seed: any sketch the grammar allows with its names in scope, well-typed or not.

Plain `random` rather than hypothesis strategies for every node: a grammar this wide takes hypothesis seconds an example.
"""

from __future__ import annotations

import json
import math
import random
from typing import Any

from kernelwright.core.operations import BINARY, UNARY
from kernelwright.sketch import nodes
from kernelwright.sketch.nodes import DType, Index, IndexOp, Int, Sym, Tile

SIZES = ("M", "N", "K")
TUNABLES = ("BM", "BN")
TENSORS = {"x": 2, "w": 1, "s": 0, "y": 2}
TILES = ("t", "u", "acc")
LETTERS = "abcXYZ09 _'\"\\#{}é漢😀,;:%"


class Draw:
    """Draws from the grammar."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def chance(self, probability: float = 0.5) -> bool:
        return self.random.random() < probability

    def text(self) -> str:
        drawn = "".join(self.random.choice(LETTERS) for _ in range(self.random.randint(1, 8))).strip()
        return drawn or "word"

    def doc(self) -> str:
        return "\n".join(self.text() for _ in range(self.random.randint(0, 3)))

    def number(self) -> float | int | bool:
        kinds: list[Any] = [
            self.random.randint(-100, 100),
            self.random.uniform(-2, 2),
            self.random.choice([1e-30, -2.5e20, 0.1, 1e5, 3.0]),
            self.chance(),
            self.random.choice([math.inf, -math.inf, math.nan]),
        ]
        return self.random.choice(kinds)

    def dtype(self) -> DType:
        return self.random.choice(list(DType))

    def level(self) -> str:
        return self.random.choice(["register", "fast", "accumulator"])

    def index(self, names: tuple[str, ...], depth: int = 2) -> Index:
        if depth == 0 or self.chance(0.4):
            return Int(self.random.randint(-20, 4096)) if self.chance(0.4) else Sym(self.random.choice(names))
        op = self.random.choice(["+", "-", "*", "//", "%", "min", "max"])
        return IndexOp(op, self.index(names, depth - 1), self.index(names, depth - 1))

    def shape(self, names: tuple[str, ...]) -> tuple[Index, ...]:
        return tuple(self.index(names) for _ in range(self.random.randint(0, 3)))

    def region(self, rank: int, names: tuple[str, ...], bound: tuple[str, ...], depth: int) -> tuple[nodes.Axis, ...]:
        result: list[nodes.Axis] = []
        for _ in range(rank):
            kind = self.random.randint(0, 4 if depth else 3)
            if kind == 0:
                result.append(nodes.At(self.index(names)))
            elif kind == 4:
                result.append(nodes.Pick(self.tile(names, bound, depth - 1)))
            else:
                step = self.index(names, 1) if kind == 1 else Int(1)
                result.append(nodes.Span(self.index(names), self.index(names), step))
        return tuple(result)

    def load(self, names: tuple[str, ...], bound: tuple[str, ...], depth: int) -> nodes.Load:
        tensor, rank = self.random.choice(list(TENSORS.items()))
        pad = self.number() if self.chance() else None
        return nodes.Load(tensor, self.region(rank, names, bound, depth), pad, self.level())

    def leaf(self, names: tuple[str, ...], bound: tuple[str, ...]) -> Tile:
        match self.random.randint(0, 4 if bound else 3):
            case 0:
                return nodes.FromIndex(self.index(names))
            case 1:
                return nodes.Iota(self.index(names))
            case 2:
                return nodes.Full(self.shape(names), self.number(), self.dtype(), self.level())
            case 3:
                return self.load(names, bound, 0)
        return nodes.Var(self.random.choice(bound))

    def tile(self, names: tuple[str, ...], bound: tuple[str, ...], depth: int = 3) -> Tile:
        if depth == 0 or self.chance(0.2):
            return self.leaf(names, bound)

        def inner() -> Tile:
            return self.tile(names, bound, depth - 1)

        def either() -> Tile:
            return nodes.Number(self.number()) if self.chance(0.3) else inner()

        def pair() -> tuple[Tile, Tile]:
            # Two bare numbers would be folded into one, and have no dtype anyway: one side is a tile.
            return (inner(), either()) if self.chance() else (either(), inner())

        axis, choose = self.random.randint(0, 3), self.random.choice
        match self.random.randint(0, 17):
            case 0 | 1:
                return nodes.Unary(choose(tuple(UNARY)), inner())
            case 2 | 3 | 4:
                return nodes.Binary(choose(tuple(BINARY)), *pair())
            case 5:
                return nodes.Where(inner(), *pair())
            case 6:
                return nodes.Cast(either(), self.dtype())
            case 7:
                return nodes.Bitcast(inner(), self.dtype())
            case 8:
                axes = tuple(self.random.sample(range(3), self.random.randint(0, 3)))
                return nodes.Reduce(choose(nodes.REDUCE), inner(), axes)
            case 9:
                return nodes.ArgReduce(choose(["max", "min"]), inner(), axis)
            case 10:
                return nodes.Scan(choose(nodes.SCAN), inner(), axis, self.chance(), self.chance())
            case 11:
                return nodes.ArgSort(inner(), axis, self.chance())
            case 12:
                return nodes.Take(inner(), inner(), axis)
            case 13:
                return nodes.Gemm(inner(), inner(), inner() if self.chance() else None)
            case 14:
                return nodes.Permute(inner(), tuple(self.random.sample(range(3), 3)))
            case 15:
                return choose([nodes.Reshape, nodes.Expand])(inner(), self.shape(names))
            case 16:
                return choose([nodes.Squeeze, nodes.Unsqueeze])(inner(), axis)
        return self.load(names, bound, depth)

    def body(self, names: tuple[str, ...], bound: tuple[str, ...], depth: int) -> tuple[nodes.Statement, ...]:
        result: list[nodes.Statement] = []
        for _ in range(self.random.randint(0, 4)):
            match self.random.randint(0, 4 if depth else 3):
                case 0 | 1:
                    name = self.random.choice(TILES)
                    result.append(nodes.Assign(name, self.tile(names, bound)))
                    bound = tuple(dict.fromkeys((*bound, name)))
                case 2:
                    tensor, rank = self.random.choice(list(TENSORS.items()))
                    value = nodes.Number(self.number()) if self.chance(0.2) else self.tile(names, bound)
                    mode = self.random.choice(["set", "add", "max", "min"])
                    result.append(nodes.Store(tensor, self.region(rank, names, bound, 1), value, mode))
                case 3:
                    result.append(nodes.Comment(self.text() if self.chance(0.8) else ""))
                case 4:
                    variable = f"i{depth}"
                    hints = tuple((name, self.random.randint(0, 8)) for name in ("serial_below",) if self.chance(0.3))
                    start, stop, step = (self.index(names) for _ in range(3))
                    kind = self.random.choice(["parallel", "range"])
                    inside = self.body((*names, variable), bound, depth - 1)
                    result.append(nodes.For(variable, kind, start, stop, step, inside, hints))
        return tuple(result)

    def structure(self, depth: int = 2) -> Any:
        match self.random.randint(0, 5 if depth else 2):
            case 0 | 1:
                return self.random.choice(list(TENSORS))
            case 2:
                return self.random.choice([None, True, 3, -1])
            case 3:
                return [self.structure(depth - 1) for _ in range(self.random.randint(0, 3))]
            case 4:
                return {"$list": [self.structure(depth - 1) for _ in range(self.random.randint(0, 3))]}
        return {self.text(): self.structure(depth - 1) for _ in range(self.random.randint(0, 3))}

    def sketch(self) -> nodes.Sketch:
        integers = (*SIZES, *TUNABLES)
        sizes = tuple(nodes.Size(name, self.random.randint(0, 10**6), self.chance()) for name in SIZES)
        tunables = tuple(nodes.Tunable(name, 4, tuple(self.random.sample(range(1, 9), 3))) for name in TUNABLES)
        roles = ["input", "param", "constant", "output", "temp", "view"]
        tensors = tuple(
            nodes.Tensor(
                name,
                tuple(self.index(integers) for _ in range(rank)),
                self.dtype(),
                self.random.choice(roles),
                self.text() if self.chance() else "",
            )
            for name, rank in TENSORS.items()
        )
        steps: list[nodes.Kernel | nodes.LibraryCall] = []
        for number in range(self.random.randint(1, 3)):
            if self.chance(0.2):
                attributes = json.dumps({self.text(): self.random.randint(0, 9)})
                steps.append(nodes.LibraryCall("aten.mm", ("x", "w"), ("y",), attributes))
            else:
                steps.append(nodes.Kernel(f"k{number}", self.body(integers, (), 2), self.chance(), self.doc()))
        constants = tuple((self.text(), tuple(self.number() for _ in range(3))) for _ in range(self.random.randint(0, 2)))
        returns = json.dumps(self.structure())
        return nodes.Sketch(self.text(), self.doc(), sizes, tunables, tensors, tuple(steps), returns, constants)
