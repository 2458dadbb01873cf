"""Group normalisation in three kernels: partial sums by atomics, statistics, then the scaling; hints and static assertions."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@triton.jit
def moments(x_ptr, sum_ptr, square_ptr, size, CHUNK: tl.constexpr, REPEAT: tl.constexpr):
    tl.static_assert(CHUNK % 16 == 0, "whole vectors")
    group = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    tl.assume(size > 0)
    total = tl.zeros((CHUNK,), dtype=tl.float32)
    square = tl.zeros_like(total)
    for r in tl.static_range(REPEAT):
        offsets = (part * REPEAT + r) * CHUNK + tl.arange(0, CHUNK)
        offsets = tl.max_contiguous(tl.multiple_of(offsets, CHUNK), CHUNK)
        x = tl.load(x_ptr + group * size + offsets, mask=offsets < size, other=0.0, cache_modifier=".ca").to(tl.float32)
        total += x
        square = tl.fma(x, x, square)
    tl.atomic_add(sum_ptr + group, tl.sum(total), sem="relaxed")
    tl.atomic_add(square_ptr + group, tl.sum(square))


@triton.jit
def statistics(sum_ptr, square_ptr, mean_ptr, rstd_ptr, groups, size, eps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < groups
    mean = tl.load(sum_ptr + i, mask, 0.0) / size
    variance = tl.maximum(tl.load(square_ptr + i, mask, 0.0) / size - mean * mean, 0.0)
    tl.store(mean_ptr + i, mean, mask)
    tl.store(rstd_ptr + i, tl.rsqrt(variance + eps), mask)


@triton.jit
def apply(x_ptr, y_ptr, mean_ptr, rstd_ptr, weight_ptr, bias_ptr, n, pixels, channels, per_group, BLOCK: tl.constexpr):
    pid, step = tl.program_id(0), tl.num_programs(0)
    for block in range(pid, tl.cdiv(n, BLOCK), step):
        i = block * BLOCK + tl.arange(0, BLOCK)
        mask = i < n
        channel = i // pixels % channels
        group = i // (pixels * per_group)
        x = tl.load(x_ptr + i, mask=mask, other=0)
        w, b = tl.load(weight_ptr + channel, mask=mask), tl.load(bias_ptr + channel, mask=mask)
        mean, rstd = tl.load(mean_ptr + group, mask=mask), tl.load(rstd_ptr + group, mask=mask)
        tl.store(y_ptr + i, (x - mean) * rstd * w + b, mask=mask)


class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return self.norm(x)


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels).to(DEVICE)

    def forward(self, x):
        n, c, h, w = x.shape
        groups = self.norm.num_groups
        size = x.numel() // (n * groups)
        sums, squares = torch.zeros((2, n * groups), device=x.device, dtype=torch.float32).unbind(0)
        mean, rstd = torch.empty_like(sums), torch.empty_like(sums)
        x = x.contiguous()
        y = torch.empty_like(x)
        moments[(n * groups, triton.cdiv(size, 128 * 2))](x, sums, squares, size, CHUNK=128, REPEAT=2)
        statistics[(1,)](sums, squares, mean, rstd, n * groups, size, self.norm.eps, BLOCK=triton.next_power_of_2(n * groups))
        sms = torch.cuda.get_device_properties(x.device).multi_processor_count
        apply[(min(sms, triton.cdiv(x.numel(), 256), 3),)](x, y, mean, rstd, self.norm.weight, self.norm.bias, x.numel(), h * w, c, c // groups, BLOCK=256, num_warps=8)
        return y


def get_inputs():
    return [torch.randn(2, 6, 9, 11)]


def get_init_inputs():
    return [3, 6]
