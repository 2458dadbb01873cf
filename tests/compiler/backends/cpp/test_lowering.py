"""A table of sketches, one for each thing the C++ coder does: lowered, built, run, and compared with the interpreter."""

from __future__ import annotations

import math

import pytest
import torch
from lowering import check

from kernelwright.sketch.parse import parse


def sketch(sizes: str, tensors: str, body: str, returns: str = '"y"'):
    indented = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return parse(f"{sizes}\n{tensors}\n@kernel\ndef work():\n{indented}\n\nreturns({returns})\n")


def xy(shape: str, dtype: str = "f32", out: str | None = None, out_dtype: str | None = None) -> str:
    return (
        f'x = tensor([{shape}], {dtype}, role="input", source="0")\n'
        f'y = tensor([{shape if out is None else out}], {out_dtype or dtype}, role="output")'
    )


WHOLE = '\nk = tensor([M, N], i32, role="input", source="1")'

CASES = {
    "relu": ("N = size(1000)", xy("N"), """
for i in parallel(0, N, 128):
    t = load(x[i:i+128], pad=0.0)
    store(y[i:i+128], maximum(t, 0.0))
"""),
    "large output, odd rows": ("M = size(2100)\nN = size(1003)", xy("M, N"), """
for i in parallel(0, M, 300):
    store(y[i:i+300, 0:N], load(x[i:i+300, 0:N]) * 2.0)
"""),
    "large output, strips with a rest": ("M = size(4000)\nN = size(1101)", xy("M, N", "f16"), """
for i in parallel(0, M, 500):
    store(y[i:i+500, 0:N], load(x[i:i+500, 0:N]) + 1.0)
"""),
    "picked positions that end inside a tile": ("N = size(200)", xy("N", "i32", out="8", out_dtype="i32"), """
store(y[0:8], full([8], 0, i32))
for i in range(0, N, 128):
    at = cast(abs(load(x[i:i+128], pad=9)) % 8, i64)
    one = where(iota(128) < index(N - i), full([1], 1, i32), 0)
    store(y[pick(at)], expand(one, [128]), mode="add")
"""),
    "softmax rows": ("M = size(7)\nN = size(33)", xy("M, N"), """
for i in parallel(0, M, 2):
    t = load(x[i:i+2, 0:N], pad=0.0)
    m = reduce_max(t, axis=1)
    e = exp(t - m)
    s = reduce_sum(e, axis=1)
    store(y[i:i+2, 0:N], e / s)
"""),
    "softmax online": ("M = size(5)\nN = size(70)", xy("M, N"), """
for i in parallel(0, M, 1):
    m = full([1], -inf, f32)
    s = full([1], 0.0, f32)
    for j in range(0, N, 16):
        t = load(x[i, j:j+16], pad=-inf)
        new = maximum(m, reduce_max(t, axis=0))
        s = s * exp(m - new) + reduce_sum(exp(t - new), axis=0)
        m = new
    for j in range(0, N, 16):
        store(y[i, j:j+16], exp(load(x[i, j:j+16], pad=0.0) - m) / s)
"""),
    "layer norm": ("M = size(6)\nN = size(48)", xy("M, N") + '\nw = tensor([N], f32, role="param", source="norm.weight")', """
for i in parallel(0, M, 1):
    t = load(x[i, 0:N])
    mean = reduce_sum(t, axis=0) / 48.0
    d = t - mean
    var = reduce_sum(d * d, axis=0) / 48.0
    store(y[i, 0:N], d * rsqrt(var + 1e-5) * load(w[0:N]))
"""),
    "column sum": ("M = size(50)\nN = size(37)", xy("M, N", out="N"), """
for j in parallel(0, N, 16):
    acc = full([16], 0.0, f32)
    for i in range(0, M, 1):
        acc = acc + load(x[i, j:j+16], pad=0.0)
    store(y[j:j+16], acc)
"""),
    "column max of a tile": ("M = size(20)\nN = size(37)", xy("M, N", out="N"), """
for j in parallel(0, N, 16):
    t = load(x[0:M, j:j+16], pad=-inf)
    store(y[j:j+16], squeeze(reduce_max(t, axis=0), axis=0))
"""),
    "max pool": ("H = size(17)\nW = size(23)\nC = size(3)", xy("C, H, W", out="C, 9, 12"), """
for n in parallel(0, C, 1):
    for h in parallel(0, 9, 1):
        best = full([12], -inf, f32)
        for a in range(0, 3, 1):
            for b in range(0, 3, 1):
                best = maximum(best, load(x[n, 2*h+a-1, b-1:b+23:2], pad=-inf))
        store(y[n, h, 0:12], best)
"""),
    "transpose": ("M = size(19)\nN = size(34)", xy("M, N", out="N, M"), """
for i in parallel(0, M, 8):
    for j in parallel(0, N, 8):
        t = load(x[i:i+8, j:j+8], pad=0.0)
        store(y[j:j+8, i:i+8], permute(t, (1, 0)))
"""),
    "argmax": ("M = size(6)\nN = size(41)", xy("M, N", out="M", out_dtype="i64"), """
for i in parallel(0, M, 1):
    store(y[i], squeeze(arg_max(load(x[i, 0:N]), axis=0), axis=0))
"""),
    "argmin of columns": ("M = size(16)\nN = size(21)", xy("M, N", out="N", out_dtype="i64"), """
for j in parallel(0, N, 7):
    store(y[j:j+7], squeeze(arg_min(load(x[0:M, j:j+7]), axis=0), axis=0))
"""),
    "cumsum": ("M = size(6)\nN = size(41)", xy("M, N"), """
for i in parallel(0, M, 1):
    store(y[i, 0:N], scan_sum(load(x[i, 0:N]), axis=0))
"""),
    "cumsum of columns, reversed": ("M = size(9)\nN = size(24)", xy("M, N"), """
for j in parallel(0, N, 8):
    store(y[0:M, j:j+8], scan_sum(load(x[0:M, j:j+8]), axis=0, reverse=True))
"""),
    "cumprod, exclusive": ("M = size(9)\nN = size(24)", xy("M, N"), """
for i in parallel(0, M, 3):
    store(y[i:i+3, 0:N], scan_prod(load(x[i:i+3, 0:N]), axis=1, exclusive=True))
"""),
    "logcumsumexp": ("M = size(4)\nN = size(40)", xy("M, N"), """
for i in parallel(0, M, 1):
    store(y[i, 0:N], scan_logsumexp(load(x[i, 0:N]), axis=0))
"""),
    "long rows scanned in pieces, backwards": ("M = size(3)\nN = size(1203)", xy("M, N"), """
for i in parallel(0, M, 1):
    t = load(x[i, 0:N])
    store(y[i, 0:N], scan_sum(t * t, axis=0, reverse=True, exclusive=True) + scan_max(t, axis=0))
"""),
    "vectors with a rest": ("M = size(5)\nN = size(203)", xy("M, N"), """
for i in parallel(0, M, 1):
    t = load(x[i, 0:N])
    a = erf(t) + tanh(t) * sigmoid(t) - log1p(exp(t)) + sqrt(abs(t) + 1.0)
    store(y[i, 0:N], where((t > 0.5) | (t != t), expm1(a), log(abs(a) + 0.25)) + minimum(t, 0.1))
"""),
    "short rows, whose last vector overlaps": ("M = size(5)\nN = size(28)", xy("M, N"), """
for i in parallel(0, M):
    store(y[i, 0:N], tanh(exp(load(x[i, 0:N]))) * 3.0)
"""),
    "rows that are changed in place have no overlap": ("M = size(5)\nN = size(45)", xy("M, N"), """
for i in parallel(0, M):
    store(y[i, 0:N], load(x[i, 0:N]))
    for r in range(0, 3):
        store(y[i, 0:N], load(y[i, 0:N]) * 3.0 + 1.0)
"""),
    "blocks that end inside the last vector": ("M = size(5)\nN = size(71)", xy("M, N"), """
for i in parallel(0, M):
    for j in parallel(0, N, 40):
        store(y[i, j:j+40], exp(load(x[i, j:j+40], pad=0.0)))
"""),
    "reductions in vectors, with a rest": ("M = size(5)\nK = size(3)\nN = size(109)", xy("M, K, N", out="M, 4"), """
for i in parallel(0, M, 1):
    t = load(x[i, 0:K, 0:N])
    store(y[i, 0:1], squeeze(reduce_sum(t * t, axis=(0, 1)), axis=0))
    store(y[i, 1:2], squeeze(reduce_max(t, axis=(0, 1)), axis=0))
    store(y[i, 2:3], squeeze(reduce_min(exp(t), axis=(0, 1)), axis=0))
    store(y[i, 3:4], squeeze(reduce_prod(t * 0.01 + 1.0, axis=(0, 1)), axis=0))
"""),
    "sort with ties": ("M = size(4)\nN = size(300)", xy("M, N", out_dtype="i64"), """
for i in parallel(0, M, 1):
    t = floor(load(x[i, 0:N]) * 3.0)
    store(y[i, 0:N], arg_sort(t, axis=0))
"""),
    "first few of a row": ("M = size(4)\nN = size(300)", xy("M, N", out="M, 7", out_dtype="i64"), """
for i in parallel(0, M, 1):
    t = floor(load(x[i, 0:N]) * 3.0)
    store(y[i, 0:7], arg_sort(t, axis=0, descending=True)[0:7])
"""),
    "sort of wide and of whole numbers": ("M = size(4)\nN = size(90)", xy("M, N", "f64", out_dtype="i64") + WHOLE, """
for i in parallel(0, M, 1):
    order = arg_sort(load(k[i, 0:N]), axis=0, descending=True)
    store(y[i, 0:N], order + arg_sort(load(x[i, 0:N]), axis=0))
"""),
    "sort": ("M = size(5)\nN = size(31)", xy("M, N"), """
for i in parallel(0, M, 1):
    t = load(x[i, 0:N])
    store(y[i, 0:N], take(t, arg_sort(t, axis=0, descending=True), axis=0))
"""),
    "matmul": ("M = size(37)\nN = size(50)\nK = size(29)", """
a = tensor([M, K], f32, role="input", source="0")
b = tensor([K, N], f32, role="input", source="1")
y = tensor([M, N], f32, role="output")""", """
for i in parallel(0, M, 16):
    for j in parallel(0, N, 32):
        acc = full([16, 32], 0.0, f32, level="accumulator")
        for k in range(0, K, 8):
            acc = gemm(load(a[i:i+16, k:k+8], pad=0.0), load(b[k:k+8, j:j+32], pad=0.0), acc)
        store(y[i:i+16, j:j+32], maximum(acc, 0.0))
"""),
    "matmul of a transposed operand": ("M = size(32)\nN = size(48)\nK = size(24)", """
a = tensor([K, M], f32, role="input", source="0")
b = tensor([N, K], f32, role="input", source="1")
y = tensor([M, N], f32, role="output")""", """
for i in parallel(0, M, 16):
    for j in parallel(0, N, 16):
        p = gemm(permute(load(a[0:K, i:i+16]), (1, 0)), permute(load(b[j:j+16, 0:K]), (1, 0)))
        store(y[i:i+16, j:j+16], p)
"""),
    "attention": ("T = size(40)\nD = size(16)", """
q = tensor([T, D], f32, role="input", source="0")
k = tensor([T, D], f32, role="input", source="1")
v = tensor([T, D], f32, role="input", source="2")
y = tensor([T, D], f32, role="output")""", """
for i in parallel(0, T, 16):
    qt = load(q[i:i+16, 0:D], pad=0.0) * 0.25
    m = full([16, 1], -inf, f32)
    l = full([16, 1], 0.0, f32)
    acc = full([16, D], 0.0, f32)
    for j in range(0, T, 8):
        s = gemm(qt, permute(load(k[j:j+8, 0:D]), (1, 0)))
        new = maximum(m, reduce_max(s, axis=1))
        p = exp(s - new)
        scale = exp(m - new)
        l = l * scale + reduce_sum(p, axis=1)
        acc = gemm(p, load(v[j:j+8, 0:D]), acc * scale)
        m = new
    store(y[i:i+16, 0:D], acc / l)
"""),
    "embedding": ("V = size(4)\nN = size(9)\nD = size(20)", """
w = tensor([V, D], f32, role="input", source="0")
at = tensor([N], i64, role="input", source="1")
y = tensor([N, D], f32, role="output")""", """
for i in parallel(0, N, 4):
    rows = load(at[i:i+4], pad=0)
    store(y[i:i+4, 0:D], load(w[pick(rows), 0:D]))
"""),
    "scatter add": ("V = size(4)\nN = size(9)\nD = size(20)", """
x = tensor([N, D], f32, role="input", source="0")
at = tensor([N], i64, role="input", source="1")
y = tensor([V, D], f32, role="output")""", """
for i in range(0, V, 1):
    store(y[i, 0:D], full([D], 0.0, f32))
for i in parallel(0, N, 1):
    store(y[pick(load(at[i])), 0:D], load(x[i, 0:D]), mode="add")
"""),
    "reshape and parts": ("N = size(48)", xy("N", out="6, 4"), """
for i in parallel(0, 1, 1):
    t = reshape(load(x[0:N]), [6, 8])
    store(y[0:6, 0:4], t[0:6, 1:8:2] - t[0:6, 0:4])
"""),
    "half precision": ("M = size(5)\nN = size(40)", xy("M, N", "f16"), """
for i in parallel(0, M, 1):
    t = cast(load(x[i, 0:N]), f32)
    s = reduce_sum(t * t, axis=0)
    store(y[i, 0:N], cast(t * rsqrt(s), f16))
"""),
    "bfloat arithmetic": ("N = size(100)", xy("N", "bf16"), """
for i in parallel(0, N, 32):
    t = load(x[i:i+32], pad=0.0)
    store(y[i:i+32], t * t + t)
"""),
    "integers": ("N = size(77)", xy("N", "i32"), """
for i in parallel(0, N, 32):
    t = load(x[i:i+32], pad=0) - 2
    store(y[i:i+32], where(t < 0, t // 3, t % 2) + (t & 1))
"""),
    "bytes wrap around": ("N = size(40)", xy("N", "u8"), """
for i in parallel(0, N, 8):
    t = load(x[i:i+8])
    store(y[i:i+8], t * 100 + 7)
"""),
    "any of a mask": ("M = size(4)\nN = size(40)", xy("M, N", out="M", out_dtype="bool"), """
for i in parallel(0, M, 1):
    store(y[i], squeeze(reduce_any(load(x[i, 0:N]) > 1.9, axis=0), axis=0))
"""),
    "triangle": ("N = size(21)", xy("N, N"), """
for i in parallel(0, N, 4):
    row = unsqueeze(iota(4), axis=1) + i
    keep = unsqueeze(iota(N), axis=0) <= row
    store(y[i:i+4, 0:N], where(keep, load(x[i:i+4, 0:N], pad=0.0), 0.0))
"""),
    "double": ("M = size(5)\nN = size(33)", xy("M, N", "f64"), """
for i in parallel(0, M, 1):
    t = load(x[i, 0:N])
    store(y[i, 0:N], log1p(exp(t)) + tanh(t) - expm1(t) * sigmoid(t))
"""),
    "carried swap": ("N = size(16)", xy("N"), """
for i in parallel(0, 1, 1):
    a = load(x[0:8])
    b = load(x[8:16])
    for k in range(0, 101, 1):
        c = a
        a = b * 0.5 + 0.1
        b = c
    store(y[0:8], a)
    store(y[8:16], b)
"""),
    "carried and shifted": ("N = size(16)", xy("N"), """
for i in parallel(0, 1, 1):
    a = load(x[0:N])
    for k in range(0, 50, 1):
        half = a[0:N] * 0.5
        s = reduce_sum(half, axis=0)
        a = permute(reshape(half, [4, 4]), (1, 0))
        a = reshape(a, [16]) + s * 0.01
    store(y[0:N], a)
"""),
    "in place": ("N = size(16)", xy("N"), """
for i in range(0, N, 4):
    store(y[i:i+4], load(x[i:i+4]))
for i in range(4, N, 4):
    t = load(y[i-4:i])
    u = load(y[i:i+4])
    store(y[i:i+4], t + u)
"""),
    "full reduction": ("M = size(40)\nN = size(40)", xy("M, N", out=""), """
s = full([], 0.0, f32)
for i in range(0, M, 8):
    s = s + squeeze(squeeze(reduce_sum(load(x[i:i+8, 0:N]), axis=(0, 1)), axis=1), axis=0)
store(y[()], s)
"""),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_same_as_interpreter(name: str) -> None:
    check(sketch(*CASES[name]))


def test_sort_knows_nan_infinity_and_zeros() -> None:
    """NaN is the largest, -0 equals 0, and equal elements keep their order, whichever way the rows are sorted."""
    values = torch.tensor([0.0, -0.0, math.nan, 1.0, -math.inf, math.inf, -1.0, 0.0, math.nan, 1e-40]).repeat(2, 9)
    for descending in (False, True):
        body = f"""
for i in parallel(0, M, 1):
    order = arg_sort(load(x[i, 0:N]), axis=0, descending={descending})
    store(y[i, 0:N], order)
    store(z[i, 0:6], arg_sort(load(x[i, 0:N]), axis=0, descending={descending})[0:6])
"""
        tensors = xy("M, N", out_dtype="i64") + '\nz = tensor([M, 6], i64, role="output")'
        check(sketch("M = size(2)\nN = size(90)", tensors, body, '("y", "z")'), [values])
