"""The reference, run in its own dtype and in fp64: inputs in, named output tensors out.

The fp64 run ("wide") uses a deep copy of the module in double precision. A dispatch mode keeps it wide: casts to fp32 inside
`forward` become casts to fp64; casts to a dtype narrower than the task's own round (they are part of what is asked for) and
stay fp64. A module that refuses (it checks dtypes, an operator has no double kernel) has no wide run; the native one is the
truth then. Noise of rounding size on inputs and weights shows how well the task is conditioned.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from kernelwright.core.errors import TaskError
from kernelwright.core.task import tree
from kernelwright.core.task.dynamic import Dynamic
from kernelwright.core.task.load import LoadedTask, require_outputs

Named = list[tuple[str, Any]]

FLOATS = (torch.float16, torch.bfloat16, torch.float32)
TILE = 65537
"""Noise repeats after this prime number of elements: as good as fresh noise here, and it costs nothing."""

ADDS = ("sum", "mean", "var", "std", "norm", "prod", "logsumexp", "dot", "mv", "pool", "cdist", "loss", "histc", "bincount")
SCANS = ("softmax", "cumsum", "cumprod")
WINOGRAD, STRASSEN = 4, 512
MEMORY = "it would not fit into memory"
"""The reason of a refusal that is the machine's, not the module's."""


class Reference:
    """The task's module with one set of weights."""

    def __init__(self, loaded: LoadedTask, model: Any) -> None:
        self.loaded = loaded
        self.model = model
        self._start = {name: value.clone() for name, value in model.state_dict().items()}
        self._wide: Any = None
        self.dynamic: Dynamic | None = None
        """Which sizes of the inputs vary, where any do."""
        self.refusal = ""
        """Why there is no wide run, once that is known."""

    def set_weights(self, state: dict[str, Any]) -> None:
        """Other parameters and buffers from now on."""
        self.model.load_state_dict(state)
        self._start = {name: value.clone() for name, value in self.model.state_dict().items()}
        self._wide = None

    def native(self, inputs: list[Any]) -> Named:
        """As the user runs it. The inputs are copied first (a reference may write into them), state is put back afterwards."""
        return require_outputs(self.loaded.task, self._restored(tree.transform(inputs, _copied)))

    def native_tree(self, inputs: list[Any]) -> tuple[Any, list[Any]]:
        """The output as it is returned, and what the call left in its inputs."""
        own = tree.transform(inputs, _copied)
        output = self._restored(own)
        require_outputs(self.loaded.task, output)
        return output, own

    def measured(self, inputs: list[Any]) -> tuple[Named, Work]:
        """A native run that also counts its operations and the longest reduction in it."""
        counter, fused = Work(), torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)  # a fused layer hides its products from the count
        try:
            with counter:
                named = self.native(inputs)
        finally:
            torch.backends.mha.set_fastpath_enabled(fused)
        return named, counter

    def wide(
        self, inputs: list[Any], *, noise: float = 0.0, seed: int = 0, everywhere: bool = False, within: bool = False
    ) -> Named | None:
        """In fp64, perhaps with relative noise; None when the module refuses. `everywhere` also moves zeros (to break ties); `within`
        moves the result of every operator, as roundings do, instead of the inputs."""
        dice = torch.Generator().manual_seed(seed)
        if self.refusal:
            return self._native_noisy(inputs, noise, dice, everywhere) if noise and self.refusal != MEMORY else None
        base = self._base(inputs)
        outside = 0.0 if within else noise
        arguments = tree.transform(inputs, lambda tensor: noisy(widened(tensor), outside, dice, everywhere))
        previous = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            if self._wide is None:
                self._wide = _wide_copy(self.model)
            state = {name: noisy(value.clone(), outside, dice, False) for name, value in self._wide.state_dict().items()}
            with torch.no_grad(), Widen(base) if not within else Rounding(base, noise, dice):
                output = torch.func.functional_call(self._wide, state, tuple(arguments))
            return require_outputs(self.loaded.task, output)
        except Exception as error:
            if not noise:
                self.refusal = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:200]
            return None
        finally:
            torch.set_default_dtype(previous)

    def _native_noisy(self, inputs: list[Any], noise: float, dice: torch.Generator, everywhere: bool) -> Named | None:
        """Without a wide run, conditioning shows in the task's own dtype, under noise large enough to be seen there."""

        def change(tensor: Any) -> Any:
            if not tensor.is_floating_point():
                return tensor.clone()
            visible = max(noise, 2 * float(torch.finfo(tensor.dtype).eps))
            return noisy(tensor.double(), visible, dice, everywhere).to(tensor.dtype)

        try:
            return require_outputs(self.loaded.task, self._restored(tree.transform(inputs, change)))
        except TaskError:
            return None

    def _restored(self, inputs: list[Any]) -> Any:
        output = self.loaded.forward(self.model, inputs)
        now = self.model.state_dict()
        if any(not torch.equal(now[name], value) for name, value in self._start.items() if now[name]._version):
            self.model.load_state_dict(self._start)
        return output

    def _base(self, inputs: list[Any]) -> float:
        """Precision of the widest float the task itself uses; a cast below it is a rounding that the task asks for."""
        found = [value for value in (*tree.tensors(inputs), *self.model.state_dict().values()) if value.is_floating_point()]
        return min((float(torch.finfo(value.dtype).eps) for value in found), default=float(torch.finfo(torch.float32).eps))


