"""The grammar of the Unified Sketch: every node, and what it means.

A Sketch says *what is computed on which tile in which order*, in no particular language. It has declarations (sizes,
tunables, tensors) and kernels that run one after another. A kernel's body is a list of statements over tiles: small
dense arrays that are values, not storage (assigning a name binds it anew; a name bound before a `range` loop and again
inside it is carried from one iteration to the next, and keeps its shape and dtype there; a name first bound inside a loop
ends with the iteration; a `parallel` loop cannot rebind a name from outside).

Rules that every reader of a Sketch (interpreter, checker, each language's emitter) relies on:

* Sizes, loop variables and tunables are integers; `Index` expressions over them are exact and never overflow.
* A tile's extents depend on sizes and tunables only, never on a loop variable.
* A tile always has its full shape. Elements of a `Load` outside the tensor read as `pad`; elements of a `Store` outside
  the tensor are dropped. A load that cannot be proved inside the tensor must give a `pad`.
* Broadcasting follows NumPy. Reductions keep the reduced axes with extent 1 (use `Squeeze` to drop them).
* Both sides of a binary operation have one dtype (Python numbers adapt to the tile); nothing is promoted silently. A
  `Number` stands only where it meets a tile: in a `Binary` or `Where` with one, in a `Cast`, or as the value of a `Store`.
* Axes of operations are counted from 0, never from the end; positions are never negative (there is no wrap-around).
* Consecutive statements of a kernel run one after another: a parallel loop has ended before what follows it begins.
* Iterations of a `parallel` loop are independent: no two write one place (unless the store is an atomic `add`, `max`,
  `min`), and none reads what another writes.
* Hints (levels, serial_below, a tunable's value) never change the result.

Nodes are frozen, hashable and compare by value. `line` is where a node stood in its source and is not compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from kernelwright.core.dtypes import DType as DType

# ---------------------------------------------------------------- integers: sizes, loop variables, bounds


@dataclass(frozen=True)
class Int:
    """An integer literal."""

    value: int

    def __post_init__(self) -> None:
        assert isinstance(self.value, int), f"{self.value!r} is no number: an expression stands for it"


@dataclass(frozen=True)
class Sym:
    """A size, a tunable or a loop variable, by name."""

    name: str


@dataclass(frozen=True)
class IndexOp:
    """Integer arithmetic. `//` and `%` round towards minus infinity, as in Python."""

    op: Literal["+", "-", "*", "//", "%", "min", "max"]
    left: Index
    right: Index


Index = Int | Sym | IndexOp

# ---------------------------------------------------------------- regions of tensors and of tiles


@dataclass(frozen=True)
class Span:
    """`start : start + extent * step : step`, written `start:stop[:step]`; keeps the axis with `extent` elements."""

    start: Index
    extent: Index
    step: Index = Int(1)


@dataclass(frozen=True)
class At:
    """One position; the axis is dropped."""

    index: Index


@dataclass(frozen=True)
class Pick:
    """Positions computed at run time: an integer tile. All picks of one region broadcast together, and the resulting axes
    stand first in the region's shape, before those of the spans (NumPy's rule for separated advanced indices). In a Load
    without `pad` the picked positions are taken on trust to lie inside the tensor; the interpreter raises when they do not."""

    indices: Tile


Axis = Span | At | Pick

# ---------------------------------------------------------------- tile expressions


def _one_nan(node: object, attribute: str) -> None:
    """Makes every NaN the same object, so that nodes with NaN compare equal."""
    value = getattr(node, attribute)
    if isinstance(value, float) and value != value:
        object.__setattr__(node, attribute, math.nan)


REDUCE = ("sum", "prod", "max", "min", "any", "all")
"""`max`/`min` propagate NaN. `sum`/`prod` of f16/bf16 must be written on a cast f32 tile. The dtype stays (sums of integers
wrap); `any`/`all` are for bool. Over an empty axis the result is the neutral element (max: -inf or the least integer)."""

SCAN = ("sum", "prod", "max", "min", "logsumexp")


@dataclass(frozen=True)
class Var:
    """The tile last bound to this name."""

    name: str


@dataclass(frozen=True)
class Number:
    """A literal (also inf, -inf, nan). Takes the dtype of the tile it meets; scalar shape."""

    value: float | int | bool

    def __post_init__(self) -> None:
        _one_nan(self, "value")


@dataclass(frozen=True)
class FromIndex:
    """An integer expression as a scalar i64 tile, so that sizes and loop variables can enter maths and masks."""

    index: Index


@dataclass(frozen=True)
class Iota:
    """`0, 1, … extent-1` as an i64 tile of rank 1."""

    extent: Index


@dataclass(frozen=True)
class Full:
    """A tile of one value: accumulators and buffers. `level` is a hint: register, fast (cache, shared memory), accumulator."""

    shape: tuple[Index, ...]
    value: float | int | bool
    dtype: DType
    level: str = "register"

    def __post_init__(self) -> None:
        _one_nan(self, "value")


@dataclass(frozen=True)
class Load:
    """The elements of a region; outside the tensor they are `pad` (None: the region is inside)."""

    tensor: str
    region: tuple[Axis, ...]
    pad: float | int | bool | None = None
    level: str = "register"
    line: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        _one_nan(self, "pad")


@dataclass(frozen=True)
class Unary:
    """An operation of one operand (core/operations.py)."""

    op: str
    x: Tile


@dataclass(frozen=True)
class Binary:
    """An operation of two operands (core/operations.py)."""

    op: str
    a: Tile
    b: Tile
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Where:
    condition: Tile
    a: Tile
    b: Tile


@dataclass(frozen=True)
class Cast:
    """torch's `.to(dtype)`: float to int truncates, anything to bool is `!= 0`."""

    x: Tile
    dtype: DType


