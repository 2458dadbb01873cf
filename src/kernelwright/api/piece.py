"""One piece of a graph as a callable: designed, built, and called with pointers.

In: a graph module of functional ATen operators and the inputs that came. Out: `Piece`, called like the graph module. Parameters are inputs
like all others: nothing that depends on their values is kept between calls, so a weight may change in any way.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule

from kernelwright.api import libraries
from kernelwright.compiler.backends.cpp.c_library import Library
from kernelwright.core.errors import KernelwrightError

_SYMBOL = "kernelwright_run"
_LOCAL = threading.local()
_is_contiguous = torch.Tensor.is_contiguous
_data_ptr = torch.Tensor.data_ptr


@dataclass(frozen=True)
class Recipe:
    """What a process needs to call a built piece: written beside the library, so that the next one neither designs nor builds."""

    library: str
    used: tuple[int, ...]
    """Positions of the piece's inputs that the library takes, in its order."""
    outputs: tuple[tuple[tuple[int, ...], str], ...]
    results: tuple[tuple[str, int], ...]
    """For each result of the piece ("output", k), ("input", k) or ("none", 0)."""
    workspace: int
    kept: int
    """Bytes of what is made once: tables that depend on nothing but the piece."""
    symbol: str = _SYMBOL

    @classmethod
    def read(cls, found: dict[str, Any]) -> Recipe:
        """From JSON."""
        outputs = tuple((tuple(shape), dtype) for shape, dtype in found["outputs"])
        results = tuple((kind, place) for kind, place in found["results"])
        return cls(found["library"], tuple(found["used"]), outputs, results, found["workspace"], found["kept"], found["symbol"])


class Piece:
    """A built piece. Thread-safe: temporaries lie in a workspace of the calling thread."""

    def __init__(self, recipe: Recipe, strides: Sequence[tuple[int, ...] | None]) -> None:
        """`strides` has those of results that must not be contiguous."""
        library = libraries.load(Path(recipe.library))
        self._run = getattr(library, recipe.symbol)
        self._run.restype = None
        self._run.argtypes = [ctypes.c_void_p] * 4
        self._used = recipe.used
        self._all = recipe.used == tuple(range(len(recipe.used)))
        self._shapes = [(shape, getattr(torch, dtype)) for shape, dtype in recipe.outputs]
        self._pointers = ctypes.c_void_p * len(recipe.used)
        self._targets = ctypes.c_void_p * max(1, len(recipe.outputs))
        self._results = recipe.results
        self._single = len(recipe.results) == 1 and recipe.results[0] == ("output", 0)
        self._strides = list(strides)
        self._restrided = any(s is not None for s in strides)
        self._workspace = recipe.workspace
        self._kept: int | None = None
        if recipe.kept:
            self._memory = torch.empty(recipe.kept + 64, dtype=torch.uint8)
            self._kept = _aligned(self._memory)
            prepare = getattr(library, f"{recipe.symbol}_prepare")
            prepare.argtypes, prepare.restype = [ctypes.c_void_p] * 2, None
            prepare(None, self._kept)

    def __call__(self, *args: Any) -> Any:
        given = list(args) if self._all and len(args) == len(self._used) else [args[k] for k in self._used]
        if not all(map(_is_contiguous, given)):
            given = [t if t.is_contiguous() else t.contiguous() for t in given]
        outputs = [torch.empty(shape, dtype=dtype) for shape, dtype in self._shapes]
        workspace = _workspace(self._workspace) if self._workspace else None
        self._run(self._pointers(*map(_data_ptr, given)), self._targets(*map(_data_ptr, outputs)), self._kept, workspace)
        if self._single and not self._restrided:
            return outputs[0]
        found = [outputs[k] if kind == "output" else args[k].clone() for kind, k in self._results]
        if self._restrided:
            found = [t if s is None else _restrided(t, s) for t, s in zip(found, self._strides, strict=True)]
        return found[0] if len(found) == 1 else tuple(found)


def _workspace(size: int) -> int:
    """The address of the calling thread's memory for temporaries; it grows to the largest piece."""
    block = getattr(_LOCAL, "block", None)
    if block is None or block.numel() < size + 64:
        with torch.inference_mode(False):
            block = _LOCAL.block = torch.empty(size + 64, dtype=torch.uint8)
    return _aligned(block)


def _aligned(block: Any) -> int:
    """Its first address on a cache line."""
    return int(-(-block.data_ptr() // 64) * 64)


def _restrided(tensor: Any, stride: tuple[int, ...]) -> Any:
    return torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype).copy_(tensor)


def identity(graph: GraphModule, inputs: Sequence[Any]) -> str:
    """Equal for graphs that do the same to tensors of the same kinds: layers of a network repeat."""
    names: dict[Any, str] = {}
    lines = []

    def text(value: Any) -> str:
        if isinstance(value, torch.fx.Node):
            return names[value]
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(text, value))}]"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{k}: {text(v)}' for k, v in value.items())}}}"
        return repr(value)

    for node in graph.graph.nodes:
        names[node] = f"%{len(names)}"
        lines.append(
            f"{names[node]} = {node.op} {node.target if node.op == 'call_function' else ''} {text(node.args)} {text(node.kwargs)}"
        )
    kinds = [f"{t.dtype}{list(t.shape)}{list(t.stride())}" if isinstance(t, torch.Tensor) else repr(t) for t in inputs]
    return libraries.digest(*lines, *kinds, torch.get_num_threads(), libraries.machine())


def design(graph: GraphModule, inputs: Sequence[Any], count: int = 1) -> list[Library]:
    """The Designer's best guesses as C libraries, the most promising first."""
    from kernelwright.compiler.backends.cpp.c_library import c_library
    from kernelwright.compiler.designer import design_module

    with torch.inference_mode(False):
        designs = design_module(graph, [_plain(t) for t in inputs], name="piece", limit=count)
        return [c_library(d.sketch, _SYMBOL) for d in designs[:count]]


def _plain(tensor: Any) -> Any:
    """The input as torch.export takes it: no inference tensor, no parameter; the strides decide whether a view is legal."""
    if not isinstance(tensor, torch.Tensor):
        return tensor
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)


def build(library: Library) -> Recipe:
    """The library of a piece compiled (or found on disk), and how to call it."""
    return recipe(library, tuple(int(a.source) for a in library.inputs))


def recipe(library: Library, used: tuple[int, ...]) -> Recipe:
    """The library compiled (or found on disk); `used` has the position of each of its inputs among the caller's tensors."""
    path = str(libraries.build(library.text, library.flags))
    names = {a.name: k for k, a in enumerate(library.outputs)}
    inputs = {a.name: place for a, place in zip(library.inputs, used, strict=True)}
    tree = library.returns
    leaves = tree if isinstance(tree, list) else tree["$list"] if isinstance(tree, dict) else [tree]
    results = []
    for leaf in leaves:
        if leaf in names:
            results.append(("output", names[leaf]))
        elif leaf in inputs:
            results.append(("input", inputs[leaf]))
        else:
            raise KernelwrightError(f"a result of this piece is no tensor: {leaf}")
    outputs = tuple((a.shape, a.dtype.torch_name) for a in library.outputs)
    return Recipe(path, used, outputs, tuple(results), library.workspace, library.kept, library.name)
