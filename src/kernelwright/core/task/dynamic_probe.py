"""What a module really lets vary: a loaded task and a wish in, a `Dynamic` out. Executes the module, on fake tensors: nothing is computed.

1. Each dimension that was asked for is moved, alone and then together with others of the same size, until the module takes it: what
   has to move together is one symbol (a batch of two inputs, the inner sizes of a product).
2. For each symbol the step in which it moves is found (a divisor that `view` or a group demands), then the range (a table of
   positions), by halving.
3. A range that was asked for and that the module refuses is one sentence; what nobody asked for stays as it is.

A size counts as taken where forward returns outputs of the same structure, ranks and dtypes as at the task's own sizes.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from kernelwright.core.errors import ConfigError, TaskError
from kernelwright.core.task import tree
from kernelwright.core.task.dynamic import Dynamic, SizeSymbol, Wish, WishedDim, parse_dynamic, wish_of
from kernelwright.core.task.footprint import quietly
from kernelwright.core.task.load import LoadedTask

Dim = tuple[int, int]
"""Index of a tensor among the inputs' tensors, and an axis of it."""
FARTHEST = 1 << 20
"""A size that is taken up to here has no end that we know of."""
MOST_TOGETHER = 3
"""Groups of so many dimensions are tried one by one; larger ones by leaving out."""


def dynamic_of(loaded: LoadedTask, said: str = "") -> Dynamic | None:
    """What varies in a task, as `--dynamic` says it, else as the task's `get_dynamic` does; None where neither says anything."""
    wish = parse_dynamic(said) if said else _own_wish(loaded)
    if wish is None:
        return None
    workloads = loaded.draw(0)
    return found_in(loaded.construct(0), workloads[0], wish, where=loaded.task.path, listed=workloads)


def found_in(
    model: torch.nn.Module, inputs: Sequence[Any], wish: Wish, *, where: str = "the module", listed: Sequence[Any] = ()
) -> Dynamic:
    """What varies when a live module is called with such inputs. Raises ConfigError where that is not what was wished."""
    module = _Probe(model, list(inputs), where)
    asked = _asked(module, wish, listed)
    pool = [dim for leaf, tensor in enumerate(module.tensors) for dim in ((leaf, axis) for axis in range(tensor.ndim))]
    made: list[SizeSymbol] = []
    dims: list[tuple[int, int, str]] = []
    notes: list[str] = []
    for first, wished in asked.items():
        if any((leaf, axis) == first for leaf, axis, _ in dims):
            continue
        free = [dim for dim in pool if dim not in {(leaf, axis) for leaf, axis, _ in dims}]
        mates = [dim for dim, other in asked.items() if wished.name and other.name == wished.name]
        together = _together(module, first, free, mates)
        if not together:
            if wish.whole is None:
                raise ConfigError(_refused(module, wished))
            continue
        symbol, said = _ranged(
            module, together, [asked[dim] for dim in together if dim in asked], first, exact=wish.whole is None
        )
        made.append(symbol)
        dims += [(leaf, axis, symbol.name) for leaf, axis in together]
        notes += said
        notes += [
            f"{module.label(dim)} is {module.label(first)}: the module demands it" for dim in together if dim not in asked
        ]
    if not made:
        raise ConfigError(f"{where}: nothing in it may vary; forward takes no other size than those of its inputs")
    ordered = sorted(dims)
    return Dynamic(tuple(made), tuple(ordered), tuple(module.label((leaf, axis)) for leaf, axis, _ in ordered), tuple(notes))


def input_names(model: torch.nn.Module, inputs: Sequence[Any]) -> list[str]:
    """The name of every input tensor, as forward calls it: `x`, `states[0]`."""
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named: list[str] = []
    for position, item in enumerate(inputs):
        fits = parameters[position] if position < len(parameters) else None
        rest = next((p for p in parameters if p.kind is p.VAR_POSITIONAL), None)
        if fits is not None and fits.kind in (fits.POSITIONAL_ONLY, fits.POSITIONAL_OR_KEYWORD):
            name = fits.name
        elif rest is not None:
            name = f"{rest.name}[{position - parameters.index(rest)}]"
        else:
            name = f"input{position}"
        named += [label for label, leaf in tree.leaves(item, name) if isinstance(leaf, torch.Tensor)]
    return named


