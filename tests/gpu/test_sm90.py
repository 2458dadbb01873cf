"""Code for sm_90 as Triton, TileLang and nvcc write it: barriers in shared memory, tiles by tensor maps, asynchronous products."""

from __future__ import annotations

import re
import struct
from functools import cache

import pytest
import torch

from kernelwright.core.errors import GpuError
from kernelwright.gpu import Program, Report
from kernelwright.gpu.tensor_map import tensor_map
from tests.gpu.devices import cuda_ptx, launch, line_of, memory_of

M, N, K = 256, 256, 192
SHARED = 98328


@cache
def triton_product(entry: str) -> str:
    """A product by tensor descriptors that the host or the kernel makes, as Triton compiles it for sm_90."""
    pytest.importorskip("triton")
    from tests.gpu import tile_kernels

    return tile_kernels.compiled(entry)


def product(ptx: str, entry: str, *, checks: bool = True) -> tuple[Report, torch.Tensor, torch.Tensor]:
    """A launch on random factors: what was seen, the result, what it should be."""
    a, b, c = torch.randn(M, K).half(), torch.randn(K, N).half(), torch.full((M, N), float("nan")).half()
    program = Program.from_ptx(ptx, checks=checks)
    parameters = program.entries[entry].parameters
    maps = [
        tensor_map(6, a.data_ptr(), (K, M), (2 * K,), (64, 128), swizzle=3),
        tensor_map(6, b.data_ptr(), (N, K), (2 * N,), (64, 64), swizzle=3),
        tensor_map(6, c.data_ptr(), (N, M), (2 * N,), (64, 128), swizzle=3),
    ]
    scratch = torch.zeros(16 * 384 + 256, dtype=torch.uint8)
    at = (scratch.data_ptr() + 255) & ~255
    if entry == "host":
        values = [maps[0], b"", b"", b"", b"", maps[1], b"", b"", b"", b"", maps[2], b"", b"", b"", b"", struct.pack("<i", K)]
    else:
        values = [*(struct.pack("<Q", t.data_ptr()) for t in (a, b, c)), *(struct.pack("<i", n) for n in (M, N, K))]
        values += 2 * [struct.pack("<Q", at)]
    params = bytearray(program.entries[entry].parameter_bytes)
    for p, value in zip(parameters, values, strict=False):
        params[p.offset : p.offset + len(value)] = value
    report = program.launch(
        entry, (M // 128, N // 128), (128,), bytes(params), SHARED, memory=memory_of((a, b, c, scratch)) if checks else None,
        patience=0.5,
    )  # fmt: skip
    return report, c.float(), a.float() @ b.float()


@pytest.mark.parametrize("entry", ["host", "own"])
def test_tiles_by_descriptors_of_triton(entry: str) -> None:
    report, have, want = product(triton_product(entry), entry)
    assert report.ok, report.faults
    torch.testing.assert_close(have, want, atol=0.05, rtol=2e-3)


@pytest.mark.parametrize(
    ("what", "by", "kinds"),
    [
        (r"@%p\d+ mbarrier\.init", "//", {"uninitialised"}),
        (r"mbarrier\.try_wait\.parity\S* (\S+), .*?;", r"mov.pred \1 -1;", {"stale_copy"}),
        (r"wgmma\.wait_group\S* \d;", "", {"unfinished_product", "shared_race"}),
        (r"mbarrier\.arrive\.expect_tx(\S*) _, (\[\S+\]), 32768", r"mbarrier.arrive.expect_tx\1 _, \2, 32784", {"deadlock"}),
    ],
)
def test_what_is_taken_out_of_such_a_product_is_seen(what: str, by: str, kinds: set[str]) -> None:
    text = triton_product("host")
    broken = re.sub(what, by.replace("mov.pred ", "setp.eq.u32 ").replace(" -1;", ", 0, 0;"), text)
    assert broken != text
    report, _, _ = product(broken, "host")
    assert {f.kind for f in report.faults} & kinds, report.faults[:3]
    assert all(f.location is not None for f in report.faults)


@cache
def tilelang_product() -> tuple[str, int]:
    """A product of TileLang for sm_90, warps that copy beside warps that multiply; and its shared memory."""
    tilelang = pytest.importorskip("tilelang")
    from tests.gpu import tile_programs

    source, shared = tile_programs.product(M, N, K)
    home = tilelang.__path__[0]
    return cuda_ptx(source, "sm_90a", "-std=c++20", "-w", f"-I{home}/src", f"-I{home}/3rdparty/cutlass/include"), shared


@pytest.mark.slow
def test_a_warp_specialised_product_of_tilelang() -> None:
    ptx, shared = tilelang_product()
    a, b, c = torch.randn(M, K).half(), torch.randn(K, N).half(), torch.full((M, N), float("nan")).half()
    params = tensor_map(6, a.data_ptr(), (K, M), (2 * K,), (64, 128), swizzle=3)
    params += tensor_map(6, b.data_ptr(), (N, K), (2 * N,), (64, 64), swizzle=3) + struct.pack("<Q", c.data_ptr())
    program = Program.from_ptx(ptx, checks=True)
    grid, memory = (N // 128, M // 128), memory_of((a, b, c))
    report = program.launch("main_kernel", grid, (256,), params, shared, memory=memory)
    assert report.ok, report.faults
    torch.testing.assert_close(c.float(), a.float() @ b.float(), atol=0.05, rtol=2e-3)


PIPELINE = r"""
#include <cstdint>
__device__ inline uint32_t at(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ inline void wait(uint64_t* bar, uint32_t phase) {
    asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra D; bra W; D: }"
                 ::"r"(at(bar)), "r"(phase) : "memory");
}
__device__ inline void fill(float* to, const float* from, uint64_t* bar) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(at(bar)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];"
                 ::"r"(at(to)), "l"(from), "r"(at(bar)) : "memory");
}
extern "C" __global__ void stages(const float* x, float* y, int n) {
    __shared__ alignas(128) float tile[2][256];
    __shared__ uint64_t full[2], empty[2];
    if (threadIdx.x == 0)
        for (int k = 0; k < 2; k++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(full + k)));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 256;" ::"r"(at(empty + k)));
        }
    __syncthreads();  // barriers made
    if (threadIdx.x >= 256) {
        if (threadIdx.x == 256)
            for (int s = 0; s < n; s++) {
                if (s >= 2) wait(empty + s % 2, (s / 2 + 1) & 1);  // tile free
                fill(tile[s % 2], x + 256 * s, full + s % 2);
            }
        return;
    }
    float sum = 0;
    for (int s = 0; s < n; s++) {
        wait(full + s % 2, s / 2 & 1);  // tile there
        sum += tile[s % 2][threadIdx.x];  // use
        asm volatile("{.reg .b64 t; mbarrier.arrive.shared::cta.b64 t, [%0]; }" ::"r"(at(empty + s % 2)) : "memory");  // used
    }
    y[threadIdx.x] = sum;
}
"""


def test_a_pipeline_by_barriers_in_shared_memory() -> None:
    x, y = torch.randn(7, 256), torch.zeros(256)
    for checks in (False, True):
        report = launch(cuda_ptx(PIPELINE, "sm_90a"), "stages", (1,), (288,), x, y, 7, checks=checks)
        assert report.ok, report.faults
        torch.testing.assert_close(y, x.sum(0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mark", "kind"),
    [
        ("// barriers made", "shared_race"),
        ("// tile free", "shared_race"),
        ("// tile there", "stale_copy"),
        ("// used", "deadlock"),
    ],
)
def test_each_step_of_a_pipeline_is_needed(mark: str, kind: str) -> None:
    x, y = torch.randn(7, 256), torch.zeros(256)
    broken = "\n".join(line if mark not in line else "" for line in PIPELINE.splitlines())
    report = launch(cuda_ptx(broken, "sm_90a"), "stages", (1,), (288,), x, y, 7, checks=True, patience=0.5)
    assert kind in {f.kind for f in report.faults}, report.faults
    lines = {f.location.outermost.line for f in report.faults if f.location and f.kind == kind}
    assert lines & {line_of(broken, m) for m in ("// use", "fill(tile", "wait(", "mbarrier.", "cp.async.bulk", "try_wait")}


CLUSTER = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(4, 1, 1) totals(const float* x, float* y) {
    __shared__ float mine[32], sum;
    cg::cluster_group cluster = cg::this_cluster();
    mine[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
    cluster.sync();  // filled
    float total = 0;
    for (unsigned r = 0; r < cluster.num_blocks(); r++) total += cluster.map_shared_rank(mine, r)[threadIdx.x];  // read
    y[blockIdx.x * 32 + threadIdx.x] = total;
    cluster.sync();  // stay
}
"""


@pytest.mark.parametrize(
    "left_out", ["", pytest.param("// filled", marks=pytest.mark.slow), pytest.param("// stay", marks=pytest.mark.slow)]
)
def test_blocks_of_a_cluster_read_each_others_memory(left_out: str) -> None:
    text = "\n".join("" if left_out and left_out in line else line for line in CLUSTER.splitlines())
    x, y = torch.randn(8, 32), torch.zeros(8, 32)
    report = launch(cuda_ptx(text, "sm_90a"), "totals", (8,), (32,), x, y, checks=True, cluster=(4, 1, 1))
    if not left_out:
        assert report.ok, report.faults
        torch.testing.assert_close(y, x.view(2, 4, 32).sum(1).repeat_interleave(4, 0))
    else:
        assert {f.kind for f in report.faults} & {"uninitialised", "shared_race", "block_ended"}
        assert line_of(text, "// read") in {f.location.outermost.line for f in report.faults if f.location}


def test_a_map_that_cuda_refuses_is_refused() -> None:
    for arguments in (
        (6, 0x1000, (64, 64), (100,), (64, 64)),
        (6, 0x1008, (64, 64), (128,), (64, 64)),
        (6, 0x1000, (64, 64), (128,), (300, 64)),
        (99, 0x1000, (64, 64), (128,), (64, 64)),
    ):
        with pytest.raises(GpuError):
            tensor_map(*arguments)
