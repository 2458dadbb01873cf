"""A live module and example inputs → a graph of lazy values.

`torch.export` records the module with its shapes, decompositions bring it to core ATen (attention stays whole), and the operator
tables build values. What has no rule is decomposed further where torch knows how; else it is named in `UnsupportedOperator`.
"""

from __future__ import annotations

import contextlib
import operator
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kernelwright.compiler.frontend.aten_graph import Recorded, recorded
from kernelwright.compiler.frontend.constants import collapsed, recognised
from kernelwright.compiler.frontend.duplicates import merge_duplicates
from kernelwright.compiler.frontend.dynamic_shapes import Sizes, dynamic_shapes, recording_inputs
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.captured import Captured
from kernelwright.compiler.graph.symbolic import Extent, size_index
from kernelwright.core.dtypes import from_torch
from kernelwright.core.errors import UnsupportedOperator
from kernelwright.core.operations import of_torch
from kernelwright.core.task.dynamic import Dynamic
from kernelwright.sketch import nodes
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import DType

if TYPE_CHECKING:
    import torch

SMALL_CONSTANT = 65536  # elements of a constant tensor that may be written into a sketch


def dtype_of(dtype: torch.dtype) -> DType:
    """The sketch's name of a torch dtype."""
    found = from_torch(dtype)
    if found is None:
        raise UnsupportedOperator(str(dtype), "this dtype has no place in a sketch")
    return found


def exported(
    model: torch.nn.Module, inputs: Sequence[Any], keywords: dict[str, Any] | None = None, dynamic: Dynamic | None = None
) -> torch.export.ExportedProgram | Recorded:
    """The module as an ATen graph, with everything decomposed that no rule of ours wants whole."""
    import torch

    from kernelwright.compiler.frontend.operators import find

    functional = recorded(model, _kept, find)
    if functional is not None:
        merge_duplicates(functional.graph)
        return functional
    with warnings.catch_warnings(), torch.no_grad(), _attributes_as_buffers(model):
        warnings.simplefilter("ignore")
        try:
            varying: dict[str, Any] = {}
            if dynamic:
                inputs = recording_inputs(inputs, dynamic)
                varying = {"dynamic_shapes": dynamic_shapes(model, inputs, keywords or {}, dynamic)}
            program = torch.export.export(model, tuple(inputs), keywords or {}, strict=False, **varying)
            table = torch.export.default_decompositions()
            keep = [o for o in table if str(o).startswith("aten.") and _kept(str(o))]
            for o in keep:
                del table[o]
            program = program.run_decompositions(table)
            for _ in range(3):
                missing = {n.target for n in program.graph.nodes if n.op == "call_function" and _needs(n.target, find)}
                further = {o: torch._decomp.decomposition_table[o] for o in missing if o in torch._decomp.decomposition_table}
                if not further:
                    break
                program = program.run_decompositions(further)
        except Exception as e:  # the module's own code runs here, and torch.export raises whatever it meets
            reason = (str(e).strip().splitlines() or [type(e).__name__])[0]
            raise UnsupportedOperator("this module", f"torch.export cannot record it: {reason[:300]}") from e
    merge_duplicates(program.graph)
    return program


@contextlib.contextmanager
def _attributes_as_buffers(model: torch.nn.Module) -> Iterator[None]:
    """Tensors that a module keeps as plain attributes are buffers while it is recorded: torch.export lets forward change only those
    (a hidden state, a cache). Their values are put back afterwards."""
    import torch

    kept: list[tuple[torch.nn.Module, str, torch.Tensor]] = []
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor) and name not in module._buffers:
                kept.append((module, name, value))
                delattr(module, name)
                module.register_buffer(name, value.detach().clone(), persistent=False)
    try:
        yield
    finally:
        for module, name, value in kept:
            del module._buffers[name]
            module._non_persistent_buffers_set.discard(name)
            setattr(module, name, value)


_WHOLE = (
    "scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu tril triu logsumexp std var prelu "
    "pixel_shuffle pixel_unshuffle bucketize roll diag_embed im2col hardswish hardsigmoid mish silu softplus elu selu celu cummax "
    "cummin logcumsumexp linear one_hot rms_norm diagonal_copy _adaptive_avg_pool3d adaptive_avg_pool1d "
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_bilinear2d upsample_linear1d "
    "searchsorted hypot stack lstm gru rnn_tanh rnn_relu"
)
WHOLE = frozenset(_WHOLE.split())


def _kept(name: str) -> bool:
    plain = name.split(".")[1]
    return plain in WHOLE or of_torch(plain) is not None


def _needs(target: Any, find: Any) -> bool:
    return hasattr(target, "_schema") and find(str(target)) is None


def capture(
    model: torch.nn.Module, inputs: Sequence[Any], keywords: dict[str, Any] | None = None, *, track: str = "pure",
    drawn: frozenset[str] = frozenset(), kernels_are_calls: bool = True, dynamic: Dynamic | None = None,
) -> Captured:  # fmt: skip
    """Records a module on example inputs and builds the graph of values. On track hybrid, library.py takes what has no rule. `drawn`
    names tensors outside the state_dict that another construction would draw anew: a kernel cannot know them. `kernels_are_calls`:
    they are called, not launched, so that several cost no more than one. `dynamic`: sizes of the inputs that vary."""
    program = exported(model, inputs, keywords, dynamic)
    sizes = Sizes.of(program, inputs, dynamic) if dynamic else Sizes()
    return Builder(program, track, drawn, kernels_are_calls, sizes).build()


