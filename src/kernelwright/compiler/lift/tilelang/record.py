"""Recording TileLang launches: a compiled kernel that is called puts its tile programs down and runs nothing.

In: a function that takes each launch (tracing.Tracer.launch). Out: TileLang taught, in this process for good, to hand out recorders
where it would compile. Arguments are checked and outputs made as for the interpreter (compiler/backends/tilelang/launch.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tilelang.ir import get_stmt_span

from kernelwright.compiler.backends.tilelang.arrays import Unknown
from kernelwright.compiler.backends.tilelang.interpreter import THREAD
from kernelwright.compiler.backends.tilelang.launch import RECORD, InterpretedKernel, teach
from kernelwright.core.errors import CannotLift

Put = Callable[[str, Any, tuple[int, ...], Mapping[str, Any], Mapping[str, Any]], None]


@dataclass(frozen=True)
class TileKernel:
    """One `T.Kernel`: its statements, its block variables (x first), the values of symbolic sizes and of numbers among the arguments
    by variable, and the argument's name for each tensor by buffer."""

    body: Any
    blocks: tuple[Any, ...]
    values: Mapping[int, Any]
    tensors: Mapping[int, str]


def install(put: Put) -> None:
    """From now on launches are put down."""

    class Recorder(InterpretedKernel):
        """A compiled kernel that nobody runs."""

        def execute(self, arguments: Sequence[Any]) -> None:
            for number, value in enumerate(arguments):
                self._argument(number, value)
            _launches(self, arguments, put)

    def made(
        func: Any = None, out_idx: Any = None, *_: Any, pass_configs: Any = None, compile_flags: Any = None, **__: Any
    ) -> Any:
        try:
            return Recorder(func, out_idx, pass_configs, compile_flags)
        except Unknown as unknown:
            raise CannotLift(str(unknown).replace("the interpreter does not know", "a sketch has no word for")) from None

    teach(made)


def _launches(kernel: InterpretedKernel, arguments: Sequence[Any], put: Put) -> None:
    """Every `T.Kernel` of a function that is called."""
    function, program = kernel.prim_func, kernel.program
    slots = program.state.slots
    values = {key: slots[place] for key, place in program.variables.items() if isinstance(slots[place], int | float)}
    tensors: dict[int, str] = {}
    named: dict[str, Any] = {}
    for number, (var, value) in enumerate(zip(function.params, arguments, strict=True)):
        buffer = function.buffer_map.get(var, None)
        name = f"{buffer.name if buffer is not None else var.name}_{number}"
        named[name] = value
        if buffer is not None and isinstance(value, torch.Tensor):
            tensors[hash(buffer.data)] = name
    title = str(function.attrs["global_symbol"]) if function.attrs and "global_symbol" in function.attrs else "kernel"
    for node in _kernels(function.body):
        nest = [node]
        while type(nest[-1].body).__name__ == "For" and int(nest[-1].body.kind) == THREAD:
            nest.append(nest[-1].body)
        grid = tuple(int(program.code(each.extent).run()) for each in nest)
        blocks = tuple(each.loop_var for each in nest)
        put(title, TileKernel(nest[-1].body, blocks, values, tensors), grid, named, {})


def _kernels(node: Any) -> Iterator[Any]:
    kind = type(node).__name__
    if kind == "SBlockRealize":
        yield from _kernels(node.block.body)
    elif kind == "SeqStmt":
        for each in node:
            yield from _kernels(each)
    elif kind in ("AttrStmt", "DeclBuffer", "AssertStmt") and getattr(node, "body", None) is not None:
        yield from _kernels(node.body)
    elif kind == "For" and int(node.kind) == THREAD:
        yield node
    elif kind not in ("DeclBuffer", "AssertStmt"):
        raise CannotLift(f"the function has {kind} outside of its T.Kernel", line=line_of(node))


def line_of(node: Any) -> int:
    """Where a statement stands in the file; 0 where nothing says so."""
    span = get_stmt_span(node)
    return int(span.line) if span is not None else 0


def notes() -> list[str]:
    """What was chosen on the way."""
    return ["autotuned kernels were taken with their first configuration"] if RECORD.autotuned else []