@dataclass(frozen=True)
class Bitcast:
    """The same bits seen as another dtype of the same width (quantised formats)."""

    x: Tile
    dtype: DType


@dataclass(frozen=True)
class Reduce:
    op: str
    x: Tile
    axes: tuple[int, ...]


@dataclass(frozen=True)
class ArgReduce:
    """Position (i64) of the max or min along one axis, which stays with extent 1; the first wins, NaN counts as the extreme."""

    op: Literal["max", "min"]
    x: Tile
    axis: int


@dataclass(frozen=True)
class Scan:
    """Running reduction along an axis. `exclusive` starts from the neutral element and leaves out the element itself."""

    op: str
    x: Tile
    axis: int
    reverse: bool = False
    exclusive: bool = False


@dataclass(frozen=True)
class ArgSort:
    """Positions (i64) that sort `x` along `axis`, stable; NaN sorts as the largest."""

    x: Tile
    axis: int
    descending: bool = False


@dataclass(frozen=True)
class Take:
    """`take_along_axis(x, indices, axis)`."""

    x: Tile
    indices: Tile
    axis: int


@dataclass(frozen=True)
class Gemm:
    """`a @ b` (+ `acc`) for a [m, k], b [k, n], or for as many pairs of them as a leading axis of both has. Products and sums are
    made in `acc`'s dtype; without `acc` in f32 (f64 for f64 operands, i32 for integers)."""

    a: Tile
    b: Tile
    acc: Tile | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Permute:
    x: Tile
    order: tuple[int, ...]


@dataclass(frozen=True)
class Reshape:
    """The same elements in row-major order under another shape."""

    x: Tile
    shape: tuple[Index, ...]


@dataclass(frozen=True)
class Squeeze:
    """Drops an axis of extent 1."""

    x: Tile
    axis: int


@dataclass(frozen=True)
class Unsqueeze:
    """A new axis of extent 1 at this position of the result."""

    x: Tile
    axis: int


@dataclass(frozen=True)
class Stack:
    """Tiles of one shape and dtype side by side along a new axis, at this position of the result."""

    tiles: tuple[Tile, ...]
    axis: int