class Builder:
    """Walks an exported program once."""

    def __init__(
        self, program: torch.export.ExportedProgram | Recorded, track: str, drawn: frozenset[str], kernels_are_calls: bool,
        sizes: Sizes,
    ) -> None:  # fmt: skip
        self.program = program
        self.sizes = sizes
        self.kernels_are_calls = kernels_are_calls
        self.track = track
        self.drawn = drawn
        self.changing: dict[int, str] = {}
        self.refused: dict[int, UnsupportedOperator] = {}
        self.unknown: list[v.Value] = []  # kept, so that their ids stay theirs
        self.tensors: list[nodes.Tensor] = []
        self.constants: list[tuple[str, tuple[float | int | bool, ...]]] = []
        self.known: dict[str, Any] = {}
        self.names = Names(set(sizes.region.sizes))

    def build(self) -> Captured:
        from torch.export.graph_signature import OutputKind

        outputs: Any = None
        self._placeholders()
        for node in self.program.graph.nodes:
            if node.op == "call_function":
                self.known[node.name] = self._call(node)
            elif node.op == "get_attr":
                self.known[node.name] = self._constant(node.name, getattr(self.program.graph_module, node.target))
            elif node.op == "output":
                outputs = node.args[0]
        signature = self.program.graph_signature
        tokens = sum(spec.kind == OutputKind.TOKEN for spec in signature.output_specs)
        others = len(signature.buffers_to_mutate) + len(signature.user_inputs_to_mutate) + tokens
        flat = [self._argument(o) for o in outputs][others:]
        self._refuse_memory(flat)
        for node in outputs[others:]:
            if hasattr(node, "meta") and hasattr(node.meta.get("val"), "dtype"):
                dtype_of(node.meta["val"].dtype)
        return Captured(self.tensors, self.constants, flat, self._structure(len(flat)), region=self.sizes.region)

    def _refuse_memory(self, results: list[Any]) -> None:
        """A state that forward overwrites is no matter; one that it reads before would make every call another function."""
        for value in v.topological([r for r in results if isinstance(r, v.Value)]):
            if id(value) in self.refused:
                raise self.refused[id(value)]
            if id(value) in self.changing:
                name = self.changing[id(value)]
                raise UnsupportedOperator("a state kept between calls", f"forward reads {name} and changes it")

    def _structure(self, count: int) -> Any:
        """forward's result as a JSON tree whose leaves are positions of the flat outputs."""
        import torch.utils._pytree as pytree

        tree = pytree.tree_unflatten([f"#{i}" for i in range(count)], self.program.call_spec.out_spec)
        return plain_tree(tree)

    def _placeholders(self) -> None:
        import torch
        from torch.export.graph_signature import InputKind

        position = 0
        by_name = {n.name: n for n in self.program.graph.nodes if n.op == "placeholder"}
        for spec in self.program.graph_signature.input_specs:
            node = by_name[spec.arg.name]
            fake = node.meta.get("val")
            if spec.kind == InputKind.USER_INPUT:
                if isinstance(fake, torch.Tensor):
                    self._declare(node, fake, "input", str(position), spec.arg.name)
                else:
                    self.known[node.name] = getattr(spec.arg, "value", fake)
                position += 1
            elif spec.kind == InputKind.PARAMETER or (spec.kind == InputKind.BUFFER and spec.persistent):
                self._declare(node, fake, "param", spec.target or "", (spec.target or "").replace(".", "_"))
            elif spec.kind == InputKind.TOKEN:  # the order of checks that print or raise; nothing is computed from it
                self.known[node.name] = None
            else:
                table: Any = self.program.constants
                tensor = table.get(spec.target)
                if tensor is None:
                    raise UnsupportedOperator(f"{spec.kind}", "a graph input that is neither tensor nor constant")
                self.known[node.name] = self._constant(spec.target or node.name, tensor)
            if spec.kind == InputKind.BUFFER and spec.target in self.program.graph_signature.buffers_to_mutate.values():
                self.changing[id(self.known[node.name])] = spec.target

    def _declare(self, node: Any, fake: torch.Tensor, role: Any, source: str, stem: str) -> None:
        name = self.names.fresh(stem)
        shape = self._shape(fake)
        dtype = dtype_of(fake.dtype)
        if role == "input" or node.users:
            self.tensors.append(nodes.Tensor(name, tuple(map(size_index, shape)), dtype, role, source))
        self.known[node.name] = v.Leaf(shape, dtype, name, origin=role)

    def _constant(self, stem: str, tensor: torch.Tensor) -> v.Value:
        dtype = dtype_of(tensor.dtype)
        small = collapsed(tensor.detach())
        return b.expand(recognised(small, dtype) or self._table(stem, small, dtype), tuple(tensor.shape))

    def _table(self, stem: str, tensor: torch.Tensor, dtype: DType) -> v.Value:
        """A constant without a rule: its numbers are written into the sketch."""
        reason = ""
        if stem in self.drawn:
            reason = f"{stem} is drawn at random by the constructor and is not part of the state_dict"
        elif tensor.numel() > SMALL_CONSTANT:
            reason = f"{stem} has {tensor.numel()} elements, more than a kernel file should carry"
        if reason:  # no matter if forward does not use it, or overwrites it first
            unknown = v.Leaf(tuple(tensor.shape), dtype, stem, origin="constant")
            self.refused[id(unknown)] = UnsupportedOperator("a constant tensor", reason)
            self.unknown.append(unknown)
            return unknown
        name = self.names.fresh(stem.replace(".", "_"))
        shape = tuple(tensor.shape)
        self.constants.append((name, tuple(tensor.reshape(-1).tolist())))
        self.tensors.append(nodes.Tensor(name, tuple(nodes.Int(e) for e in shape), dtype, "constant", name))
        return v.Leaf(shape, dtype, name, origin="constant")

    def _shape(self, fake: torch.Tensor) -> tuple[Extent, ...]:
        return tuple(self.sizes.extent(e) for e in fake.shape)

    def _argument(self, argument: Any) -> Any:
        import torch

        if isinstance(argument, torch.fx.Node):
            return self.known[argument.name]
        if isinstance(argument, list | tuple):
            return [self._argument(a) for a in argument]
        return argument

    def _of_sizes(self, value: Any) -> Any:
        """What is computed from sizes alone: a size, a number, or nothing (a check)."""
        import torch

        if isinstance(value, torch.SymInt):
            return self.sizes.extent(value)
        return self.sizes.number_of(value.node.expr) if isinstance(value, torch.SymFloat) else None

    def _call(self, node: Any) -> Any:
        import torch

        from kernelwright.compiler.frontend.complex_pairs import of_pairs
        from kernelwright.compiler.frontend.library_calls import allowed, called, is_complex
        from kernelwright.compiler.frontend.operators import Result, find

        args = [self._argument(a) for a in node.args]
        keywords = {k: self._argument(a) for k, a in node.kwargs.items()}
        if node.target is operator.getitem:
            return _used(args[0][args[1]], node)
        if hasattr(node.meta.get("val"), "node") and not isinstance(node.meta["val"], torch.Tensor):
            return self._of_sizes(node.meta["val"])
        name = str(node.target)
        if name.startswith(("aten._assert", "aten.sym_")) or "_assert_scalar" in name:
            return None
        if name == "with_effects" and "_linalg_check_errors" in str(node.args[1]):
            return (None, None)  # raises for singular matrices: no value follows from it
        hybrid = self.track == "hybrid" and hasattr(node.target, "_schema")
        rule = find(name) if name.startswith("aten.") else None
        complex_numbers = is_complex([node.meta["val"], *(a.meta.get("val") for a in node.all_input_nodes)])
        if hybrid and complex_numbers:
            return of_pairs(node, args, keywords) or called(node, args, keywords, dtype_of)
        if rule is None:
            if hybrid:
                return called(node, args, keywords, dtype_of)
            raise UnsupportedOperator(name.rsplit(".", 1)[0] if name.startswith("aten.") else name)

        def result(fake: Any) -> Any:
            if isinstance(fake, list | tuple):
                return tuple(result(f) for f in fake)
            if not hasattr(fake, "shape"):
                return None
            rounded = str(fake.dtype).removeprefix("torch.")
            if rounded in ("float8_e4m3fn", "float8_e5m2"):
                return Result(self._shape(fake), DType.f32, rounded)
            return Result(self._shape(fake), dtype_of(fake.dtype), native=self.kernels_are_calls)

        out = result(node.meta["val"])
        try:
            made = rule(out, *args, **keywords)
        except TypeError as e:  # a size where a rule computes with a plain number
            if not self.sizes.known:
                raise
            raise UnsupportedOperator(name.rsplit(".", 1)[0], f"not for sizes that vary: {e}") from e
        except NotImplementedError as e:
            if hybrid and allowed(name):
                return called(node, args, keywords, dtype_of)
            raise UnsupportedOperator(name.rsplit(".", 1)[0], str(e)) from e
        for value in made if isinstance(made, tuple) else (made,):
            if isinstance(value, v.Value) and not value.origin:
                value.origin = name
        return _used(made, node)


def _used(value: Any, node: Any) -> Any:
    """A node's value, which knows from now on whether several others use it."""
    if isinstance(value, v.Value):
        value.shared |= len(node.users) > 1
    return value


def plain_tree(tree: Any) -> Any:
    """A tree of results as JSON has it: a list says that it is one, a tuple is an array."""
    if isinstance(tree, dict):
        return {str(k): plain_tree(t) for k, t in tree.items()}
    if isinstance(tree, list):
        return {"$list": [plain_tree(t) for t in tree]}
    if isinstance(tree, tuple):
        return [plain_tree(t) for t in tree]
    return tree
