"""Reductions and scans of the interpreter with any combine function, whole arrays at a time.

Triton's interpreter calls a combine function once for each element; here it is called on halves of the array (a tree, as on the
device), so that a reduction of n elements takes log n calls. A combine function is associative, or it is wrong on the device too.
Built-in sums and products skip NaN nowhere; built-in max and min skip NaN, as the device does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelwright.compiler.backends.triton.interpreter.bf16 import narrow, widen


def teach(interpreter: Any, tl: Any) -> None:
    """Replace the element-wise loops of the interpreter, and make its fast paths right for bf16."""
    reduce_ops, scan_ops = interpreter.ReduceOps, interpreter.ScanOps
    handle = interpreter.TensorHandle

    def tensor(data: Any, like: Any) -> Any:
        return tl.core.tensor(handle(data, like.dtype.scalar), tl.block_type(like.dtype.scalar, list(data.shape)))

    def combine(ops: Any, left: list[Any], right: list[Any], like: Any) -> list[Any]:
        given = [tensor(data, each) for data, each in zip([*left, *right], [*like, *like], strict=True)]
        result = ops.combine_fn.fn(*given) if hasattr(ops.combine_fn, "fn") else ops.combine_fn(*given)
        parts = result if isinstance(result, tuple) else (result,)
        shape = left[0].shape
        return [np.broadcast_to(part.handle.data, shape) for part in parts]

    def reduce_any(self: Any, given: Any) -> list[Any]:
        whole = self.axis is None
        data = [arg.handle.data.reshape(-1) if whole else arg.handle.data for arg in given]
        axis = 0 if whole else self.axis % data[0].ndim
        data = [np.moveaxis(part, axis, 0) for part in data]
        while data[0].shape[0] > 1:
            half = data[0].shape[0] // 2
            data = combine(self, [part[:half] for part in data], [part[half : 2 * half] for part in data], given)
        results = []
        for part, arg in zip(data, given, strict=True):
            result = part[0]
            if self.keep_dims:
                result = result.reshape([1] * arg.handle.data.ndim) if whole else np.expand_dims(result, axis)
            results.append(self.to_tensor(result if result.shape else result[()], arg.dtype))
        return results

    def scan_any(self: Any, given: Any) -> list[Any]:
        axis = self.axis % given[0].handle.data.ndim
        data = [np.moveaxis(arg.handle.data, axis, 0).copy() for arg in given]
        step, size = 1, data[0].shape[0]
        while step < size:
            # Whole arrays, since a block's extent is a power of two; the first elements have nothing before them.
            before = [np.concatenate([part[:step], part[:-step]]) for part in data]
            sums = combine(self, before, data, given)
            data = [np.concatenate([part[:step], new[step:]]) for part, new in zip(data, sums, strict=True)]
            step *= 2
        return [self.to_tensor(np.moveaxis(part, 0, axis), arg.dtype) for part, arg in zip(data, given, strict=True)]

    def again(ops: Any, part: Any) -> Any:
        bits = narrow(part.handle.data)
        return ops.to_tensor(bits if part.type.is_block() else bits.reshape(-1)[0], tl.bfloat16)

    def brain(ops: Any, name: str) -> Any:
        plain = getattr(ops, name)

        def wrapped(self: Any, given: Any, *args: Any, **kwargs: Any) -> Any:
            first = given[0] if isinstance(given, tuple) else given
            if first.dtype.scalar != tl.bfloat16:
                return plain(self, given, *args, **kwargs)
            wide = tl.core.tensor(
                handle(widen(first.handle.data), tl.float32), tl.block_type(tl.float32, list(first.handle.data.shape))
            )
            result = plain(self, wide, *args, **kwargs)
            many = result if isinstance(result, list | tuple) else (result,)
            back = [again(self, part) if part.dtype.scalar == tl.float32 else part for part in many]
            return type(result)(back) if isinstance(result, list | tuple) else back[0]

        return wrapped

    def sort(x: Any, dim: Any = None, descending: Any = False) -> Any:
        """The language's own is a network of some hundred steps of device functions."""
        last = len(x.shape) - 1
        if dim is not None and int(getattr(dim, "value", dim)) % (last + 1) != last:
            raise ValueError("tl.sort sorts along the last dimension")
        bits = x.handle.data
        ordered = np.sort(widen(bits) if x.dtype.scalar == tl.bfloat16 else bits, axis=-1)
        if bool(getattr(descending, "value", descending)):
            ordered = np.ascontiguousarray(np.flip(ordered, axis=-1))
        return tensor(narrow(ordered) if x.dtype.scalar == tl.bfloat16 else ordered, x)

    tl.sort = tl.standard.sort = sort
    reduce_ops.generic_reduce, scan_ops.generic_scan = reduce_any, scan_any
    for ops, name in ((reduce_ops, "sum"), (reduce_ops, "min_max"), (scan_ops, "cumsum"), (scan_ops, "cumprod")):
        setattr(ops, name, brain(ops, name))