class Work(TorchDispatchMode):  # type: ignore[misc]
    """Counts floating-point operations of products, as their plain algorithm has them (`flops`) and as few as algebra is known to need
    (`least_flops`), and the number of terms in the longest sum (`reach`)."""

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0
        self.least_flops = 0.0
        self.reach = 1
        self.operators: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        packet = func._overloadpacket
        self.operators.add(str(packet).removeprefix("aten."))
        outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        size = max((leaf.numel() for leaf in outputs), default=0)
        if not size:
            return result
        if "scaled_dot_product" in str(packet):
            query, key = args[0], args[1]
            self._add(4 * query.numel() * key.shape[-2])
            self.reach = max(self.reach, key.shape[-2], key.shape[-1])
        elif packet in flop_registry:
            flops = int(flop_registry[packet](*args, **(kwargs or {}), out_val=result))
            self._add(flops, saved(str(packet), args))
            self.reach = max(self.reach, flops // (2 * size))
        elif "rnn_layer" in str(packet):
            steps, weights = args[0].shape[0] * args[0].shape[1], args[1].numel() + args[2].numel()
            self._add(2 * steps * weights)
            self.reach = max(self.reach, args[1].shape[-1], args[2].shape[-1])
        else:
            self.reach = max(self.reach, _terms(str(packet), args, size))
        return result

    def _add(self, flops: int, share: float = 1.0) -> None:
        self.flops += flops
        self.least_flops += share * flops


def saved(name: str, args: Any) -> float:
    """The share of a product's operations that is left when algebra saves what it is known to save in practice: Winograd's F(4, r) along
    each dimension in which a convolution's window moves step by step, Strassen's 7/8 for each halving of a product down to blocks of
    `STRASSEN`. A roofline that counts more than that is passed by honest kernels."""
    if "convolution" in name and len(args) > 6:
        window, stride = args[1].shape[2:], list(args[3])
        steps = stride * (len(window) // len(stride))
        left = [(WINOGRAD + r - 1) / (WINOGRAD * r) for r, step in zip(window, steps, strict=False) if step == 1 and r > 1]
        return float(math.prod(left))
    sizes = [tensor.shape[-2:] for tensor in args if isinstance(tensor, torch.Tensor) and tensor.dim() >= 2]
    if name.rsplit(".", 1)[-1] in ("mm", "bmm", "addmm", "baddbmm") and len(sizes) >= 2:
        least = min(*sizes[-2], *sizes[-1])
        return float(0.875 ** max(0, math.floor(math.log2(max(least, 1) / STRASSEN)))) if least >= STRASSEN else 1.0
    return 1.0


def _terms(name: str, args: Any, size: int) -> int:
    """How many terms one output element of a reducing operator adds up."""
    if not args or not isinstance(args[0], torch.Tensor) or args[0].dim() == 0:
        return 1
    first = args[0]
    if any(word in name for word in SCANS):
        dim = args[1] if len(args) > 1 and isinstance(args[1], int) else -1
        return int(first.shape[dim])
    if "layer_norm" in name:
        return math.prod(args[1])
    if "group_norm" in name and len(args) > 6:
        return int(args[4] * args[5] // max(args[6], 1))
    if any(word in name for word in ADDS):
        return int(max(1, first.numel() // size))
    return 1


class Widen(TorchDispatchMode):  # type: ignore[misc]
    """Keeps a double-precision run wide (see the module's docstring)."""

    def __init__(self, base: float) -> None:
        super().__init__()
        self._base = base

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        wanted = kwargs.get("dtype")
        if wanted is not None and wanted.is_floating_point and wanted != torch.float64:
            narrowing = float(torch.finfo(wanted).eps) > self._base
            if func is torch.ops.aten._to_copy.default and narrowing and args[0].is_floating_point():
                return func(*args, **kwargs).double()
            kwargs["dtype"] = torch.float64
        return func(*args, **kwargs)


class Rounding(Widen):
    """A wide run in which every operator's result is off by up to so much, as it is where it is rounded to the task's dtype."""

    def __init__(self, base: float, noise: float, dice: Any) -> None:
        super().__init__(base)
        self._noise, self._dice = noise, dice

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = super().__torch_dispatch__(func, types, args, kwargs)
        if func.is_view or func._schema.is_mutable or not isinstance(made, torch.Tensor) or made.dtype != torch.float64:
            return made
        return noisy(made, self._noise, self._dice, False)


def _copied(tensor: Any) -> Any:
    """A copy that lies in memory as the tensor does: `clone` makes a slice contiguous, and `view` then takes what it would refuse."""
    if tensor.layout is not torch.strided or 0 in tensor.stride() or tensor.is_contiguous():
        return tensor.clone()
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def widened(tensor: Any) -> Any:
    """A private fp64 copy (complex128 for complex); integers and booleans are only copied."""
    if tensor.is_complex():
        return tensor.to(torch.complex128, copy=True)
    return tensor.to(torch.float64, copy=True) if tensor.is_floating_point() else tensor.clone()


def noisy(tensor: Any, noise: float, dice: torch.Generator, everywhere: bool) -> Any:
    """Each element off by up to `noise`, and the whole tensor by about as much: roundings, and the drift of a running sum."""
    if not noise or not tensor.is_floating_point() or not tensor.numel():
        return tensor
    tile = torch.rand(min(TILE, tensor.numel()), generator=dice, dtype=torch.float64).mul_(2).sub_(1)
    together = 1.0 if torch.rand((), generator=dice) < 0.5 else -1.0
    factor = tile.repeat(-(-tensor.numel() // len(tile)))[: tensor.numel()].add_(together).mul_(noise).view(tensor.shape)
    if everywhere:
        finite = tensor[torch.isfinite(tensor)]
        scale = max(float(finite.square().mean().sqrt()) if finite.numel() else 0.0, 1e-30)
        return tensor + factor * scale
    return factor.add_(1.0).mul_(tensor)


def _wide_copy(model: Any) -> Any:
    """A double-precision copy; tensors that a module keeps as plain attributes are widened too."""
    wide = copy.deepcopy(model).double()
    for module in wide.modules():
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor) and value.dtype in FLOATS:
                setattr(module, name, value.double())
    return wide