def _own_wish(loaded: LoadedTask) -> Wish | None:
    if loaded.dynamic_function is None:
        return None
    try:
        said = loaded.dynamic_function()
    except Exception as error:
        raise TaskError(loaded.task.path, f"get_dynamic raised {type(error).__name__}: {error}"[:300]) from error
    return wish_of(said, loaded.task.path)


@dataclass
class _Probe:
    """Asks the module about sizes."""

    model: torch.nn.Module
    inputs: list[Any]
    where: str

    def __post_init__(self) -> None:
        self.tensors: list[torch.Tensor] = tree.tensors(self.inputs)
        self.names = input_names(self.model, self.inputs)
        self._answers: dict[tuple[tuple[int, ...], ...], Any] = {}
        self.real = False
        """What reads values cannot be followed on fake tensors: it is run, on the task's own data repeated."""
        self._own = self._outputs(self._shapes({}))
        if self._own is None:
            self.real = True
            self._answers.clear()
            self._own = self._outputs(self._shapes({}))
        if self._own is None:
            raise ConfigError(f"{self.where}: forward raises on the task's own inputs, so nothing can be said of other sizes")

    def label(self, dim: Dim) -> str:
        return f"{self.names[dim[0]]}[{dim[1]}]"

    def size(self, dim: Dim) -> int:
        return int(self.tensors[dim[0]].shape[dim[1]])

    def takes(self, dims: Iterable[Dim], size: int) -> bool:
        """Whether forward takes inputs with all these dimensions at one other size."""
        return bool(self._outputs(self._shapes(dict.fromkeys(dims, size))) == self._own)

    def really_takes(self, dims: Iterable[Dim], size: int) -> bool:
        """The same by a real call: on fake tensors some operators look at less than they should."""
        return self.takes(dims, size) and self._followed(self._shapes(dict.fromkeys(dims, size)), real=True) is not None

    def _shapes(self, sizes: dict[Dim, int]) -> tuple[tuple[int, ...], ...]:
        return tuple(
            tuple(sizes.get((leaf, axis), size) for axis, size in enumerate(tensor.shape))
            for leaf, tensor in enumerate(self.tensors)
        )

    def _outputs(self, shapes: tuple[tuple[int, ...], ...]) -> Any:
        """What comes out, in outline; None where forward raises."""
        if shapes not in self._answers:
            self._answers[shapes] = self._followed(shapes, self.real)
        return self._answers[shapes]

    def _followed(self, shapes: tuple[tuple[int, ...], ...], real: bool) -> Any:
        from torch._subclasses.fake_tensor import FakeTensorMode

        held = [(m, {k: dict(v) if isinstance(v, dict) else v for k, v in vars(m).items()}) for m in self.model.modules()]
        fake = contextlib.nullcontext() if real else FakeTensorMode(allow_non_fake_inputs=True)
        with quietly("torch._subclasses.fake_tensor"), torch.no_grad(), fake:
            try:
                return _outline(self.model(*_resized(self.inputs, iter(shapes), real)))
            except Exception:
                return None
            finally:  # a module may keep what it has seen (a cache, a mask): no fake tensor stays in it
                for module, kept in held:
                    vars(module).clear()
                    vars(module).update(kept)


def _resized(inputs: list[Any], shapes: Iterator[tuple[int, ...]], real: bool) -> list[Any]:
    def at_shape(tensor: torch.Tensor) -> torch.Tensor:
        return repeated(tensor, next(shapes)) if real else torch.empty(next(shapes), dtype=tensor.dtype)

    return [tree.transform(item, at_shape) for item in inputs]


