"""`torch.utils.cpp_extension.load_inline` and `load` for CUDA sources, built for the GPU in software.

In: the author's sources, written against torch's C++ interface. Out: a module whose functions take and give tensors. nvcc compiles the
source with a small stand-in of that interface (host_api): seconds instead of a minute. Tensors cross as descriptions
(pointer, shape, strides); whatever the C++ code asks of torch comes back here by name and is done by torch itself.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils import cpp_extension

from kernelwright.compiler.backends.cuda_c import builds
from kernelwright.compiler.offdevice.redirect import on_device
from kernelwright.core.errors import GpuError

NONE, TENSOR, INT, DOUBLE, BOOL, TEXT, INTS, LIST, DTYPE, DEVICE = range(10)
DTYPES = {
    torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6,
    torch.float64: 7, torch.complex64: 9, torch.complex128: 10, torch.bool: 11, torch.bfloat16: 15,
}  # fmt: skip
_BY_CODE = {code: dtype for dtype, code in DTYPES.items()}
MARK = '#line 1 "kernel.cu"\n'
"""Before each text of an extension: reports name the lines of each."""
_CDLL = ctypes.CDLL
_load_inline, _load = cpp_extension.load_inline, cpp_extension.load


class KwTensor(ctypes.Structure):
    """A tensor as C++ sees it."""

    _fields_ = [
        ("id", ctypes.c_int64), ("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("dim", ctypes.c_int32),
        ("host", ctypes.c_int32), ("contiguous", ctypes.c_int32), ("sizes", ctypes.c_int64 * 16), ("strides", ctypes.c_int64 * 16),
    ]  # fmt: skip


class KwValue(ctypes.Structure):
    """An argument or result."""

    _fields_ = [
        ("kind", ctypes.c_int32), ("count", ctypes.c_int32), ("i", ctypes.c_int64), ("d", ctypes.c_double), ("p", ctypes.c_void_p),
    ]  # fmt: skip


_Python = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(KwValue), ctypes.c_int, ctypes.POINTER(KwValue))


def install() -> None:
    """Replace the loaders that would need nvcc and torch's headers."""
    cpp_extension.load_inline = load_inline
    cpp_extension.load = load


def load_inline(name: str, cpp_sources: Any = "", cuda_sources: Any = None, *args: Any, **options: Any) -> Any:
    """torch's function of this name; sources without CUDA are left to torch."""
    cuda = _texts(cuda_sources)
    if not cuda:
        return _load_inline(name, cpp_sources, cuda_sources, *args, **options)
    functions = args[0] if args else options.get("functions")
    names = [functions] if isinstance(functions, str) else list(functions or [])
    flags = [*_list(options.get("extra_cuda_cflags")), *_list(options.get("extra_cflags"))]
    flags += [f"-I{path}" for path in _list(options.get("extra_include_paths"))]
    return _module(name, [*_texts(cpp_sources), *cuda], names, flags)


def load(name: str, sources: Any, *args: Any, **options: Any) -> Any:
    """torch's function of this name, for files."""
    paths = _list(sources)
    if not any(str(path).endswith(".cu") for path in paths):
        return _load(name, sources, *args, **options)
    flags = [*_list(options.get("extra_cuda_cflags")), *_list(options.get("extra_cflags"))]
    return _module(name, [Path(path).read_text(encoding="utf-8") for path in paths], [], flags)


def _list(value: Any) -> list[str]:
    return [] if value is None else [str(value)] if isinstance(value, str | Path) else [str(item) for item in value]


def _texts(value: Any) -> list[str]:
    return [text for text in _list(value) if text.strip()]


def _module(name: str, texts: Sequence[str], functions: Sequence[str], flags: Sequence[str]) -> Any:
    head = "#include <torch/extension.h>\n"
    bindings = "".join(f"\nKW_BIND({function})" for function in functions)
    source = head + "\n".join(MARK + text for text in texts) + bindings + "\n"
    key = hashlib.sha256("\0".join([source, *flags]).encode()).hexdigest()[:24]
    library = builds.folder() / f"{key}.so"
    if not library.exists():
        text = library.with_suffix(".cu")
        text.write_text(source, encoding="utf-8")
        try:
            builds.build([text], library, flags)
        except GpuError as error:
            raise RuntimeError(f"Error building extension {name!r}: {error}") from None
    return Extension(name, _CDLL(str(library)))


