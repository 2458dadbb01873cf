"""A program as people write them: softmax, an autotuned product, and a kernel that may store one element too many."""

import sys

import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def softmax_kernel(x, o, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + row * n + columns, mask=columns < n, other=-float("inf"))
    numerator = tl.exp(values - tl.max(values, axis=0))
    tl.store(o + row * n + columns, numerator / tl.sum(numerator, axis=0), mask=columns < n)


@triton.autotune(
    configs=[
        triton.Config({"BM": 32, "BN": 32, "BK": 16}, num_warps=2),
        triton.Config({"BM": 32, "BN": 64, "BK": 32}, num_warps=4),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        right = tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        total += tl.dot(left, right)
    tl.store(c + m[:, None] * N + n[None, :], total.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def scale_kernel(x, o, n, factor, extra, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n)
    tl.store(o + at, values * factor, mask=at < n + extra)  # one too many


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(13, 200, device="cuda")
    o = torch.empty_like(x)
    assert x.is_cuda
    softmax_kernel[(13,)](x, o, 200, BLOCK=256)
    torch.testing.assert_close(o, torch.softmax(x, dim=1))

    a, b = torch.randn(60, 48, dtype=torch.float16, device=DEVICE), torch.randn(48, 72, dtype=torch.float16).cuda()
    c = torch.empty(60, 72, dtype=torch.float16, device=DEVICE)
    matmul_kernel[lambda meta: (triton.cdiv(60, meta["BM"]), triton.cdiv(72, meta["BN"]))](a, b, c, 60, 72, 48)
    torch.testing.assert_close(c, (a.float() @ b.float()).half(), rtol=1e-2, atol=1e-2)
    assert matmul_kernel.best_config in matmul_kernel.configs

    x, o = torch.randn(100), torch.zeros(100)
    scale_kernel[(1,)](x, o, 100, 0.5, int("wrong" in sys.argv), BLOCK=128)
    torch.testing.assert_close(o, x * 0.5)
    torch.cuda.synchronize()
    print("all right")


main()
