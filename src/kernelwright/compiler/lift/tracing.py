"""Running a forward once to see what it does: tensors in, a `Trace` out.

`Tracer` is a dispatch mode of torch: every ATen operator that forward calls passes through it. What only looks at memory (views) is
not put down, since launches name tensors by where they lie; allocations become buffers; fills and copies become steps; everything
else becomes an `Operation`. Launches come from the language's recorder through `launch`; whether they are executed, too, is its
affair. A forward that looks at the numbers (`.item()`) is refused: it may do something else with others.
"""

from __future__ import annotations

import ctypes
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from kernelwright.compiler.lift.launches import Buffer, Copy, Fill, Launch, Operation, Role, Step, Trace, View
from kernelwright.core.dtypes import DType, from_torch
from kernelwright.core.errors import CannotLift
from kernelwright.sketch.interpret.operations import TORCH_DTYPE

MODULE = "kernel"
MOST_CONSTANTS = 1 << 16
"""Elements of a table that is written into the sketch as numbers."""
_EMPTY = {"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::new_empty_strided",
          "aten::empty_permuted"}  # fmt: skip
_FILLED = {"aten::zeros_like", "aten::ones_like", "aten::full_like", "aten::new_zeros", "aten::new_ones", "aten::new_full"}
_COPIES = {"aten::clone", "aten::_to_copy", "aten::contiguous"}


@dataclass(frozen=True)
class Pointer:
    """An address among the arguments of a launch; if no tensor of torch lies there, the allocation that has it, and its elements' type."""

    address: int
    begin: int = 0
    size: int = 0
    type: str = "f32"
    raw: bool = False
    """A variable of the device's: what host code wrote there may be given as bytes."""


