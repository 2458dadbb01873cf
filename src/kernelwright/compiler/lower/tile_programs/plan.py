"""Block dimensions of one Triton program: which tile axes are the same dimension, how large its block is, who walks over it.

In: what a first, dry run over the program's tiles has found (`Survey`): dimensions by name, which of them are read as one another,
the blocks in which they meet, what is done along them; and what a device affords (`Budget`). Out: `Plan`: for each dimension its
representative and its `Dim`.

A dimension whose tiles are too large is cut: over the grid where nothing is reduced along it, in a loop of the program where a store
reads results that do not have it (the second pass of a softmax), in a loop of the reduction where only that reduction has it. One
whose extent varies from call to call is always cut, to a block that is right for any extent; what must lie in one block all the same
(a scan, a sort) is `fitted`: its block is the next power of two of the extent, and the kernel is compiled for each of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kernelwright.core.errors import SketchError
from kernelwright.sketch.index import Leaf, Poly, Ranges, poly
from kernelwright.target import Capabilities

Extent = int | Poly
"""Of a dimension: a number, or an expression over sizes that vary."""

BLOCK = 8192
"""Elements of the largest block that a program keeps in registers."""
WALKED = 4096
"""Elements of a block that a loop walks with: what it carries and what it loads are in registers side by side. With 8192 on 8 warps
ptxas spilled for a loss of two operands and took 169 registers for another; with 4096 it takes 80 at most."""
LANES = 2048
"""Elements that a program should have at least; small tiles take in neighbours of a parallel loop."""
DOT = 16
"""The smallest extent of a matrix product's operands."""
DEPTH = 32
"""Block of a product's inner dimension for fp32, a line of 128 bytes; half floats take twice as much."""
VARYING = 128
VARYING_MOST = 1024
"""Elements of a block along a dimension whose extent varies, at least and at most: the example may be a small one."""
EXACT_BLOCK = 4096
"""Elements of a product's block in fp32: exact products are made without tensor cores, and operands fill the registers."""


