"""What varies from call to call: sizes of inputs as symbols with ranges. Imports no torch.

In: what somebody wrote, `x[0]=1..4096, x[1]`, `batch`, `all`, `listed` (in a task file: what `get_dynamic` returned). Out: a `Wish`, the
request as it was understood. What the module really allows is found by `dynamic_probe.py`, which makes a `Dynamic` of a wish: the noun
that Designer, judge and checker share.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self

from kernelwright.core.errors import ConfigError

Whole = Literal["batch", "all", "listed"]
WHOLE: tuple[Whole, ...] = ("batch", "all", "listed")
HOW = "write what varies as x[0]=1..4096, x[1] (names of forward's parameters), or batch, all, listed"

_ITEM = re.compile(r"(?P<leaf>[A-Za-z_][^=]*?)\s*\[\s*(?P<axis>-?\d+)\s*\]\s*(?:=\s*(?P<said>.*))?")
_RANGE = re.compile(
    r"(?:(?P<name>[A-Za-z_]\w*)(?:\s+in\s+|\s*$))?(?P<range>(?P<low>\d+)?\s*\.\.\s*(?P<high>\d+)?(?:\s+step\s+(?P<step>\d+))?)?"
)


@dataclass(frozen=True)
class SizeSymbol:
    """One size that varies: every multiple of `divisor` from `low` to `high` (None: as far as memory goes). `example` is its value in
    the task's own inputs."""

    name: str
    low: int = 1
    high: int | None = None
    divisor: int = 1
    example: int = 1

    def admits(self, size: int) -> bool:
        """Whether a size is in the range."""
        return size >= self.low and (self.high is None or size <= self.high) and size % self.divisor == 0

    @property
    def range(self) -> str:
        """The range in words: `1..4096`, `8.. in steps of 8`."""
        words = f"{self.low}..{'' if self.high is None else self.high}"
        return words if self.divisor == 1 else f"{words} in steps of {self.divisor}"