def calling_line() -> int:
    """The line of the kernel file that is being run, by the name under which compiler/lift/child.py imports it."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != MODULE:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 0


class Tracer(TorchDispatchMode):  # type: ignore[misc]
    """One call of forward. Tensors that come from outside are named with `own` before it."""

    def __init__(self) -> None:
        super().__init__()
        self.buffers: dict[str, Buffer] = {}
        self.steps: list[Step] = []
        self.notes: list[str] = []
        self.refusal: CannotLift | None = None
        """The first one: foreign code between us and our caller (C++ that called torch) may turn it into something else."""
        self._names: dict[int, str] = {}
        self._starts: dict[str, int] = {}
        self._alive: list[Any] = []
        self._allocated: list[str] = []
        self._loaded: dict[int, bytearray] = {}
        """What host code wrote into allocations of its own, as bytes that come from no tensor."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled in here; torch's guard against it would import its compiler (seconds)."""
        return False

    # ---- memory

    def own(self, tensor: torch.Tensor, role: Role, name: str, source: str = "", values: tuple[Any, ...] = ()) -> None:
        """Makes a buffer of a tensor whose memory is not known yet."""
        key = tensor.untyped_storage().data_ptr()
        if (dtype := from_torch(tensor.dtype)) is None:
            raise CannotLift(f"{name} is {str(tensor.dtype).removeprefix('torch.')}, which a sketch has not")
        if not tensor.numel():
            raise CannotLift(f"{name} has no elements")
        if key in self._names:
            return
        order = sorted(range(tensor.ndim), key=lambda k: (-tensor.stride(k), k))
        shape = tuple(tensor.shape[k] for k in order)
        if not tensor.permute(order).is_contiguous():
            raise CannotLift(f"{name} {list(tensor.shape)} with strides {list(tensor.stride())} is not dense")
        plain = order == list(range(tensor.ndim)) or tensor.is_contiguous()
        self.buffers[name] = Buffer(
            name,
            role,
            tuple(tensor.shape) if plain else shape,
            dtype,
            source,
            None if plain else tuple(order),
            values,
        )
        self._names[key] = name
        self._starts[name] = tensor.storage_offset()
        self._alive.append(tensor)

    def _fresh(self, tensor: torch.Tensor, role: Role = "temp", values: tuple[Any, ...] = ()) -> View:
        number = sum(buffer.role == role for buffer in self.buffers.values())
        self.own(tensor, role, f"{role}{number}", source=f"{role}{number}" if role == "constant" else "", values=values)
        return self.view(tensor)

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor's memory is a buffer."""
        return tensor.untyped_storage().data_ptr() in self._names

    def view(self, tensor: torch.Tensor) -> View:
        """Where a tensor lies; one that was made without our seeing it becomes a constant."""
        if not self.knows(tensor):
            return self._constant(tensor)
        name = self._names[tensor.untyped_storage().data_ptr()]
        if from_torch(tensor.dtype) is not self.buffers[name].dtype:
            raise CannotLift(f"the memory of {name} ({self.buffers[name].dtype.value}) is looked at as {tensor.dtype}")
        return View(name, tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset() - self._starts[name])

    def at(self, address: int) -> View | None:
        """What a bare pointer of a launch points to; None for memory that no tensor of this call owns."""
        for tensor in self._alive:
            storage = tensor.untyped_storage()
            start = storage.data_ptr()
            if start <= address < start + storage.nbytes():
                whole = self.view(tensor)
                elements = (address - start) // tensor.element_size() - tensor.storage_offset()
                return View(whole.buffer, (), (), whole.offset + elements)
        return None

    def _allocation(self, pointer: Pointer) -> View | None:
        """Memory that the file's own host code allocated: a buffer of elements of the type that is first seen there."""
        if not pointer.size:
            return None
        name = self._names.get(pointer.begin)
        if name is None:
            dtype = DType(pointer.type)
            count = max(pointer.size // dtype.size, 1)
            values: tuple[Any, ...] = ()
            if pointer.begin in self._loaded:
                raw = self._loaded.pop(pointer.begin)
                values = tuple(torch.frombuffer(raw, dtype=TORCH_DTYPE[dtype])[:count].tolist())
                if count > MOST_CONSTANTS:
                    raise CannotLift(f"host code makes a table of {count:,} numbers, too many for a sketch")
            role: Role = "constant" if values else "temp"
            name = f"{role}{sum(buffer.role == role for buffer in self.buffers.values())}"
            self._names[pointer.begin] = name
            self.buffers[name] = Buffer(name, role, (count,), dtype, name if values else "", None, values)
            self._allocated.append(name)
        return View(name, (), (), (pointer.address - pointer.begin) // self.buffers[name].dtype.size)

    def moved(self, to: Pointer, source: Pointer | None, size: int, value: int) -> None:
        """Puts down a copy of so many bytes, or a fill with bytes of this value, that host code asks of the device's library."""
        with self._remembered():
            if source is None:
                self._filled(to, size, value)
                return
            start = self.at(source.address) or (self._allocation(source) if source.begin in self._names else None)
            if start is None:  # numbers that host code made itself
                if to.size and to.begin not in self._names:
                    whole = self._loaded.setdefault(to.begin, bytearray(to.size))
                    at = to.address - to.begin
                    whole[at : at + size] = ctypes.string_at(source.address, size)
                    return
                start = self._constant_bytes(source.address, size, to)
            dtype = self.buffers[start.buffer].dtype
            goal = self.at(to.address) or self._allocation(Pointer(to.address, to.begin, to.size, dtype.value))
            if goal is None:
                raise CannotLift(
                    "host code copies what kernels computed into memory of its own: what becomes of it there is not seen"
                )
            count = size // dtype.size
            self.steps.append(
                Copy(View(goal.buffer, (count,), (1,), goal.offset), View(start.buffer, (count,), (1,), start.offset))
            )

    def _filled(self, to: Pointer, size: int, value: int) -> None:
        goal = self.at(to.address) or (self._allocation(to) if to.begin in self._names else None)
        if goal is None:
            if to.size:
                whole = self._loaded.setdefault(to.begin, bytearray(to.size))
                at = to.address - to.begin
                whole[at : at + size] = bytes([value & 255]) * size
            return
        dtype = self.buffers[goal.buffer].dtype
        number = torch.frombuffer(bytearray([value & 255] * dtype.size), dtype=TORCH_DTYPE[dtype])[0].item()
        self.steps.append(Fill(View(goal.buffer, (size // dtype.size,), (1,), goal.offset), number))

    def _constant_bytes(self, address: int, size: int, to: Pointer) -> View:
        """Numbers of host code that go into a tensor or an allocation that is in use."""
        goal = self.at(to.address) or self._allocation(to)
        if goal is None:
            raise CannotLift("host code copies between memory that no tensor owns")
        dtype = self.buffers[goal.buffer].dtype
        return self._constant(torch.frombuffer(bytearray(ctypes.string_at(address, size)), dtype=TORCH_DTYPE[dtype]))

    def _constant(self, tensor: torch.Tensor) -> View:
        with torch.utils._python_dispatch._disable_current_modes():
            flat = tensor.detach().contiguous().reshape(-1)
            first = flat[0].item() if flat.numel() else 0
            same = bool((flat == first).all()) or (first != first and bool(flat.isnan().all()))
            dense = tensor if same else tensor.detach().clone(memory_format=torch.contiguous_format)
            if same:
                made = self._fresh(tensor)
                self.steps.append(Fill(made, first))
                return made
            if flat.numel() > MOST_CONSTANTS:
                raise CannotLift(
                    f"forward makes a table of {flat.numel():,} numbers {list(tensor.shape)}, too many for a sketch"
                )
            self._alive.append(tensor)
            view = self._fresh(dense, "constant", tuple(flat.tolist()))
            self._names[tensor.untyped_storage().data_ptr()] = view.buffer
            self._starts[view.buffer] = tensor.storage_offset()
            return self.view(tensor)

    # ---- what happens

    def launch(
        self, name: str, kernel: Any, grid: tuple[int, ...], arguments: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        """Puts down a kernel launch."""
        with self._remembered():
            views = {key: self._argument(value) for key, value in arguments.items()}
            self.steps.append(Launch(name, kernel, grid, views, dict(options)))

    @contextmanager
    def _remembered(self) -> Iterator[None]:
        try:
            yield
        except CannotLift as refusal:
            self.refusal = self.refusal or refusal
            raise

    def _argument(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.view(value)
        if isinstance(value, Pointer):
            if value.raw and value.begin in self._loaded:
                return bytes(self._loaded[value.begin])
            return self.at(value.address) or self._allocation(value)
        if type(value) in (tuple, list):
            return type(value)(self._argument(item) for item in value)
        return value

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with self._remembered():
            return self._called(func, args, kwargs or {})

    def _called(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = func._schema.name
        given = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        known = [tensor for tensor in given if self.knows(tensor)]
        if name in ("aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero") and known:
            raise CannotLift(
                "forward looks at the numbers in a tensor (.item(), if on a tensor): what it does depends on them",
                line=calling_line(),
            )
        result = func(*args, **kwargs)
        if func._schema.is_mutable:
            self._mutation(func, args, kwargs)
            return result
        fresh = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and not self.knows(leaf)]
        if not fresh or not all(leaf.numel() for leaf in fresh):
            return result
        aliases = {tensor.untyped_storage().data_ptr() for tensor in given}
        if name in _EMPTY:
            self._fresh(fresh[0])
        elif torch.Tag.nondeterministic_seeded in func.tags:
            self.steps.append(Operation(str(func), (), {}, tuple(self._fresh(leaf) for leaf in fresh), calling_line()))
        elif any(leaf.untyped_storage().data_ptr() in aliases for leaf in fresh) or not known or name in _FILLED:
            self._alive.extend(fresh)  # made of nothing but numbers: a constant, once somebody asks for it
        elif name in _COPIES:
            source = self.view(given[0])
            self.steps.append(Copy(self._fresh(fresh[0]), source))
        else:
            views = pytree.tree_map(lambda leaf: self.view(leaf) if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs))
            self.steps.append(
                Operation(str(func), tuple(views[0]), views[1], tuple(self._fresh(leaf) for leaf in fresh), calling_line())
            )
        return result

    def _mutation(self, func: Any, args: Any, kwargs: Any) -> None:
        name = func._schema.name
        target = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if target is None or not target.numel():
            return
        if not self.knows(target) and not any(
            isinstance(leaf, torch.Tensor) and self.knows(leaf) for leaf in pytree.tree_leaves((args, kwargs))
        ):
            return  # still a constant
        view = self.view(target)
        if name == "aten::zero_":
            self.steps.append(Fill(view, 0))
        elif name == "aten::fill_" and not isinstance(args[1], torch.Tensor):
            self.steps.append(Fill(view, args[1]))
        elif name == "aten::copy_":
            self.steps.append(Copy(view, self.view(args[1])))
        else:
            rest = pytree.tree_map(lambda leaf: self.view(leaf) if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs))
            self.steps.append(Operation(str(func), tuple(rest[0]), rest[1], (view,), calling_line()))

    def trace(self, returned: Any) -> Trace:
        """Everything that happened, with forward's result."""
        returns = pytree.tree_map(lambda leaf: self.view(leaf) if isinstance(leaf, torch.Tensor) else leaf, returned)
        shapes = {buffer.elements: buffer.shape for buffer in self.buffers.values() if len(buffer.shape) > 1}
        for name in self._allocated:  # most are of the size of a tensor, and then of its shape
            buffer = self.buffers[name]
            self.buffers[name] = replace(buffer, shape=shapes.get(buffer.elements, buffer.shape))
        return Trace(dict(self.buffers), tuple(self.steps), returns, tuple(self.notes))
