"""Which torch operators computed, and which libraries are in the process: what a kernel's track is decided on.

Two halves. `Trace` runs inside the candidate's process around one call and lists the operators that the dispatcher and the
profiler saw, on every thread and also from C++. `foreign_libraries` and `judge_calls` run in the parent: they read the process's
maps from outside and decide. Track "pure" allows allocation, views and copies; "hybrid" also GEMM, convolution and the routines
that every numerical library has (sorting, FFT, factorisations). The trace is a witness inside the candidate's own process; the
observer (observe.py), which looks from outside, is the second one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Self

from kernelwright.workers.code_owners import exports_blas, regions

ALLOCATION = {
    *("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "_empty_affine_quantized"),
    *(
        "zeros",
        "zeros_like",
        "new_zeros",
        "ones",
        "ones_like",
        "new_ones",
        "full",
        "full_like",
        "new_full",
        "zero_",
        "zero",
        "fill_",
    ),
    *("fill", "arange", "scalar_tensor", "eye", "resize_", "resize_as_", "set_", "tensor"),
}
COPIES = {
    *(
        "clone",
        "copy_",
        "copy",
        "contiguous",
        "_to_copy",
        "to",
        "type_as",
        "lift_fresh",
        "lift",
        "lift_fresh_copy",
        "_copy_from",
    ),
    *("item", "_local_scalar_dense", "is_nonzero", "float", "half", "double", "resolve_conj", "resolve_neg", "is_pinned"),
    *("_pin_memory", "pin_memory", "_reshape_copy", "_has_compatible_shallow_copy_type", "_version", "constant_pad_nd_view"),
}
VIEWS = {
    *(
        "view",
        "view_as",
        "reshape",
        "_reshape_alias",
        "_unsafe_view",
        "as_strided",
        "transpose",
        "t",
        "permute",
        "expand",
        "expand_as",
    ),
    *(
        "squeeze",
        "unsqueeze",
        "select",
        "slice",
        "narrow",
        "split",
        "split_with_sizes",
        "chunk",
        "unbind",
        "detach",
        "detach_",
        "alias",
    ),
    *(
        "flatten",
        "unflatten",
        "movedim",
        "moveaxis",
        "swapaxes",
        "swapdims",
        "diagonal",
        "unfold",
        "numpy_T",
        "mT",
        "mH",
        "adjoint",
    ),
    *(
        "real",
        "imag",
        "view_as_real",
        "view_as_complex",
        "tensor_split",
        "hsplit",
        "vsplit",
        "dsplit",
        "data",
        "squeeze_",
        "unsqueeze_",
    ),
    *("transpose_", "t_", "as_strided_", "broadcast_to", "atleast_1d", "atleast_2d", "atleast_3d", "ravel", "requires_grad_"),
    *(
        "size",
        "stride",
        "storage_offset",
        "dim",
        "numel",
        "sym_size",
        "sym_stride",
        "sym_numel",
        "is_contiguous",
        "is_same_size",
    ),
    *(
        "output_nr",
        "is_leaf",
        "retain_grad",
        "result_type",
        "can_cast",
        "_nested_tensor_size",
        "prim_layout",
        "device",
        "layout",
    ),
}
FREE = ALLOCATION | COPIES | VIEWS
MOVING = {
    "clone",
    "copy_",
    "_to_copy",
    "zero_",
    "fill_",
    "zeros",
    "zeros_like",
    "full",
    "ones",
    "full_like",
    "new_zeros",
    "new_full",
}
"""Free operators that touch every byte of their result: they explain time inside libtorch."""

LIBRARY = re.compile(
    r"^(_?(addmm|addmm_activation|mm|bmm|baddbmm|addbmm|matmul|linear|dot|vdot|mv|addmv|addr|ger|einsum|tensordot|inner|outer|chain_matmul)_?"
    r"|_?scaled_mm|_grouped_mm|bilinear|_trilinear|kron|_?conv\w*|mkldnn_\w*conv\w*|mkldnn_\w*linear\w*|_?convolution\w*|slow_conv\w*|thnn_conv\w*"
    r"|_weight_int\w*|_int_mm|fbgemm_\w*|quantized_\w*|_sparse_mm\w*|_mkl_linear|_mps_\w*"
    r"|sort|argsort|topk|msort|kthvalue|unique\w*|_unique\w*|_?fft\w*|stft|istft|linalg_\w*|_linalg_\w*|cholesky\w*|qr|svd|lu\w*|triangular_solve|cdist|_cdist\w*|_euclidean_dist)$"
)

COMPUTE_LIBRARY = re.compile(
    r"(mkl|openblas|[^/]*blas|lapack|blis|onednn|dnnl|fftw|arrayfire|ippi|aocl|armpl|cublas|cudnn"
    r"|scipy|sklearn|jaxlib|onnxruntime|tensorflow|numexpr|numba|cupy|gfortran)[^/]*\.so|/(scipy|sklearn|jaxlib|numba|onnxruntime|tensorflow)/",
    re.IGNORECASE,
)
COMPILER_MODULES = ("torch._inductor", "torch._dynamo.eval_frame", "torch.jit._script_compiled")


class Trace:
    """Collects operator names while it is open. What cannot be started is left out: the other half still sees."""

    def __init__(self) -> None:
        self.operators: set[str] = set()
        self.copied = 0
        self._open: list[Any] = []

    def __enter__(self) -> Self:
        for make in (_profiler, _dispatch_mode):
            try:
                part = make(self)
                part.__enter__()
            except Exception:
                continue
            self._open.append(part)
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            part = self._open.pop()
            part.__exit__(None, None, None)
            events = getattr(part, "function_events", None)
            if events is not None:
                dispatched = {name for name in self.operators if _is_library(name)}
                self.operators |= {event.name for event in events if "::" in event.name and not _within(event, dispatched)}


def _within(event: Any, dispatched: set[str]) -> bool:
    """Whether an event is a library routine's own inner step, which the routine's name already stands for. The dispatcher must have
    seen the routine too: a profiler range can be given any name."""
    while (event := event.cpu_parent) is not None:
        if event.name in dispatched and not event.is_user_annotation:
            return True
    return False


def _profiler(_: Trace) -> Any:
    import torch
    from torch._C._profiler import _ExperimentalConfig

    return torch.autograd.profiler.profile(
        use_kineto=True, record_shapes=False, experimental_config=_ExperimentalConfig(profile_all_threads=True)
    )


def _dispatch_mode(trace: Trace) -> Any:
    from torch import Tensor
    from torch.utils._python_dispatch import TorchDispatchMode

    class Listen(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func.name().split(".")[0]
            result = func(*args, **(kwargs or {}))
            trace.operators.add(name)
            if name.removeprefix("aten::") in MOVING and isinstance(result, Tensor):
                trace.copied += result.numel() * result.element_size()
            return result

    return Listen()


def judge_calls(operators: Iterable[str], track: str) -> tuple[list[str], list[str]]:
    """(library calls that count, those of them that the track forbids), from names such as `aten::addmm`."""
    computing = sorted({name for name in operators if not _is_free(name)})
    if (
        track == "source"
    ):  # somebody's program that is migrated: what its host code leaves to torch is told, not held against it
        return computing, []
    if track == "pure":
        return computing, computing
    return computing, [name for name in computing if not _is_library(name)]


def _is_free(name: str) -> bool:
    space, _, operator = name.partition("::")
    if space not in ("aten", "prim", "prims", "mkldnn", "mkl", "quantized", "torch_sparse", "inductor", "cublas"):
        # An extension's own operator (torch.library) is the kernel itself; what it calls in torch is listed beside it.
        return True
    return operator in FREE or operator.startswith(("sym_", "is_", "_is_", "_assert"))


def _is_library(name: str) -> bool:
    space, _, operator = name.partition("::")
    return space in ("mkldnn", "mkl", "quantized", "cublas") or bool(LIBRARY.match(operator))


def mapped_files(pid: int) -> set[str]:
    """The files of which a process has executable pages, read by the parent from outside."""
    found = set()
    try:
        with open(f"/proc/{pid}/maps") as maps:
            for line in maps:
                fields = line.split(None, 5)
                if len(fields) == 6 and "x" in fields[1] and fields[5].startswith("/"):
                    found.add(fields[5].strip())
    except OSError:
        return found
    return found


def foreign_libraries(pid: int, baseline: set[str]) -> list[str]:
    """Numerical libraries that the process loaded beyond those that every worker has, known by name or by what they export."""
    strange = {region.path: region for region in regions(pid) if region.path.startswith("/") and region.path not in baseline}
    return sorted(path for path, region in strange.items() if COMPUTE_LIBRARY.search(path) or exports_blas(pid, region))