@dataclass(frozen=True)
class Expand:
    """Broadcasts to a shape."""

    x: Tile
    shape: tuple[Index, ...]


@dataclass(frozen=True)
class Part:
    """A region of a tile (spans and positions only; must lie inside it)."""

    x: Tile
    region: tuple[Span | At, ...]


Tile = (
    Var | Number | FromIndex | Iota | Full | Load | Unary | Binary | Where | Cast | Bitcast | Reduce | ArgReduce | Scan
    | ArgSort | Take | Gemm | Permute | Reshape | Squeeze | Unsqueeze | Stack | Expand | Part
)  # fmt: skip

# ---------------------------------------------------------------- statements


@dataclass(frozen=True)
class Assign:
    name: str
    value: Tile
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Store:
    """Writes a tile of the region's shape (or broadcastable to it); what lies outside the tensor is dropped. Modes other than
    `set` are atomic updates."""

    tensor: str
    region: tuple[Axis, ...]
    value: Tile
    mode: Literal["set", "add", "max", "min"] = "set"
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class For:
    """`for var in parallel(start, stop, step)` or `range(...)`. `hints` are sorted (name, value) pairs:
    serial_below (run on one thread under this many elements)."""

    var: str
    kind: Literal["parallel", "range"]
    start: Index
    stop: Index
    step: Index
    body: tuple[Statement, ...]
    hints: tuple[tuple[str, int], ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Comment:
    """A remark of the designer on a line of its own; printed and carried into the generated code."""

    text: str


Statement = Assign | Store | For | Comment

# ---------------------------------------------------------------- declarations


@dataclass(frozen=True)
class Size:
    """A size by name, with the value it has for the workload at hand. A `dynamic` size becomes an argument of the kernel: the sketch is
    right for every multiple of `multiple_of` from `low` to `high` (None: as far as memory goes), and refuses others."""

    name: str
    value: int
    dynamic: bool = False
    low: int = 0
    high: int | None = None
    multiple_of: int = 1


@dataclass(frozen=True)
class Tunable:
    """A constant that the search may change within `domain`; `value` is the default and lies in it."""

    name: str
    value: int
    domain: tuple[int, ...]


@dataclass(frozen=True)
class Tensor:
    """A row-major tensor in main memory.

    `role` says who owns it: `input` (`source` is the position in forward's flattened arguments), `param` (`source` is the
    name in the module's state_dict), `constant` (`source` names an entry of `Sketch.constants`), `output`, `temp` (made by one
    kernel, read by a later one), or `view` (`source` names a tensor declared before it, itself not a view: the same memory and
    dtype in row-major order under another shape of as many elements, to be read and written like the tensor itself).
    """

    name: str
    shape: tuple[Index, ...]
    dtype: DType
    role: Literal["input", "param", "constant", "output", "temp", "view"]
    source: str = ""


@dataclass(frozen=True)
class Kernel:
    """`once` marks a kernel that reads only params, constants and temps of other `once` kernels (folding, packing): its
    results are kept until a parameter changes."""

    name: str
    body: tuple[Statement, ...]
    once: bool = False
    doc: str = ""


@dataclass(frozen=True)
class LibraryCall:
    """Track hybrid only: one ATen operator left to torch, reading and writing declared tensors: `inputs` are its first
    arguments by position, `attributes` is a JSON object of the others by name (library.py says how tensors, dtypes and complex
    numbers are written there)."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: str = "{}"


@dataclass(frozen=True)
class Sketch:
    """A whole program. `returns` describes forward's result as a JSON tree: strings are tensor names (an input's or param's
    name returns that tensor itself), arrays are tuples, `{"$list": [...]}` is a list, other objects are dicts; null,
    numbers and booleans stand for themselves."""

    name: str
    doc: str
    sizes: tuple[Size, ...]
    tunables: tuple[Tunable, ...]
    tensors: tuple[Tensor, ...]
    steps: tuple[Kernel | LibraryCall, ...]
    returns: str
    constants: tuple[tuple[str, tuple[float | int | bool, ...]], ...] = ()