def repeated(tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """A tensor's own data at another shape: cut where it is smaller, begun again where it is larger."""
    for axis, size in enumerate(shape):
        if size != tensor.shape[axis]:
            tensor = tensor.index_select(axis, torch.arange(size) % max(tensor.shape[axis], 1))
    return tensor.clone()


def _outline(outputs: Any) -> tuple[Any, ...]:
    return tuple(
        (name, leaf.ndim, leaf.dtype) if isinstance(leaf, torch.Tensor) else (name, type(leaf))
        for name, leaf in tree.leaves(outputs, "output")
    )


def _asked(module: _Probe, wish: Wish, listed: Sequence[Any]) -> dict[Dim, WishedDim]:
    """The dimensions that are asked for, in order, by their places."""
    if wish.whole == "all":
        return {dim: WishedDim("", 0) for leaf, t in enumerate(module.tensors) for dim in ((leaf, a) for a in range(t.ndim))}
    if wish.whole == "batch":
        batch = _batch(module)
        with contextlib.suppress(ConfigError):  # what the task itself lists is served, too
            return {**batch, **{dim: wished for dim, wished in _listed(module, listed).items() if dim not in batch}}
        return batch
    if wish.whole == "listed":
        return _listed(module, listed)
    asked: dict[Dim, WishedDim] = {}
    for wished in wish.dims:
        if wished.leaf not in module.names:
            known = ", ".join(module.names) or "no tensor"
            raise ConfigError(f"{module.where}: forward takes no tensor {wished.leaf}; it takes {known}")
        leaf = module.names.index(wished.leaf)
        rank = module.tensors[leaf].ndim
        if not -rank <= wished.axis < rank:
            raise ConfigError(f"{module.where}: {wished.leaf} has {rank} dimensions, and {wished.label} is none of them")
        asked[(leaf, wished.axis % rank)] = replace(wished, axis=wished.axis % rank)
    return asked


def _batch(module: _Probe) -> dict[Dim, WishedDim]:
    """Dimension 0 of the first input that has one which may vary, and of those of the same size that may vary with it."""
    firsts = [(leaf, 0) for leaf, tensor in enumerate(module.tensors) if tensor.ndim]
    for first in firsts:
        together = _together(module, first, firsts, [])
        if together:
            same = [dim for dim in firsts if module.size(dim) == module.size(first) and dim not in together]
            for dim in same:
                if _moves(module, [*together, dim]):
                    together = [*together, dim]
            return {dim: WishedDim("", 0, "batch") for dim in together}
    raise ConfigError(f"{module.where}: no dimension 0 of what forward takes may vary, so there is no batch")


def _listed(module: _Probe, listed: Sequence[Any]) -> dict[Dim, WishedDim]:
    """Every size in which the workloads of a task differ; those that are equal in all of them are one."""
    if len(listed) < 2:
        raise ConfigError(f"{module.where}: --dynamic listed is for tasks with get_inputs_dyn_list, which it does not define")
    others = [tree.tensors(list(other)) for other in listed[1:]]
    if any([(t.ndim, t.dtype) for t in tensors] != [(t.ndim, t.dtype) for t in module.tensors] for tensors in others):
        raise ConfigError(f"{module.where}: the entries of get_inputs_dyn_list differ in more than sizes")
    asked: dict[Dim, WishedDim] = {}
    names: dict[tuple[int, ...], str] = {}
    for leaf, tensor in enumerate(module.tensors):
        for axis, own in enumerate(tensor.shape):
            sizes = (own, *(tensors[leaf].shape[axis] for tensors in others))
            if len(set(sizes)) > 1:
                asked[(leaf, axis)] = WishedDim("", 0, names.setdefault(sizes, _identifier(module.label((leaf, axis)))))
    if not asked:
        raise ConfigError(f"{module.where}: the entries of get_inputs_dyn_list all have the same sizes")
    return asked


def _together(module: _Probe, first: Dim, free: list[Dim], mates: list[Dim]) -> list[Dim]:
    """The fewest dimensions, `first` among them, that the module lets move together; empty where it lets none."""
    fixed = [first, *(dim for dim in mates if dim != first)]
    others = [dim for dim in free if dim not in fixed and module.size(dim) == module.size(first)]
    for count in range(min(len(others), MOST_TOGETHER) + 1):
        for added in itertools.combinations(others, count):
            if _moves(module, [*fixed, *added]):
                return sorted([*fixed, *added])
    chosen = [*fixed, *others]
    if len(others) <= MOST_TOGETHER or not _moves(module, chosen):
        return []
    for dim in others:
        fewer = [each for each in chosen if each != dim]
        if _moves(module, fewer):
            chosen = fewer
    return sorted(chosen)


def _moves(module: _Probe, dims: Sequence[Dim]) -> bool:
    """Whether these may have another size together. 1 says nothing: it broadcasts. Multiples keep what a view divides; larger
    ones come first, since labels of a table need not fit a smaller one, and a second input that is too long is often not looked at."""
    own = module.size(dims[0])
    sizes = [own + 1, 2 * own, 3 * own, own - 1, *(own // part for part in (2, 3) if own % part == 0)]
    found = next((size for size in dict.fromkeys(sizes) if size > 1 and module.takes(dims, size)), 0)
    return found > 0 and module.really_takes(dims, found)


def _ranged(
    module: _Probe, dims: list[Dim], wished: list[WishedDim], first: Dim, *, exact: bool
) -> tuple[SizeSymbol, list[str]]:
    """The symbol of dimensions that move together: its step and its range. `exact`: somebody wrote the range down."""
    own = module.size(dims[0])
    label = module.label(first)

    def takes(size: int) -> bool:
        return module.takes(dims, size)

    step = math.lcm(_step(takes, own), *(each.divisor for each in wished))
    if own % step:
        raise ConfigError(f"{module.where}: {label} is {own} in the task's inputs, which is no multiple of {step}")
    asked_low = [each.low for each in wished if each.low is not None]
    asked_high = [each.high for each in wished if each.high is not None]
    least = -(-max(asked_low) // step) * step if asked_low else None
    most = min(asked_high) // step * step if asked_high else None
    if (least is not None and own < least) or (most is not None and own > most):
        raise ConfigError(
            f"{module.where}: {label} is {own} in the task's inputs, which is not in the range that was asked for"
        )
    low = least if least is not None and (least == 0 or takes(least)) else _least(takes, own, step, least or step)
    high = most if most is not None and takes(most) else _most(takes, own, step, most, 4 * own if module.real else FARTHEST)
    if exact and ((most is not None and high != most) or (asked_low and low > max(least or 0, 1))):
        end = most if most is not None and high != most else least
        raise ConfigError(f"{module.where}: forward refuses {label} = {end}; it takes {SizeSymbol('', low, high, step).range}")
    named = next((each.name for each in wished if each.name), "") or _identifier(label)
    notes = [f"{label} goes in steps of {step}: the module demands it"] if step > max(each.divisor for each in wished) else []
    notes += [f"{label} ends at {high}: the module demands it"] if high is not None and most is None else []
    return SizeSymbol(named, low, high, step, own), notes


def _identifier(label: str) -> str:
    """A name for what stands at `x[0]`: `x_0`."""
    return "_".join("".join(sign if sign.isalnum() else " " for sign in label).split())


def _step(takes: Callable[[int], bool], own: int) -> int:
    """The smallest step in which a size moves up or down."""
    for step in (d for d in range(1, own + 1) if own % d == 0):
        up = takes(own + step) and takes(own + 2 * step)
        down = own > 3 * step and takes(own - step) and takes(own - 2 * step)
        if up or down:
            return step
    return max(own, 1)


def _least(takes: Callable[[int], bool], own: int, step: int, floor: int) -> int:
    """The smallest size that is taken, where larger ones are."""
    low, high = max(floor // step, 1), own // step
    if takes(low * step):
        return low * step
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if takes(middle * step) else (middle, high)
    return high * step


def _most(takes: Callable[[int], bool], own: int, step: int, ceiling: int | None, farthest: int) -> int | None:
    """The largest size that is taken; None where there seems to be no end."""
    far = (farthest if ceiling is None else ceiling) // step
    far = max(far, own // step + 1)
    if takes(far * step):
        return None if ceiling is None else far * step
    low, high = own // step, far
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if takes(middle * step) else (low, middle)
    return low * step


def _refused(module: _Probe, wished: WishedDim) -> str:
    own = module.tensors[module.names.index(wished.leaf)].shape[wished.axis]
    return f"{module.where}: {wished.label} cannot vary: forward takes no other size there than {own}"