class Extension(types.ModuleType):
    """A built extension: the functions that its source gives to Python."""

    def __init__(self, name: str, own: Any) -> None:
        super().__init__(name)
        own.kw_function_name.restype = own.kw_argument_name.restype = ctypes.c_char_p
        own.kw_argument_default.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.POINTER(KwValue)]
        own.kw_call.argtypes = [ctypes.c_int, ctypes.POINTER(KwValue), ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
        own.kw_set_python.argtypes = [_Python]
        self._own = own
        self._crossing = Crossing()
        self._callback = _Python(self._crossing.answer)
        own.kw_set_python(self._callback)
        number = 0
        while (found := own.kw_function_name(number)) is not None:
            setattr(self, found.decode(), self._function(number, found.decode()))
            number += 1

    def _function(self, number: int, name: str) -> Callable[..., Any]:
        own, crossing = self._own, self._crossing
        count = own.kw_function_count(number)
        names = [text.decode() for k in range(count) if (text := own.kw_argument_name(number, k)) is not None]

        def function(*args: Any, **kwargs: Any) -> Any:
            values = (KwValue * max(count, len(args), 1))()
            outer = crossing.begin()
            try:
                for k in range(max(count, len(args))):
                    if k < len(args):
                        crossing.give(args[k], values[k])
                    elif k < len(names) and names[k] in kwargs:
                        crossing.give(kwargs[names[k]], values[k])
                    elif not own.kw_argument_default(number, k, ctypes.byref(values[k])):
                        raise TypeError(f"{name}() takes {count} arguments, {len(args) + len(kwargs)} were given")
                error = ctypes.create_string_buffer(4000)
                failed = own.kw_call(number, values, max(count, len(args)), error, 4000)
                builds.device().raise_pending()
                if failed:
                    raise RuntimeError(error.value.decode(errors="replace"))
                return crossing.result
            finally:
                crossing.end(outer)

        function.__name__ = name
        return function


class Crossing:
    """Tensors that C++ code holds handles of, during one call from Python."""

    def __init__(self) -> None:
        self.tensors: dict[int, Any] = {}
        self.kept: list[Any] = []
        self.numbers = itertools.count(1)
        self.result: Any = None

    def begin(self) -> tuple[dict[int, Any], list[Any]]:
        outer = (self.tensors, self.kept)
        self.tensors, self.kept = dict(self.tensors), list(self.kept)
        return outer

    def end(self, outer: tuple[dict[int, Any], list[Any]]) -> None:
        self.tensors, self.kept = outer
        self.result = None

    def give(self, value: Any, into: KwValue) -> None:
        """Writes a Python value as C++ sees it."""
        if value is None:
            into.kind = NONE
        elif isinstance(value, torch.Tensor):
            described = self._describe(value)
            into.kind, into.p = TENSOR, ctypes.addressof(described)
        elif isinstance(value, bool):
            into.kind, into.i = BOOL, int(value)
        elif isinstance(value, int):
            into.kind, into.i, into.d = INT, value, float(value)
        elif isinstance(value, float):
            into.kind, into.d, into.i = DOUBLE, value, 0
        elif isinstance(value, str):
            text = ctypes.create_string_buffer(value.encode())
            self.kept.append(text)
            into.kind, into.p = TEXT, ctypes.addressof(text)
        elif isinstance(value, torch.dtype):
            into.kind, into.i = DTYPE, DTYPES[value]
        elif isinstance(value, torch.device):
            into.kind, into.i = DEVICE, int(value.type == "cuda")
        elif isinstance(value, list | tuple):
            inner = (KwValue * max(1, len(value)))()
            for k, item in enumerate(value):
                self.give(item, inner[k])
            self.kept.append(inner)
            into.kind, into.count, into.p = LIST, len(value), ctypes.addressof(inner)
        else:
            raise TypeError(f"a {type(value).__name__} cannot be given to a CUDA extension")

    def _describe(self, tensor: Any) -> KwTensor:
        number = next(self.numbers)
        self.tensors[number] = tensor
        described = KwTensor(id=number, data=builds.data_ptr(tensor), dtype=DTYPES[tensor.dtype], dim=tensor.dim())
        described.host, described.contiguous = int(not on_device(tensor)), int(tensor.is_contiguous())
        for k, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
            described.sizes[k], described.strides[k] = size, stride
        self.kept.append(described)
        return described

    def take(self, value: KwValue) -> Any:
        """A C++ value as Python's."""
        match value.kind:
            case 1:
                return self.tensors[ctypes.cast(value.p, ctypes.POINTER(KwTensor)).contents.id]
            case 2:
                return int(value.i)
            case 3:
                return float(value.d)
            case 4:
                return bool(value.i)
            case 5:
                return ctypes.cast(value.p, ctypes.c_char_p).value.decode()  # type: ignore[union-attr]
            case 6:
                return list(ctypes.cast(value.p, ctypes.POINTER(ctypes.c_int64))[: value.count])
            case 7:
                inner = ctypes.cast(value.p, ctypes.POINTER(KwValue))
                return [self.take(inner[k]) for k in range(value.count)]
            case 8:
                return _BY_CODE[value.i]
            case 9:
                return torch.device("cuda" if value.i else "cpu")
        return None

    def answer(self, name: bytes, arguments: Any, count: int, result: Any) -> int:
        """The callback: something is asked of torch, or (`=`) the results of a function arrive."""
        try:
            values = [self.take(arguments[k]) for k in range(count)]
            if name == b"=":
                self.result = values[0] if count == 1 else tuple(values)
                return 0
            self.give(_ask(name.decode(), values), result[0])
            return 0
        except Exception as error:
            text = ctypes.create_string_buffer(f"{type(error).__name__}: {error}".encode())
            self.kept.append(text)
            result[0].p = ctypes.addressof(text)
            return 1


def _ask(name: str, values: list[Any]) -> Any:
    """One operation by its name in torch: `.view` is a method, `empty` a function."""
    options = {}
    if not name.startswith(".") and name in ("empty", "zeros", "ones", "rand", "randn", "full", "arange"):
        *values, dtype, device = values
        options = {"dtype": dtype, "device": device} if dtype is not None else {"device": device}
    elif name in ("empty_like", "zeros_like", "ones_like"):
        options = {"dtype": values[1]} if len(values) > 1 and values[1] is not None else {}
        values = values[:1]
    if name == ".slice":  # a method in C++ alone: (dim, start, end, step)
        tensor, dim, *place = values if len(values) > 1 else [*values, 0]
        return tensor[(slice(None),) * (dim % tensor.dim()) + (slice(*place) if place else slice(None),)]
    if name.startswith("."):
        return getattr(values[0], name[1:])(*values[1:])
    place = next(room for room in (torch, torch.nn.functional) if hasattr(room, name))
    return getattr(place, name)(*values, **options)