@dataclass(frozen=True)
class Dynamic:
    """Which sizes of which inputs are which symbols. `dims` are (index among the tensors of the inputs, in the order of
    `core.task.tree.tensors`; axis; the symbol's name); `labels` names each of them for people: `x[0]`."""

    symbols: tuple[SizeSymbol, ...]
    dims: tuple[tuple[int, int, str], ...]
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What the module demanded beyond what was asked for."""

    def __bool__(self) -> bool:
        return bool(self.dims)

    def symbol(self, name: str) -> SizeSymbol:
        """The symbol of that name."""
        return next(symbol for symbol in self.symbols if symbol.name == name)

    def label(self, name: str) -> str:
        """The first place where a symbol stands, `x[0]`."""
        named = zip(self.dims, self.labels or [f"input {leaf}[{axis}]" for leaf, axis, _ in self.dims], strict=True)
        return next(label for (_, _, symbol), label in named if symbol == name)

    @property
    def ranges(self) -> str:
        """Everything that varies, for a sentence: `x[0] in 1..4096, x[1] in 8.. in steps of 8`."""
        return ", ".join(f"{self.label(symbol.name)} in {symbol.range}" for symbol in self.symbols)

    def said(self, sizes: Mapping[str, int]) -> str:
        """Chosen sizes in words: `x[0] = 7, x[1] = 64`."""
        return ", ".join(f"{self.label(symbol.name)} = {sizes[symbol.name]}" for symbol in self.symbols)

    @property
    def examples(self) -> dict[str, int]:
        """The sizes of the task's own inputs."""
        return {symbol.name: symbol.example for symbol in self.symbols}

    def read(self, shapes: Sequence[Sequence[int]]) -> dict[str, int]:
        """The symbols' values where the input tensors have these shapes."""
        return {name: int(shapes[leaf][axis]) for leaf, axis, name in reversed(self.dims)}

    def shapes(self, shapes: Sequence[Sequence[int]], sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
        """The shapes of the input tensors at other sizes."""
        made = [list(shape) for shape in shapes]
        for leaf, axis, name in self.dims:
            made[leaf][axis] = sizes[name]
        return [tuple(shape) for shape in made]

    def as_json(self) -> dict[str, Any]:
        """As it travels; `from_json` reads it."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        symbols = tuple(SizeSymbol(**each) for each in data["symbols"])
        dims = tuple((int(leaf), int(axis), str(name)) for leaf, axis, name in data["dims"])
        return cls(symbols, dims, tuple(data.get("labels", ())), tuple(data.get("notes", ())))


@dataclass(frozen=True)
class WishedDim:
    """One dimension that should vary. `name` makes dimensions of one name one symbol; `high` None and `low` 0 or 1 are the widest."""

    leaf: str
    axis: int
    name: str = ""
    low: int | None = None
    high: int | None = None
    divisor: int = 1

    @property
    def label(self) -> str:
        return f"{self.leaf}[{self.axis}]"


@dataclass(frozen=True)
class Wish:
    """What was asked for: single dimensions, or one of the words."""

    dims: tuple[WishedDim, ...] = ()
    whole: Whole | None = None


def parse_dynamic(text: str) -> Wish:
    """A request as somebody wrote it; a ConfigError of one sentence for anything else."""
    word = text.strip()
    if word in WHOLE:
        return Wish(whole=word)
    dims = tuple(_item(item.strip(), text) for item in _split(word))
    if not dims:
        raise ConfigError(f"--dynamic {text!r} names nothing; {HOW}")
    return _checked(Wish(dims), text)


def wish_of(said: Any, where: str) -> Wish:
    """What a task's `get_dynamic` returned: the same text, or `{"x": {0: (1, 4096), 1: None}}` as torch.export takes it (a range is None,
    (low, high), (low, high, step), a name, or a torch.export.Dim)."""
    if isinstance(said, str):
        return parse_dynamic(said)
    if not isinstance(said, Mapping):
        raise ConfigError(
            f'{where}: get_dynamic must return a text such as "x[0]=1..4096, x[1]" or a dictionary, not {said!r}'[:300]
        )
    dims = []
    for leaf, axes in said.items():
        if not isinstance(axes, Mapping):
            raise ConfigError(f"{where}: get_dynamic must say for {leaf!r} which dimensions vary, as in {{0: (1, 4096)}}")
        dims += [_told(str(leaf), axis, what, where) for axis, what in axes.items()]
    if not dims:
        raise ConfigError(f"{where}: get_dynamic names nothing that varies")
    return _checked(Wish(tuple(dims)), where)


def _told(leaf: str, axis: Any, what: Any, where: str) -> WishedDim:
    if type(axis) is not int:
        raise ConfigError(f"{where}: get_dynamic names the dimension {axis!r} of {leaf}, which is not a whole number")
    if what is None:
        return WishedDim(leaf, axis)
    if isinstance(what, str):
        return WishedDim(leaf, axis, what)
    if isinstance(what, tuple | list) and len(what) in (2, 3) and all(type(n) is int or n is None for n in what):
        return WishedDim(leaf, axis, "", what[0], what[1], (what[2] if len(what) == 3 else 1) or 1)
    if hasattr(what, "min") and hasattr(what, "max") and hasattr(what, "__name__"):  # torch.export.Dim
        high = int(what.max)
        return WishedDim(leaf, axis, str(what.__name__), int(what.min), high if high < 1 << 40 else None)
    raise ConfigError(
        f"{where}: get_dynamic says {what!r} of {leaf}[{axis}]; a range is None, (low, high) or (low, high, step)"[:300]
    )


def _split(text: str) -> list[str]:
    """Items between commas that stand outside of brackets."""
    items, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            items.append(text[start:place])
            start = place + 1
    return [item for item in (*items, text[start:]) if item.strip()]


def _item(item: str, text: str) -> WishedDim:
    found = _ITEM.fullmatch(item)
    if found is None:
        raise ConfigError(f"--dynamic {text!r}: {item!r} is no dimension; {HOW}")
    said = (found["said"] or "").strip()
    dim = WishedDim(found["leaf"].strip(), int(found["axis"]))
    if found["said"] is None:
        return dim
    range_ = _RANGE.fullmatch(said)
    if range_ is None or not said:
        raise ConfigError(f"--dynamic {text!r}: {said!r} is no range; write 1..4096, 64.., 8..512 step 8 or a name")
    low, high, step = (int(range_[part]) if range_[part] else None for part in ("low", "high", "step"))
    return replace(dim, name=range_["name"] or "", low=low, high=high, divisor=1 if step is None else step)


def _checked(wish: Wish, text: str) -> Wish:
    """Ranges that hold something, each dimension once."""
    for dim in wish.dims:
        if dim.divisor < 1:
            raise ConfigError(f"{text!r}: {dim.label} goes in steps of {dim.divisor}, where 1 is the least")
        first = -(-(1 if dim.low is None else dim.low) // dim.divisor) * dim.divisor
        if (dim.low is not None and dim.low < 0) or (dim.high is not None and dim.high < max(first, 1)):
            raise ConfigError(f"{text!r}: no size of {dim.label} is in {dim.low or 0}..{dim.high}")
    named = [dim.label for dim in wish.dims]
    twice = next((name for name in named if named.count(name) > 1), "")
    if twice:
        raise ConfigError(f"{text!r} says twice how {twice} varies")
    return wish
