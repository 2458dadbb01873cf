"""From a launch to TTIR: Triton's own front end reads the kernel, with the types of the launch's arguments.

In: a recorded `Launch` (its `kernel` is a JITFunction). Out: the parsed function, and the values of its scalar parameters. No GPU
and no code generation is needed: the passes that are run only inline, simplify and rewrite tensor descriptors to pointers.
"""

from __future__ import annotations

import inspect
import struct
from typing import Any

from kernelwright.compiler.lift.launches import Buffer, Launch, View
from kernelwright.compiler.lift.triton.ttir import Function, parse
from kernelwright.core.errors import CannotLift
from kernelwright.sketch.nodes import DType

POINTERS = {
    DType.f64: "*fp64", DType.f32: "*fp32", DType.f16: "*fp16", DType.bf16: "*bf16", DType.i64: "*i64", DType.i32: "*i32",
    DType.i16: "*i16", DType.i8: "*i8", DType.u8: "*u8", DType.bool: "*i1",
}  # fmt: skip


def function_of(launch: Launch, buffers: dict[str, Buffer], path: str) -> tuple[Function, dict[str, Any]]:
    """The kernel of a launch in TTIR, and its parameters' values: Views, and numbers for scalars."""
    import triton
    from triton._C.libtriton import ir, passes
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.compiler import make_backend

    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for parameter in launch.kernel.params:
        value = launch.arguments[parameter.name]
        kind = "constexpr" if parameter.is_constexpr else _kind(parameter.name, value, buffers, launch)
        signature[parameter.name] = kind
        if kind == "constexpr":
            constants[parameter.name] = value
        else:
            values[f"%{parameter.name}"] = _rounded(value) if kind == "fp32" else value
    target = GPUTarget("cuda", 80, 32)
    backend = make_backend(target)
    options = backend.parse_options({name: v for name, v in launch.options.items() if name in ("num_warps", "num_stages")})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = ASTSource(launch.kernel, signature, constants)
    try:
        module = source.make_ir(target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context)
    except triton.CompilationError as error:
        raise CannotLift(
            f"Triton's front end refuses {launch.name}: {_cause(error)}", path=path, line=_line(error, launch)
        ) from None
    manager = ir.pass_manager(context)
    passes.common.add_inliner(manager)
    passes.ttir.add_rewrite_tensor_descriptor_to_pointer(manager)
    passes.common.add_canonicalizer(manager)
    passes.ttir.add_combine(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    manager.run(module, "lift")
    found = parse(module.str(), inspect.getsourcefile(launch.kernel.fn) or path)
    return found, values


def _kind(name: str, value: Any, buffers: dict[str, Buffer], launch: Launch) -> str:
    """The type a launch gives a parameter, in Triton's words."""
    match value:
        case View():
            return POINTERS[buffers[value.buffer].dtype]
        case None:
            return "constexpr"
        case bool():
            return "u1"
        case int():
            return "i32" if -(1 << 31) <= value < 1 << 31 else "i64" if value < 1 << 63 else "u64"
        case float():
            return "fp32"
    if isinstance(value, tuple | list):
        raise CannotLift(f"{launch.name} takes the tuple {name}")
    if type(value).__name__ == "TensorDescriptor":
        raise CannotLift(f"{launch.name} takes {name}, a tensor descriptor made by the host")
    return "constexpr"


def _rounded(value: float) -> float:
    """A Python float as the f32 the kernel gets."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _cause(error: BaseException) -> str:
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [line.strip() for line in str(cause).strip().splitlines() if line.strip()]
    return lines[-1] if lines else type(cause).__name__


def _line(error: Any, launch: Launch) -> int:
    node = getattr(error, "node", None)
    first = inspect.getsourcelines(launch.kernel.fn)[1]
    return int(first + node.lineno - 1) if node is not None and hasattr(node, "lineno") else first
