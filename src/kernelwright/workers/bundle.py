"""Trees of tensors as one sealed memory file plus a JSON header: how values travel between processes.

In: nested list/tuple/dict of torch.Tensor | None | bool | int | float | str. Out: `Packed(header, fd)`; `unpack` is the way
back. The file is sealed after writing, so neither side can change it later: a candidate cannot touch the referee's originals,
nor swap its own answer while it is being compared. `unpack` trusts nothing of the header. Torch is imported on use, because
the parent, which only relays bundles, has none.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import math
import mmap
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernelwright.workers.channel import ChannelGarbage

Tree = Any
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
SEALING_PAUSES = (0.01, 0.05, 0.2, 1.0, 3.0, 0.0)
_add_seals, _sleep = fcntl.fcntl, time.sleep
ALIGN = 4096
MAX_LEAVES, MAX_DEPTH, MAX_DIMS = 20_000, 12, 32
DTYPES = (
    *(
        "float32",
        "float64",
        "float16",
        "bfloat16",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "bool",
    ),
    *("complex32", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
)


@dataclass(frozen=True)
class Packed:
    """A sealed file and the header that describes it. Whoever holds it owns the descriptor."""

    header: dict[str, Any]
    fd: int

    def close(self) -> None:
        os.close(self.fd)


def pack(tree: Tree) -> Packed:
    """Write the tree into a sealed memory file; raises TypeError for what cannot travel (a sparse tensor, an object)."""
    leaves: list[tuple[Any, int]] = []
    node, size = _describe(tree, leaves, 0, 0)
    fd = os.memfd_create("bundle", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, max(size, 1))
        for tensor, offset in leaves:
            _write(fd, tensor, offset)
        _seal(fd)
    except BaseException:
        os.close(fd)
        raise
    return Packed({"size": max(size, 1), "tree": node}, fd)


def filled(tree: Tree, fill: Callable[[list[Any]], None]) -> Packed:
    """A bundle whose contiguous tensors are written where they travel, so that a gigabyte is there once: `tree` has them on torch's device
    "meta", `fill` gets them, in order, in the file's own memory."""
    import torch

    leaves: list[tuple[Any, int]] = []
    node, size = _describe(tree, leaves, 0, 0, device="meta")
    fd = os.memfd_create("bundle", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, max(size, 1))
        memory = mmap.mmap(fd, max(size, 1), flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        fill([torch.frombuffer(memory, dtype=one.dtype, count=one.numel(), offset=at).view(one.shape) for one, at in leaves])
        memory.close()
        _seal(fd)
    except BaseException:
        os.close(fd)
        raise
    return Packed({"size": max(size, 1), "tree": node}, fd)


def _seal(fd: int) -> None:
    """Nobody can change the file any more. The kernel refuses (EBUSY) while it holds one of the pages itself, to move or merge it: that
    passes, and cost a verdict once."""
    for pause in SEALING_PAUSES:
        try:
            _add_seals(fd, fcntl.F_ADD_SEALS, SEALS | fcntl.F_SEAL_SEAL)
        except OSError as error:
            if error.errno != errno.EBUSY or not pause:
                raise
            _sleep(pause)
        else:
            return


def unpack(header: dict[str, Any], fd: int, *, writable: bool = False) -> Tree:
    """Rebuild the tree. Without `writable` the tensors look into the file (a private mapping: a write stays in this process);
    with it they own fresh memory of the same strides. The descriptor stays the caller's. Raises ChannelGarbage for anything
    impossible."""
    try:
        if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & SEALS != SEALS:
            raise ChannelGarbage("a bundle is not sealed")
        size = os.fstat(fd).st_size
        if header.get("size") != size or size < 1:
            raise ChannelGarbage("a bundle has another size than its header says")
        memory = mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    except (OSError, ValueError, AttributeError) as error:
        raise ChannelGarbage(f"a bundle cannot be mapped: {error}") from error
    count = [0]
    tree = _rebuild(header.get("tree"), memory, size, count, 0)
    return clone(tree) if writable else tree


def same(first: dict[str, Any], first_fd: int, second: dict[str, Any], second_fd: int) -> bool:
    """Whether two bundles hold the same structure, layout and bytes. Needs no torch, so the parent can ask it itself."""
    if first.get("tree") != second.get("tree"):
        return False
    views = []
    try:
        for fd in (first_fd, second_fd):
            # Sealed, or a hostile writer could shorten the file under our mapping.
            if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & SEALS != SEALS:
                raise ChannelGarbage("a bundle is not sealed")
            views.append(mmap.mmap(fd, os.fstat(fd).st_size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ))
    except (OSError, ValueError) as error:
        raise ChannelGarbage(f"a bundle cannot be mapped: {error}") from error
    try:
        if len(views[0]) != len(views[1]):
            return False
        with memoryview(views[0]) as one, memoryview(views[1]) as other:
            return _equal_bytes(one, other)
    finally:
        for view in views:
            view.close()


def digest(header: dict[str, Any], fd: int) -> bytes:
    """Structure, layout and bytes of a bundle as one number: what is kept of an output too large to be kept itself."""
    found = hashlib.sha256(json.dumps(header.get("tree")).encode())
    if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & SEALS != SEALS:
        raise ChannelGarbage("a bundle is not sealed")
    try:
        with (
            mmap.mmap(fd, os.fstat(fd).st_size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ) as memory,
            memoryview(memory) as view,
        ):
            found.update(view)
    except (OSError, ValueError) as error:
        raise ChannelGarbage(f"a bundle cannot be mapped: {error}") from error
    return found.digest()


def _equal_bytes(one: memoryview, other: memoryview) -> bool:
    """In pieces, so that comparing needs little memory (memoryview's own comparison works element by element)."""
    step = 1 << 22
    return all(
        one[start : start + step].tobytes() == other[start : start + step].tobytes() for start in range(0, len(one), step)
    )


def clone(tree: Tree) -> Tree:
    """A deep copy in fresh ordinary memory that keeps every tensor's strides (also those with gaps and of expanded tensors)."""
    import torch

    if isinstance(tree, torch.Tensor):
        return _fresh(tree)
    if isinstance(tree, list):
        return [clone(item) for item in tree]
    if isinstance(tree, tuple):
        return tuple(clone(item) for item in tree)
    if isinstance(tree, dict):
        return {key: clone(item) for key, item in tree.items()}
    return tree


def tensors(tree: Tree) -> list[Any]:
    """All tensors of a tree, in order."""
    import torch

    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        return [tensor for item in tree for tensor in tensors(item)]
    return []


def _span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first to the last that the view touches."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def _describe(tree: Tree, leaves: list[tuple[Any, int]], offset: int, depth: int, device: str = "cpu") -> tuple[Any, int]:
    """The JSON node of a subtree, and the first free byte after its tensors."""
    import torch

    if depth > MAX_DEPTH or len(leaves) > MAX_LEAVES:
        raise TypeError("a value is nested too deeply or has too many tensors")
    if isinstance(tree, torch.Tensor):
        name = str(tree.dtype).removeprefix("torch.")
        if tree.layout is not torch.strided or tree.device.type != device or name not in DTYPES:
            raise TypeError(f"a {tree.layout} tensor of {name} on {tree.device} cannot be passed")
        tensor = tree.detach().resolve_conj().resolve_neg()
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        offset = -(-offset // ALIGN) * ALIGN
        leaves.append((tensor, offset))
        return {"t": [name, shape, strides, offset]}, offset + _span(shape, strides) * tensor.element_size()
    if isinstance(tree, float):
        return {"f": tree.hex()}, offset
    if tree is None or isinstance(tree, bool | int | str):
        return {"v": tree}, offset
    nodes = []
    if isinstance(tree, list | tuple):
        for item in tree:
            node, offset = _describe(item, leaves, offset, depth + 1, device)
            nodes.append(node)
        return {"l" if isinstance(tree, list) else "u": nodes}, offset
    if isinstance(tree, dict):
        for key, item in tree.items():
            if not isinstance(key, str | int):
                raise TypeError(f"a dictionary key of type {type(key).__name__} cannot be passed")
            node, offset = _describe(item, leaves, offset, depth + 1, device)
            nodes.append([key, node])
        return {"d": nodes}, offset
    raise TypeError(f"a value of type {type(tree).__name__} cannot be passed")


def _write(fd: int, tensor: Any, offset: int) -> None:
    """Put one tensor's elements at their place; memory between the elements of a view is left zero, so nothing else leaks."""
    import torch

    if tensor.numel() == 0:
        return
    if tensor.is_contiguous():
        data = memoryview(tensor.reshape(-1).view(torch.uint8).numpy())
        while data:
            written = os.pwrite(fd, data[: 1 << 30], offset)
            data, offset = data[written:], offset + written
        return
    span = _span(tuple(tensor.shape), tuple(tensor.stride()))
    length = offset + span * tensor.element_size()
    memory = mmap.mmap(fd, length, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    flat = torch.frombuffer(memory, dtype=tensor.dtype, count=span, offset=offset)
    _copy_strided(flat, tensor)
    del flat
    memory.close()


def _copy_strided(flat: Any, tensor: Any) -> None:
    """Copy the tensor into `flat` under its own strides. A dimension of stride 0 is written once; any other overlap is copied
    as one block."""
    import torch

    source = tensor
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[dim] > 1:
            source = source.narrow(dim, 0, 1)
    try:
        flat.as_strided(source.shape, source.stride()).copy_(source)
    except RuntimeError:
        flat.copy_(torch.as_strided(tensor, (flat.numel(),), (1,)))


def _fresh(tensor: Any) -> Any:
    import torch

    tensor = tensor.detach()
    flat = torch.zeros(_span(tuple(tensor.shape), tuple(tensor.stride())), dtype=tensor.dtype)
    if tensor.numel():
        _copy_strided(flat, tensor)
    return flat.as_strided(tensor.shape, tensor.stride())


def _rebuild(node: Any, memory: mmap.mmap, size: int, count: list[int], depth: int) -> Tree:
    count[0] += 1
    if depth > MAX_DEPTH or count[0] > MAX_LEAVES or not isinstance(node, dict) or len(node) != 1:
        raise ChannelGarbage("a bundle's header is malformed")
    ((kind, value),) = node.items()
    if kind == "t":
        return _tensor(value, memory, size)
    if kind == "v" and (value is None or isinstance(value, bool | int | str)):
        return value
    if kind == "f" and isinstance(value, str):
        try:
            return float.fromhex(value)
        except (ValueError, OverflowError) as error:
            raise ChannelGarbage("a bundle holds a malformed number") from error
    if kind in ("l", "u") and isinstance(value, list):
        items = [_rebuild(item, memory, size, count, depth + 1) for item in value]
        return items if kind == "l" else tuple(items)
    if kind == "d" and isinstance(value, list):
        result = {}
        for entry in value:
            if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str | int)):
                raise ChannelGarbage("a bundle holds a malformed dictionary")
            result[entry[0]] = _rebuild(entry[1], memory, size, count, depth + 1)
        return result
    raise ChannelGarbage("a bundle's header is malformed")


def _tensor(value: Any, memory: mmap.mmap, size: int) -> Any:
    import torch

    if not (isinstance(value, list | tuple) and len(value) == 4):
        raise ChannelGarbage("a bundle holds a malformed tensor")
    name, shape, strides, offset = value
    numbers = isinstance(shape, list | tuple) and isinstance(strides, list | tuple) and len(shape) == len(strides) <= MAX_DIMS
    if name not in DTYPES or not numbers or not all(_whole(n) for n in (*shape, *strides, offset)):
        raise ChannelGarbage("a bundle holds a malformed tensor")
    dtype = getattr(torch, name)
    span = _span(tuple(shape), tuple(strides))
    if span and (offset % dtype.itemsize or offset + span * dtype.itemsize > size):
        raise ChannelGarbage("a tensor reaches beyond its bundle")
    # A stride of 0 makes a tiny file describe a huge tensor: comparing it would exhaust the referee's memory.
    if math.prod(shape) * dtype.itemsize > 64 * max(size, 1 << 20):
        raise ChannelGarbage("a tensor is far larger than its bundle")
    flat = torch.frombuffer(memory, dtype=dtype, count=span, offset=offset) if span else torch.empty(0, dtype=dtype)
    return flat.as_strided(shape, strides)


def _whole(number: Any) -> bool:
    return type(number) is int and 0 <= number < 1 << 48
