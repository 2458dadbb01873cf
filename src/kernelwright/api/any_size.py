"""One kernel for all sizes of a graph with symbols, where the Designer can make one for the whole of it.

In: Dynamo's graph with symbolic sizes and the real inputs of a call. Out: a callable like the graph for any of its sizes, or a
KernelwrightError that says why not. Whether it is right and faster at a size, `by_size` asks. What changes its inputs, draws random
numbers or gives back views of its inputs is left alone: here no AOTAutograd puts that right.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule

from kernelwright.api import libraries
from kernelwright.api.bounds import tensors
from kernelwright.core.errors import UnsupportedOperator
from kernelwright.core.folders import cache_folder
from kernelwright.core.task.dynamic import Dynamic, SizeSymbol


@dataclass(frozen=True)
class Symbols:
    """Which inputs are symbols themselves, and which axes of which tensors are."""

    numbers: tuple[tuple[int, str], ...]
    """Position among the graph's inputs, and the symbol."""
    axes: tuple[tuple[int, int, str, bool], ...]
    """Position among the tensors of the graph's inputs, axis, the size, and whether it is a symbol of its own."""

    @classmethod
    def of(cls, graph: GraphModule) -> Symbols:
        """From what Dynamo notes about the inputs of its graph; the tensors that it shows to a backend have plain sizes."""
        numbers, axes, place = [], [], 0
        for k, node in enumerate(n for n in graph.graph.nodes if n.op == "placeholder"):
            value = node.meta.get("example_value")
            if isinstance(value, torch.SymInt):
                numbers.append((k, str(value.node.expr)))
            elif isinstance(value, torch.Tensor):
                for axis, extent in enumerate(value.shape):
                    if isinstance(extent, torch.SymInt) and not extent.node.expr.is_number:
                        axes.append((place, axis, str(extent.node.expr), bool(extent.node.expr.is_Symbol)))
                place += 1
        return cls(tuple(numbers), tuple(axes))

    def dynamic(self, given: Sequence[torch.Tensor]) -> Dynamic:
        """The sizes that vary, with those of a call as examples."""
        symbols: dict[str, SizeSymbol] = {}
        dims = []
        for leaf, axis, size, _ in self.axes:
            known = symbols.setdefault(size, SizeSymbol(f"n{len(symbols)}", 2, None, 1, int(given[leaf].shape[axis])))
            dims.append((leaf, axis, known.name))
        return Dynamic(tuple(symbols.values()), tuple(dims))


def kernel_for_any_size(graph: GraphModule, symbols: Symbols, args: Sequence[Any]) -> Callable[..., Any]:
    """The kernel as a callable with the graph's inputs; its results are a tuple, as the graph's are."""
    from torch._dynamo.convert_frame import compile_lock

    from kernelwright.compiler.backends.cpp import LANGUAGE
    from kernelwright.compiler.designer import design_module

    if any(isinstance(a, torch.Tensor) and not a.is_contiguous() for a in args):
        raise UnsupportedOperator("this graph", "an input of varying size is not contiguous")
    _require_pure(graph, args)
    alone = _of_tensors(graph, symbols)
    given = [a for a in args if isinstance(a, torch.Tensor)]
    if len(given) + len(symbols.numbers) != len(args):
        raise UnsupportedOperator("this graph", "an input is no tensor")
    with torch.inference_mode(False), compile_lock:
        plain = [torch.empty(t.shape, dtype=t.dtype) for t in given]
        design = design_module(alone, plain, name="graph", limit=1, dynamic=symbols.dynamic(plain))[0]
    text = LANGUAGE.lower(design.sketch)
    file = cache_folder("any_size") / f"{libraries.digest(text, libraries.machine())}.py"
    if not file.exists():
        libraries.write(file, text)
    spec = importlib.util.spec_from_file_location(f"kernelwright_any_size_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = module.ModelNew()
    places = [k for k, a in enumerate(args) if isinstance(a, torch.Tensor)]

    def run(*inputs: Any) -> Any:
        return tuple(tensors(kernel(*(inputs[k] for k in places))))

    return run


def _require_pure(graph: GraphModule, args: Sequence[Any]) -> None:
    """Raises where a call does more than compute new tensors from its inputs."""
    with torch.inference_mode(False), torch.no_grad():
        copies = [a.detach().clone() if isinstance(a, torch.Tensor) else a for a in args]
        kept = [c._version if isinstance(c, torch.Tensor) else 0 for c in copies]
        homes = {c.untyped_storage().data_ptr() for c in copies if isinstance(c, torch.Tensor)}
        state = torch.get_rng_state()
        with torch.random.fork_rng(devices=[]):
            found = tensors(graph(*copies))
            drawn = not torch.equal(state, torch.get_rng_state())
    if drawn:
        raise UnsupportedOperator("this graph", "it draws random numbers")
    if kept != [c._version if isinstance(c, torch.Tensor) else 0 for c in copies]:
        raise UnsupportedOperator("this graph", "it changes an input in place")
    if not all(isinstance(t, torch.Tensor) for t in found):
        raise UnsupportedOperator("this graph", "a result is no tensor")
    if any(not t.is_contiguous() or t.untyped_storage().data_ptr() in homes for t in found):
        raise UnsupportedOperator("this graph", "a result is a view")
    if len({t.untyped_storage().data_ptr() for t in found}) != len(found):
        raise UnsupportedOperator("this graph", "two results share their memory")


def _of_tensors(graph: GraphModule, symbols: Symbols) -> GraphModule:
    """The graph with tensors as its only inputs: a symbol is read off a tensor that has it."""
    new = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    new.output(new.graph_copy(graph.graph, copies))
    made = GraphModule(graph, new)
    placeholders = [n for n in new.nodes if n.op == "placeholder"]
    numbers = dict(symbols.numbers)
    held = [n for k, n in enumerate(placeholders) if k not in numbers]
    where = {size: (held[leaf], axis) for leaf, axis, size, own in symbols.axes if own}
    for place, size in symbols.numbers:
        node = placeholders[place]
        if size not in where and node.users:
            raise UnsupportedOperator("this graph", "a number that no input has as a size varies")
        if node.users:
            with new.inserting_after(placeholders[-1]):
                node.replace_all_uses_with(new.call_function(torch.ops.aten.sym_size.int, where[size]))
    for place, _ in symbols.numbers:
        new.erase_node(placeholders[place])
    made.recompile()
    return made
