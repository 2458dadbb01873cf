"""Triton's own output for a device, executed: products on tensor cores, reductions, scans, atomics, fp8."""

from __future__ import annotations

from typing import Any

import pytest
import torch

triton = pytest.importorskip("triton", reason="Triton is not installed, which makes PTX of Triton kernels")

from tests.gpu import triton_kernels as kernels  # noqa: E402
from tests.gpu.devices import launch  # noqa: E402


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("checks", [False, True])
def test_softmax_of_odd_rows(checks: bool) -> None:
    x = torch.randn(37, 1000)
    o = torch.empty_like(x)
    ptx, shared = kernels.compiled("softmax", {"x": "*fp32", "o": "*fp32", "n": "i32"}, {"B": 1024})
    report = launch(ptx, "softmax", (37,), (128,), x, o, 1000, shared=shared, checks=checks)
    assert report.ok, [str(f) for f in report.faults]
    torch.testing.assert_close(o, torch.softmax(x, 1))


@pytest.mark.parametrize(("dtype", "tolerance"), [("fp16", 2e-2), ("bf16", 1e-1), ("fp32", 2e-2)])
@pytest.mark.parametrize("checks", [False, True])
def test_product_with_odd_edges(dtype: str, tolerance: float, checks: bool) -> None:
    m, n, k = 100, 136, 80
    kind = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}[dtype]
    a, b, c = torch.randn(m, k).to(kind), torch.randn(k, n).to(kind), torch.empty(m, n, dtype=kind)
    ptx, shared = kernels.compiled(
        "matmul", {**dict.fromkeys("abc", f"*{dtype}"), **dict.fromkeys(("M", "N", "K"), "i32")}, {"BM": 64, "BN": 64, "BK": 32}
    )
    report = launch(ptx, "matmul", (2, 3), (128,), a, b, c, m, n, k, shared=shared, checks=checks)
    assert report.ok, [str(f) for f in report.faults]
    torch.testing.assert_close(
        c.float(), a.float() @ b.float(), rtol=tolerance, atol=20 * tolerance if dtype == "bf16" else 5 * tolerance
    )


@pytest.mark.parametrize(("dtype", "tolerance"), [("fp16", 2e-2), ("bf16", 1e-1), ("fp32", 2e-2)])
def test_product_of_a_warpgroup(dtype: str, tolerance: float) -> None:
    m, n, k = 128, 192, 96
    kind = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}[dtype]
    a, b, c = torch.randn(m, k).to(kind), torch.randn(k, n).to(kind), torch.empty(m, n, dtype=kind)
    ptx, shared = kernels.compiled(
        "matmul",
        {**dict.fromkeys("abc", f"*{dtype}"), **dict.fromkeys(("M", "N", "K"), "i32")},
        {"BM": 64, "BN": 64, "BK": 32},
        90,
    )
    assert "wgmma.mma_async" in ptx
    report = launch(ptx, "matmul", (2, 3), (128,), a, b, c, m, n, k, shared=shared, checks=True)
    assert report.ok, [str(f) for f in report.faults]
    torch.testing.assert_close(
        c.float(), a.float() @ b.float(), rtol=tolerance, atol=20 * tolerance if dtype == "bf16" else 5 * tolerance
    )


def test_sort_scan_histogram_random_and_functions() -> None:
    x, h, o = torch.randn(1024).abs(), torch.zeros(64, dtype=torch.int32), torch.empty(4, 1024)
    ptx, shared = kernels.compiled("scans", {"x": "*fp32", "h": "*i32", "o": "*fp32", "n": "i32"}, {"B": 1024})
    report = launch(ptx, "scans", (1,), (128,), x, h, o, 1024, shared=shared)
    assert report.ok
    torch.testing.assert_close(o[0], x.cumsum(0), rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(o[1], x.sort().values, rtol=0, atol=0)
    torch.testing.assert_close(o[2], x.erf() + x.sin() + x.log() + x.sqrt(), rtol=1e-4, atol=1e-4)
    assert torch.equal(o[3], x.argmax().float().expand(1024))
    assert torch.equal(h, torch.bincount((x * 4).int(), minlength=64).int())


def test_fp8_conversions_are_torch_s() -> None:
    x = torch.cat([torch.randn(1000) * 50, torch.tensor([0.0, -0.0, 448.0, 1e-3, 2.0**-9, 2.0**-10, 57344.0 / 2**8, 300.0])])
    x = torch.nn.functional.pad(x, (0, 1024 - len(x))).clamp(-448, 448)
    o = torch.empty_like(x)
    ptx, shared = kernels.compiled("fp8", {"x": "*fp32", "o": "*fp32", "n": "i32"}, {"B": 1024}, 90)
    assert launch(ptx, "fp8", (1,), (128,), x, o, 1024, shared=shared).ok
    want = x.to(torch.float8_e4m3fn).float() + x.to(torch.float8_e5m2).float() + x.bfloat16().float()
    torch.testing.assert_close(o, want, rtol=0, atol=0)


def test_a_barrier_taken_out_of_triton_s_output_is_a_race() -> None:
    """What a compiler with a bug would emit."""
    x = torch.randn(4, 1000)
    o = torch.empty_like(x)
    ptx, shared = kernels.compiled("softmax", {"x": "*fp32", "o": "*fp32", "n": "i32"}, {"B": 1024})
    pieces = ptx.split("bar.sync")
    assert len(pieces) > 2
    for k in range(1, len(pieces)):
        without: Any = "bar.sync".join(pieces[:k]) + "// bar.sync" + "bar.sync".join(pieces[k:])
        report = launch(without, "softmax", (4,), (128,), x, o, 1000, shared=shared, checks=True)
        assert any(f.kind in ("shared_race", "uninitialised") for f in report.faults), k
