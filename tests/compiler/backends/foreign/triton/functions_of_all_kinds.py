"""Elementwise functions from tl, tl.math, libdevice and inline expressions, chosen by a constexpr, over a 1-D grid."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda.libdevice import tanh as cuda_tanh

ACT_GELU: tl.constexpr = tl.constexpr(0)
LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def gelu_tanh(x):
    return 0.5 * x * (1 + libdevice.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


@triton.jit
def mish(x):
    sp = tl.where(x > 20.0, x, tl.log(1.0 + tl.exp(x)))
    return x * cuda_tanh(sp)


@triton.jit
def pieces(x, KIND: tl.constexpr):
    if KIND == ACT_GELU:
        return gelu_tanh(x)
    elif KIND == 1:
        return x * tl.sigmoid(x)
    elif KIND == 2:
        return mish(x)
    elif KIND == 3:
        return 0.5 * x * (1.0 + tl.math.erf(x * 0.7071067811865476))
    elif KIND == 4:
        return libdevice.log1p(libdevice.exp(-tl.abs(x))) + tl.maximum(x, 0.0)
    elif KIND == 5:
        return tl.math.fma(x, x, tl.clamp(x, -1.0, 1.0)) + tl.exp2(-tl.abs(x) * LOG2E) + tl.math.rsqrt(x * x + 1.0)
    else:
        return tl.where(x > 0, x, libdevice.expm1(x)) + libdevice.pow(tl.abs(x), 1.5) + tl.floor(x) + tl.cos(x) + tl.sqrt_rn(tl.abs(x))


@triton.jit(do_not_specialize=["n_elements"])
def elementwise(x_ptr, out_ptr, n_elements, KIND: tl.constexpr, BLOCK_SIZE: tl.constexpr = 1024):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, eviction_policy="evict_first")
    tl.device_assert(BLOCK_SIZE > 0)
    tl.store(out_ptr + offsets, pieces(x.to(tl.float32), KIND).to(x_ptr.dtype.element_ty), mask=mask)


class Model(nn.Module):
    def forward(self, x):
        f = torch.nn.functional
        return (
            f.gelu(x, approximate="tanh"), f.silu(x), f.mish(x), f.gelu(x), f.softplus(x),
            x * x + x.clamp(-1, 1) + torch.exp(-x.abs()) + torch.rsqrt(x * x + 1),
            f.elu(x) + x.abs() ** 1.5 + x.floor() + x.cos() + x.abs().sqrt(),
        )


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        n = x.numel()
        outs = []
        for kind in range(7):
            out = torch.empty_like(x, memory_format=torch.contiguous_format)
            elementwise[lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)](x, out, n, KIND=kind, num_warps=4)
            outs.append(out)
        return tuple(outs)


def get_inputs():
    return [torch.randn(3, 1111)]


def get_init_inputs():
    return []
