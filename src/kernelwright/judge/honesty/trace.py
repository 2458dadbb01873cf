"""Which torch operators a candidate called, and which libraries are in its process: what a kernel's track is decided on.

Two halves. `Trace` runs inside the candidate's process around one call and lists the operators that the dispatcher and the
profiler saw, on every thread and also from C++ (core/torch_operators.py says which of them a track forbids). `foreign_libraries`
runs in the parent and reads the process's maps from outside. The trace is a witness inside the candidate's own process; the
observer (observe.py), which looks from outside, is the second one.
"""

from __future__ import annotations

import re
from typing import Any, Self

from kernelwright.core.torch_operators import MOVING, is_library
from kernelwright.workers.code_owners import exports_blas, regions

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
                dispatched = {name for name in self.operators if is_library(name)}
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
