"""The prelude's functions: how far they are from the truth in units of the last place, and what they do at the edges."""

from __future__ import annotations

import ctypes
import math
import subprocess

import pytest
import torch

from kernelwright.compiler.backends.cpp.module_file import FLAGS
from kernelwright.compiler.backends.cpp.nests.vectors import FUNCTIONS
from kernelwright.compiler.backends.cpp.prelude_sections import prelude


def _softplus(x: torch.Tensor) -> torch.Tensor:
    return torch.clamp_min(x, 0.0) + torch.log1p(torch.exp(-x.abs()))


UNARY = {
    # name: (torch function, samples from, to, allowed ulp in float, in double)
    "exp": (torch.exp, -104.0, 88.7, 1.5, 1.5),
    "expm1": (torch.expm1, -20.0, 20.0, 3.0, 3.0),
    "log": (torch.log, 0.0, 1e4, 1.5, 2.0),
    "log1p": (torch.log1p, -0.999, 100.0, 2.5, 3.0),
    "log1p_exp": (_softplus, -85.0, 30.0, 3.0, 3.0),
    "log2": (torch.log2, 0.0, 1e4, 1.0, 2.0),
    "log10": (torch.log10, 0.0, 1e4, 1.0, 2.0),
    "exp2": (torch.exp2, -126.0, 127.0, 1.0, 2.0),
    "tanh": (torch.tanh, -10.0, 10.0, 1.5, 4.0),
    "tanh_plus_one": (lambda x: 2 * torch.sigmoid(2 * x), -40.0, 40.0, 3.0, 3.0),
    "sigmoid": (torch.sigmoid, -80.0, 80.0, 3.0, 3.0),
    "erf": (torch.erf, -4.5, 4.5, 4.0, 2.0),
    "erf_plus_one": (lambda x: torch.erfc(-x), -0.5, 9.0, 2.0, 2.0),
    "erfinv": (torch.erfinv, -0.9999, 0.9999, 2.0, 64.0),
}
VECTORS = [name for name in UNARY if f"{name}_of" in FUNCTIONS]
KINDS = [(name, kind) for name in UNARY for kind in ("float", "double")] + [(name, "vector") for name in VECTORS]
EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, -1e-40, 1.0, -1.0, 1e30, -1e30, 3e38, 88.7, -87.4, -103.9]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("functions")
    body = ""
    for name in UNARY:
        for kind in ("float", "double"):
            body += (
                f'extern "C" void {name}_{kind}(const {kind}* x, {kind}* y, int64_t n) {{\n'
                f"#pragma omp simd\n for (int64_t k = 0; k < n; ++k) y[k] = {name}_of(x[k]);\n}}\n"
            )
    for name in VECTORS:
        body += (
            f'extern "C" void {name}_vector(const float* x, float* y, int64_t n) {{\n'
            f" for (int64_t k = 0; k < n; k += WIDE) store_vector(y + k, {name}_of(load_vector(x + k)));  // Vector\n}}\n"
        )
    body += 'extern "C" void pow_float(const float* x, const float* e, float* y, int64_t n) {\n'
    body += "#pragma omp simd\n for (int64_t k = 0; k < n; ++k) y[k] = pow_of(x[k], e[k]);\n}\n"
    for half in ("f16", "bf16"):
        loop = "int64_t n) { for (int64_t k = 0; k < n; ++k) y[k] ="
        body += f'extern "C" void to_{half}s(const float* x, uint16_t* y, {loop} to_{half}(x[k]); }}\n'
        body += f'extern "C" void from_{half}s(const uint16_t* x, float* y, {loop} from_{half}(x[k]); }}\n'
    source = folder / "functions.cpp"
    source.write_text("#include <cmath>\n#include <cstdint>\n#include <cstdlib>\n" + prelude(body) + body)
    built = folder / "functions.so"
    subprocess.run(["g++", "-O3", *FLAGS, str(source), "-o", str(built)], check=True)
    return ctypes.CDLL(str(built))


