"""What host code of CUDA kernels includes beside CUDA's own headers, in small: torch's C++ interface, pybind11, cuBLAS.

In: names that people write in `#include`. Out: a folder of headers (`unpack`). A tensor there is a handle to one of Python's, so a file
that includes `torch/extension.h` compiles in seconds instead of a minute, and whatever it computes by torch is done by torch where
the judge sees it. The texts are read when this module is imported: a sandboxed process cannot read them any more.
"""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent
_TEXTS = {name: (_HERE / name).read_text(encoding="utf-8") for name in ("kw_torch.h", "cublas_v2.h", "cublasLt.h")}
_TORCH = (
    *("ATen/ATen.h", "ATen/AccumulateType.h", "ATen/Dispatch.h", "ATen/Functions.h", "ATen/OpMathType.h", "ATen/TensorUtils.h"),
    *("ATen/ceil_div.h", "ATen/core/Tensor.h", "ATen/core/TensorAccessor.h", "ATen/native/cuda/KernelUtils.cuh"),
    *("ATen/cuda/Atomic.cuh", "ATen/cuda/CUDABlas.h", "ATen/cuda/CUDAContext.h", "ATen/cuda/CUDAContextLight.h"),
    *("ATen/cuda/CUDADataType.h", "ATen/cuda/CUDAEvent.h", "ATen/cuda/CUDAUtils.h", "ATen/cuda/DeviceUtils.cuh"),
    *("ATen/cuda/Exceptions.h", "ATen/cuda/detail/KernelUtils.h"),
    *("c10/core/DeviceGuard.h", "c10/core/ScalarType.h", "c10/core/TensorOptions.h", "c10/cuda/CUDACachingAllocator.h"),
    *("c10/cuda/CUDAException.h", "c10/cuda/CUDAFunctions.h", "c10/cuda/CUDAGuard.h", "c10/cuda/CUDAMacros.h"),
    *(
        "c10/cuda/CUDAMathCompat.h",
        "c10/cuda/CUDAStream.h",
        "c10/macros/Macros.h",
        "c10/util/ArrayRef.h",
        "c10/util/BFloat16.h",
    ),
    *("c10/util/Exception.h", "c10/util/Half.h", "c10/util/Optional.h"),
    *("pybind11/numpy.h", "pybind11/pybind11.h", "pybind11/stl.h"),
    *("torch/all.h", "torch/csrc/api/include/torch/torch.h", "torch/extension.h", "torch/library.h", "torch/python.h"),
    *("torch/script.h", "torch/torch.h", "torch/types.h"),
)
_WITH_CUBLAS = ("ATen/cuda/CUDABlas.h", "ATen/cuda/CUDAContext.h")
_CUB_NAMES = """#include <cub/version.cuh>
#if CUB_MAJOR_VERSION >= 3
#include <cuda/functional>
#include <cuda/std/functional>
namespace cub {
using Sum = ::cuda::std::plus<>;
using Difference = ::cuda::std::minus<>;
using Max = ::cuda::maximum<>;
using Min = ::cuda::minimum<>;
using Equality = ::cuda::std::equal_to<>;
using Inequality = ::cuda::std::not_equal_to<>;
}
#endif
"""
"""cub's own function objects went with CUDA 13 (https://nvidia.github.io/cccl/cccl/3.0_migration_guide.html); kernels written before
that are compiled with their successors under the old names."""
CUB_NAMES = "cub_names.h"


def unpack(folder: Path) -> Path:
    """The headers on disk, under `folder`."""
    done = folder / "complete"
    if not done.exists():
        files = {**_TEXTS, CUB_NAMES: _CUB_NAMES}
        for name in _TORCH:
            more = "#include <cublas_v2.h>\n" if name in _WITH_CUBLAS else ""
            files[name] = f"#pragma once\n#include <kw_torch.h>\n{more}"
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done.touch()
    return folder