@dataclass(frozen=True)
class Budget:
    """Elements of a block that a device's registers hold beside what else a program needs: of any tile, of the sums of a product that
    is multiplied in fp32, of one on matrix units."""

    block: int = BLOCK
    exact: int = EXACT_BLOCK
    matrix: int = 2 * BLOCK

    @classmethod
    def of(cls, machine: Capabilities) -> Budget:
        """What a device affords."""
        return cls(BLOCK, max(1024, machine.sums_bytes(matrix=False) // 4), max(BLOCK, machine.sums_bytes(matrix=True) // 4))

    def limit(self, block: Iterable[str], exact: set[str], matrix: set[str]) -> int:
        """For a block that has these dimensions: those of an exact product, of one on matrix units."""
        names = set(block)
        return self.exact if names & exact else self.matrix if len(names & matrix) > 1 else self.block


@dataclass
class Dim:
    """One block dimension. `size` is its power of two; `walk` says how a smaller block covers the extent: "" (at once), "grid"
    or "loop"; `padded` that positions beyond the extent occur. Of a `fitted` dimension the size is an example, `least` the smallest."""

    name: str
    extent: Extent
    size: int
    walk: str = ""
    least: int = 1

    @property
    def fitted(self) -> bool:
        """Whether the block is made to hold an extent that varies."""
        return isinstance(self.extent, Poly) and not self.walk

    @property
    def padded(self) -> bool:
        if isinstance(self.extent, Poly):
            return self.fitted or not SIZES.divisible(self.extent, self.size)
        return self.extent % self.size != 0

    @property
    def steps(self) -> Extent:
        return ceil_div(self.extent, self.size)


SIZES = Ranges({})
"""What is known of sizes that vary: they are not negative."""


def plain(extent: Poly) -> Extent:
    """An extent as a number where it is one."""
    return extent if extent.constant is None else extent.constant


def ceil_div(extent: Extent, by: int) -> Extent:
    """How many blocks cover an extent."""
    return plain(SIZES.combine("//", extent + (by - 1), poly(by))) if isinstance(extent, Poly) else -(-extent // by)


def likely(extent: Extent, examples: Mapping[str, int]) -> int:
    """The number that an extent is at the sizes of the example."""
    if isinstance(extent, int):
        return extent
    given: dict[str | Leaf, Poly] = {name: poly(value) for name, value in examples.items()}
    found = extent.substitute(given).constant
    return 1 if found is None else found


@dataclass
class Survey:
    """What a dry run saw. Names are those of dimensions before they are joined; `examples` are the sizes that vary."""

    examples: Mapping[str, int] = field(default_factory=dict)
    extent: dict[str, Extent] = field(default_factory=dict)
    parent: dict[str, str] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)  # axes of tiles that live in registers
    along: set[str] = field(default_factory=set)  # reduced, scanned, sorted, contracted while in registers
    inner: set[str] = field(default_factory=set)  # dimensions that only a reduction or product has
    dots: set[str] = field(default_factory=set)  # meet in a matrix product
    exact: set[str] = field(default_factory=set)  # meet in a product that is made in fp32
    wants: dict[str, int] = field(default_factory=dict)  # preferred size of an inner dimension
    roots: dict[str, bool] = field(default_factory=dict)  # axes of stores: does the store read kept tiles?
    blocks: list[tuple[str, ...]] = field(default_factory=list)
    whole: set[str] = field(default_factory=set)  # must not be cut: scans, sorts, gathers

    def add(self, name: str, extent: Extent) -> str:
        self.extent.setdefault(name, extent)
        self.parent.setdefault(name, name)
        return name

    def find(self, name: str) -> str:
        while self.parent[name] != name:
            name = self.parent[name]
        return name

    def join(self, a: str, b: str) -> None:
        """The two are one dimension."""
        first, second = sorted((self.find(a), self.find(b)), key=lambda n: (len(n), n))
        if first != second:
            self.parent[second] = first


@dataclass
class Plan:
    """`of` maps every surveyed name to its dimension."""

    of: dict[str, Dim]
    lanes: dict[str, int] = field(default_factory=dict)
    largest: int = 1


def power(n: int) -> int:
    """The next power of two."""
    return 1 << max(0, n - 1).bit_length()


def make(survey: Survey, budget: Budget) -> Plan:
    """Sizes for all dimensions."""
    _share(survey)
    groups: dict[str, list[str]] = {}
    for name in survey.extent:
        groups.setdefault(survey.find(name), []).append(name)
    dims: dict[str, Dim] = {}
    for root, names in groups.items():
        extent = survey.extent[root]
        if any(survey.extent[name] != extent for name in names):
            raise SketchError(f"tiles of different extents meet in one dimension ({root})")
        least = DOT if any(name in survey.dots for name in names) else 1
        dims[root] = Dim(root, extent, max(least, power(likely(extent, survey.examples))), least=least)
        if isinstance(extent, Poly) and (walk := _walk(survey, names)):
            dims[root].walk, dims[root].size = walk, min(max(dims[root].size, VARYING), VARYING_MOST)
    blocks = [tuple(dict.fromkeys(survey.find(name) for name in block)) for block in survey.blocks]
    for root, names in groups.items():
        dim = dims[root]
        wanted = min((survey.wants[name] for name in names if name in survey.wants), default=None)
        if wanted is not None and all(name in survey.inner for name in names) and dim.size > wanted:
            dim.size, dim.walk = wanted, "loop"
    exact = {survey.find(name) for name in survey.exact}
    matrix = {survey.find(name) for name in survey.dots - survey.inner} - exact
    for _ in range(64):
        sizes = {block: _product(dims[name].size for name in block) for block in blocks}
        large = [block for block in blocks if sizes[block] > budget.limit(block, exact, matrix)]
        if not large or not any(_cut(survey, groups, dims, block) for block in sorted(large, key=lambda b: -sizes[b])):
            break
    for block in blocks:
        walked = [dims[name] for name in block if dims[name].walk == "loop" and dims[name].size > DOT]
        if walked and not exact & set(block) and _product(dims[name].size for name in block) > WALKED:
            max(walked, key=lambda dim: dim.size).size //= 2
    largest = max((_product(dims[name].size for name in block) for block in blocks), default=1)
    return Plan({name: dims[survey.find(name)] for name in survey.extent}, largest=largest)


def _share(survey: Survey) -> None:
    """A reduction's own dimension is laid over a dimension of the same extent that a store has, where they never meet in one block:
    the row that is reduced is then the row that is stored, and is loaded once."""
    for name in sorted(survey.inner):
        extent = survey.extent[name]
        if survey.find(name) != name or name in survey.dots or isinstance(extent, Poly) or power(extent) > BLOCK:
            continue
        for other in survey.roots:
            goal = survey.find(other)
            if goal == name or survey.extent[goal] != survey.extent[name] or goal in survey.dots:
                continue
            if any({name, goal} <= {survey.find(part) for part in block} for block in survey.blocks):
                continue
            joined = [
                {survey.find(part) for part in block} - {name} | {goal}
                for block in survey.blocks
                if name in map(survey.find, block)
            ]
            if any(_product(power(likely(survey.extent[part], survey.examples)) for part in block) > BLOCK for block in joined):
                continue
            survey.join(goal, name)
            survey.parent[name] = goal
            survey.parent[goal] = goal
            survey.along.add(goal)
            break


def _cut(survey: Survey, groups: dict[str, list[str]], dims: dict[str, Dim], block: tuple[str, ...]) -> bool:
    """Halve the dimension of a block that can best bear it; False when none can."""
    choices = []
    for name in block:
        dim, names = dims[name], groups[name]
        least = DOT if any(n in survey.dots for n in names) else 1
        if dim.size // 2 < least:
            continue
        walk = dim.walk or _walk(survey, names)
        if walk:
            choices.append((dim.size, walk, dim))
    if not choices:
        return False
    _, walk, dim = max(choices, key=lambda choice: choice[0])
    dim.size //= 2
    dim.walk = walk
    return True


def _walk(survey: Survey, names: list[str]) -> str:
    """How a dimension can be cut, or nothing."""
    if any(name in survey.whole for name in names):
        return ""
    kept = any(name in survey.kept for name in names)
    along = any(name in survey.along for name in names)
    if all(name in survey.inner for name in names):
        return "loop"
    if along or any(name in survey.inner for name in names):
        return ""
    if kept:
        return "grid"
    if len(names) == 1 and survey.roots.get(names[0]):
        return "loop"
    return "grid"


def _product(sizes: Iterable[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total