def call(library: ctypes.CDLL, name: str, *tensors: torch.Tensor) -> None:
    getattr(library, name)(*(ctypes.c_void_p(t.data_ptr()) for t in tensors), ctypes.c_int64(tensors[0].numel()))


def whole_vectors(x: torch.Tensor) -> torch.Tensor:
    """Filled up to a multiple of the widest vector."""
    return torch.cat([x, x[:1].expand(-x.numel() % 16)])


def ulp_error(got: torch.Tensor, exact: torch.Tensor) -> float:
    """Largest distance in units of the last place of the result's dtype; both in double."""
    rounded = exact.to(got.dtype)
    spacing = (torch.nextafter(rounded.abs(), torch.tensor(math.inf, dtype=got.dtype)) - rounded.abs()).double()
    return float(((got.double() - exact.double()).abs() / spacing).max())


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_accuracy(library: ctypes.CDLL, name: str, kind: str) -> None:
    function, low, high, single, double = UNARY[name]
    dtype = torch.float64 if kind == "double" else torch.float32
    x = torch.linspace(low, high, 200_001, dtype=torch.float64)[1:].to(dtype)
    small = torch.cat(
        [torch.logspace(-30, -1, 2000, dtype=torch.float64), -torch.logspace(-30, -1, 2000, dtype=torch.float64)]
    ).to(dtype)
    x = whole_vectors(torch.cat([x, small[(small > low) & (small < high)]]))
    y = torch.empty_like(x)
    call(library, f"{name}_{kind}", x, y)
    exact = function(x.double())
    normal = exact.abs() > (1e-300 if kind == "double" else 1e-37)
    assert ulp_error(y[normal], exact[normal]) <= (double if kind == "double" else single)


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_edges(library: ctypes.CDLL, name: str, kind: str) -> None:
    dtype = torch.float64 if kind == "double" else torch.float32
    x = whole_vectors(torch.tensor(EDGES, dtype=dtype))
    y = torch.empty_like(x)
    call(library, f"{name}_{kind}", x, y)
    wanted = UNARY[name][0](x.double()).to(dtype)
    atol = 1e-38 if name in ("sigmoid", "tanh_plus_one") else 3e-45
    torch.testing.assert_close(y, wanted, rtol=1e-14 if kind == "double" else 5e-7, atol=atol, equal_nan=True)


def test_power(library: ctypes.CDLL) -> None:
    values = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 10.5, math.inf, -math.inf, math.nan, 1e-3]
    x, e = (t.reshape(-1) for t in torch.meshgrid(torch.tensor(values), torch.tensor(values), indexing="ij"))
    x, e = x.contiguous(), e.contiguous()
    y = torch.empty_like(x)
    call(library, "pow_float", x, e, y)
    torch.testing.assert_close(y, torch.pow(x.double(), e.double()).float(), rtol=1e-6, atol=0.0, equal_nan=True)


@pytest.mark.parametrize(("half", "dtype"), [("f16", torch.float16), ("bf16", torch.bfloat16)])
def test_halves_are_exact(library: ctypes.CDLL, half: str, dtype: torch.dtype) -> None:
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    floats = torch.empty(2**16, dtype=torch.float32)
    call(library, f"from_{half}s", bits, floats)
    torch.testing.assert_close(floats, bits.view(dtype).float(), rtol=0, atol=0, equal_nan=True)
    torch.manual_seed(0)
    x = torch.cat(
        [
            torch.randn(50_000) * 10.0 ** torch.randint(-9, 6, (50_000,)),
            floats,
            torch.tensor([65519.9, 65520.0, 1e-8, math.inf]),
        ]
    )
    back = torch.empty(x.numel(), dtype=torch.int16)
    call(library, f"to_{half}s", x, back)
    torch.testing.assert_close(back.view(dtype), x.to(dtype), rtol=0, atol=0, equal_nan=True)


def test_only_what_is_used() -> None:
    text = prelude("y = tanh_of(x);")
    assert "expm1_of" in text
    assert "log_of" not in text
