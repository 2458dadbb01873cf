"""Bias, GELU and dropout-free residual: heuristics above autotune, configurations that are pruned, a grid by lambda, streams and events."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


def is_hip():
    return triton.runtime.driver.active.get_current_target().backend == "hip"


def configs():
    return [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n}, num_warps=w, num_stages=s)
        for m in (1, 4) for n in (64, 256) for w in (2, 4) for s in ((1,) if is_hip() else (2, 3))
    ]  # fmt: skip


def keep_small(configs, named_args, **kwargs):
    n = named_args["n_cols"]
    return [c for c in configs if c.kwargs["BLOCK_N"] <= max(64, triton.next_power_of_2(n))] or configs[:1]


@triton.autotune(configs=configs(), key=["n_rows", "n_cols"], prune_configs_by={"early_config_prune": keep_small}, reset_to_zero=["count_ptr"])
@triton.heuristics({
    "EVEN_N": lambda args: args["n_cols"] % args["BLOCK_N"] == 0,
    "HAS_RESIDUAL": lambda args: args["res_ptr"] is not None,
})
@triton.jit
def bias_gelu_kernel(x_ptr, bias_ptr, res_ptr, out_ptr, count_ptr, n_rows, n_cols, stride_x, stride_o,
                     EVEN_N: tl.constexpr, HAS_RESIDUAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    if EVEN_N:
        mask = rows < n_rows
        bias = tl.load(bias_ptr + cols)
    else:
        mask = (rows < n_rows) & (cols < n_cols)
        bias = tl.load(bias_ptr + cols, mask=cols < n_cols, other=0.0)
    x = tl.load(x_ptr + rows * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    x += bias
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    if HAS_RESIDUAL:
        y += tl.load(res_ptr + rows * stride_x + cols, mask=mask, other=0.0)
    tl.store(out_ptr + rows * stride_o + cols, y.to(out_ptr.dtype.element_ty), mask=mask)
    tl.atomic_add(count_ptr, tl.sum(tl.sum(mask.to(tl.int32), axis=1), axis=0))


def bias_gelu(x, bias, residual=None):
    assert x.is_cuda and x.is_contiguous(), "expected a contiguous CUDA tensor"
    rows, cols = x.shape
    out = torch.empty((rows, cols), device="cuda", dtype=x.dtype)
    count = torch.zeros(1, dtype=torch.int32, device=x.device)
    grid = lambda META: (triton.cdiv(rows, META["BLOCK_M"]), triton.cdiv(cols, META["BLOCK_N"]))
    bias_gelu_kernel[grid](x, bias, residual, out, count, rows, cols, x.stride(0), out.stride(0))
    return out, count


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))

    def forward(self, x, residual):
        plain = torch.nn.functional.gelu(x + self.bias)
        return plain, plain + residual


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols, device="cuda"))
        self.stream = torch.cuda.Stream()

    def forward(self, x, residual):
        start = torch.cuda.Event(enable_timing=True)
        start.record(torch.cuda.current_stream())
        with torch.cuda.device(x.device), torch.cuda.stream(self.stream):
            plain, _ = bias_gelu(x, self.bias)
            both, _ = bias_gelu(x, self.bias, residual)
        torch.cuda.current_stream().wait_stream(self.stream)
        torch.cuda.synchronize()
        return plain, both


def get_inputs():
    return [torch.randn(13, 100), torch.randn(13, 100)]


def get_init_inputs():
    return [100]
