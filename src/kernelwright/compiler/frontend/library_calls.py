"""Track hybrid: what has no rule is left to torch as a library call, if the judge allows that operator on this track.

In: a node of the exported graph and its arguments, in which tensors are already values. Out: values that are made by one
`LibraryCall` and always materialized. Complex tensors, which a sketch does not have, are kept as pairs along a last axis of extent 2.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from kernelwright.compiler.graph import values as v
from kernelwright.core.errors import UnsupportedOperator
from kernelwright.core.torch_operators import judge_calls
from kernelwright.sketch.nodes import DType

PAIRS = {"complex64": DType.f32, "complex128": DType.f64}
_ANYWHERE = ("device", "layout", "pin_memory", "memory_format")  # results are copied into tensors of our own


def allowed(target: str) -> bool:
    """Whether a kernel of track hybrid may call this operator."""
    return not judge_calls([target.replace(".", "::", 1).split(".")[0]], "hybrid")[1]


def is_complex(fake: Any) -> bool:
    """Whether torch's result (or one of several) has complex numbers."""
    if isinstance(fake, list | tuple):
        return any(map(is_complex, fake))
    return bool(hasattr(fake, "is_complex") and fake.is_complex())


def called(node: Any, args: list[Any], keywords: dict[str, Any], dtype_of: Callable[[Any], DType]) -> Any:
    """The results of a library call: a value, or a tuple of values."""
    name = str(node.target)
    if not allowed(name):
        raise UnsupportedOperator(_short(name), "track hybrid does not leave it to a library either")
    fakes = node.meta["val"]
    several = isinstance(fakes, list | tuple)
    inputs: list[v.Value] = []
    pairs: list[int] = []

    def encoded(value: Any, origin: Any) -> Any:
        if isinstance(value, v.Value):
            inputs.append(value)
            if is_complex(getattr(origin, "meta", {}).get("val")):
                pairs.append(len(inputs) - 1)
            return {"$input": len(inputs) - 1}
        if isinstance(value, list | tuple):
            return [encoded(item, one) for item, one in zip(value, origin, strict=True)]
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if type(value).__name__ == "dtype":
            return {"$dtype": str(value).removeprefix("torch.")}
        raise UnsupportedOperator(_short(name), f"an argument of type {type(value).__name__} cannot be written into a sketch")

    attributes: dict[str, Any] = {}
    leading = True
    declared = node.target._schema.arguments
    for place, (argument, origin) in enumerate(zip(args, node.args, strict=True)):
        leading = leading and isinstance(argument, v.Value)
        value = encoded(argument, origin)
        if not leading and not (declared[place].has_default_value() and value == declared[place].default_value):
            attributes[declared[place].name] = value
    for key, argument in keywords.items():
        if key not in _ANYWHERE:
            attributes[key] = encoded(argument, node.kwargs[key])

    def made(fake: Any) -> v.CustomKernel | None:
        if not hasattr(fake, "shape"):
            return None
        shape = tuple(int(e) for e in fake.shape)
        pair = PAIRS.get(str(fake.dtype).removeprefix("torch."))
        dtype = pair or dtype_of(fake.dtype)
        return v.CustomKernel((*shape, 2) if pair else shape, dtype, None, tuple(inputs), origin=name)  # type: ignore[arg-type]

    results = [made(fake) for fake in (fakes if several else [fakes])]
    group: list[v.Value] = [r for r in results if r is not None]

    def write(builder: v.KernelBuilder, _: tuple[v.Value, ...]) -> None:
        kept = [k for k, r in enumerate(results) if id(r) in builder.placed]
        own = dict(attributes)
        if several:
            own["$results"] = kept
        written = [k for k, place in enumerate(kept) if is_complex(fakes[place] if several else fakes)]
        if pairs or written:
            own["$complex"] = {"inputs": pairs, "outputs": written}
        note = f"{_short(name)} is left to torch (track hybrid)"
        builder.library_call(name, inputs, [r for k in kept if (r := results[k]) is not None], json.dumps(own), note)

    for result in results:
        if result is not None:
            result.write, result.group = write, group
    return tuple(results) if several else results[0]


def _short(name: str) -> str:
    return ".".join(name.split(".")[:2])
