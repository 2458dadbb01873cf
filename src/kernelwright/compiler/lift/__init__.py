"""Lifting: other people's kernels to the Unified Sketch, by reading the program. What cannot be expressed is refused, never guessed.

1. `door`      `lift(source, dsl, task, inputs)`: the file is run once in a process of its own (`child`)
2. `launches`  the nouns: memory, launches, and the torch operations between them, all concrete; `tracing` makes them
3. `access`    addresses and masks → slices of tensors; `regions` writes them as nodes of a sketch
4. `values`    what a value of a kernel is; `program` statements in the making: loads, stores, conditions; `grid` parallel loops
5. `compose`   a whole forward → a sketch that checks
6. `triton`    reading Triton kernels
7. `tilelang`  reading TileLang kernels
8. `ptx`       kernels of any language by running what they are compiled to; `cuda` CUDA-C kernels, which are read in no other way
9. `formulas`  what elements are → the graph of a forward → a sketch scheduled by the designer: for `ptx`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelwright.compiler.lift.compose import Lifted
    from kernelwright.compiler.lift.door import lift

__all__ = ["Lifted", "lift"]


def __getattr__(name: str) -> Any:
    """The door is imported on use: the child process imports this package too."""
    if name == "lift":
        from kernelwright.compiler.lift.door import lift

        return lift
    if name == "Lifted":
        from kernelwright.compiler.lift.compose import Lifted

        return Lifted
    raise AttributeError(name)
