"""The interpreter: what each operation means, what loads and stores do at the edges, and what strict mode finds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.interpret import interpreter
from kernelwright.sketch.parse import parse

INF, NAN = math.inf, math.nan


def compute(expression: str, **tensors: torch.Tensor) -> torch.Tensor:
    """The value of one tile expression over whole input tensors, each loaded under its name."""
    shapes = {name: list(t.shape) for name, t in tensors.items()}
    names = {v: k.value for k, v in interpreter.TORCH_DTYPE.items()}
    declared = "".join(
        f'{n}_in = tensor({shapes[n]}, {names[t.dtype]}, role="input", source="{i}")\n'
        for i, (n, t) in enumerate(tensors.items())
    )
    loads = "".join(f"    {n} = load({n}_in[{', '.join(':' * t.ndim) or '()'}])\n" for n, t in tensors.items())
    text = f"{declared}@kernel\ndef k():\n{loads}    result = {expression}\nreturns(None)\n"
    sketch = parse(text)
    machine = interpreter._Machine(sketch, {f"{n}_in": t for n, t in tensors.items()}, {}, None, None)
    values: dict[str, torch.Tensor] = {}
    kernel = sketch.steps[0]
    assert isinstance(kernel, nodes.Kernel)
    machine.block(kernel.body, values)
    return values["result"]


def t(*values: object, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(list(values), dtype=dtype)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("maximum(x, 1.0)", t(NAN, 2.0, 1.0, INF)),
        ("minimum(x, 1.0)", t(NAN, 1.0, -3.0, 1.0)),
        ("reduce_max(x, axis=0)", t(NAN)),
        ("arg_max(x, axis=0)", t(0, dtype=torch.int64)),
        ("arg_sort(x, axis=0)", t(2, 1, 3, 0, dtype=torch.int64)),
        ("arg_sort(x, axis=0, descending=True)", t(0, 3, 1, 2, dtype=torch.int64)),
        ("isnan(x)", t(True, False, False, False, dtype=torch.bool)),
        ("where(isnan(x), 0.0, x)", t(0.0, 2.0, -3.0, INF)),
        ("x[3:0:-1]", t(INF, -3.0, 2.0)),
        ("x % 2.0", t(NAN, 0.0, 1.0, NAN)),
        ("fmod(x, 2.0)", t(NAN, 0.0, -1.0, NAN)),
        ("x // 2.0", t(NAN, 1.0, -2.0, NAN)),
    ],
)
def test_float_semantics(expression: str, wanted: torch.Tensor) -> None:
    found = compute(expression, x=t(NAN, 2.0, -3.0, INF))
    torch.testing.assert_close(found, wanted, equal_nan=True)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("n // 4", [-2, -1, 0, 1]),
        ("n % 4", [3, 3, 0, 3]),
        ("fmod(n, 4)", [-1, -1, 0, 3]),
        ("n >> 1", [-3, -1, 0, 3]),
        ("~n", [4, 0, -1, -8]),
        ("reduce_sum(n, axis=0)", [1]),
        ("reduce_min(n, axis=0)", [-5]),
        ("scan_sum(n, axis=0)", [-5, -6, -6, 1]),
        ("scan_sum(n, axis=0, exclusive=True)", [0, -5, -6, -6]),
        ("scan_sum(n, axis=0, reverse=True)", [1, 6, 7, 7]),
        ("scan_max(n, axis=0, reverse=True, exclusive=True)", [7, 7, 7, -(2**31)]),
        ("take(n, cast(full([2], 3, i64), i64), axis=0)", [7, 7]),
    ],
)
def test_integer_semantics(expression: str, wanted: list[int]) -> None:
    found = compute(expression, n=t(-5, -1, 0, 7, dtype=torch.int32))
    assert found.dtype == torch.int32
    assert found.tolist() == wanted


def test_integer_sums_wrap_in_their_dtype() -> None:
    assert compute("reduce_sum(n, axis=0)", n=t(200, 100, dtype=torch.uint8)).tolist() == [44]


def test_empty_axes_give_the_neutral_element() -> None:
    empty = torch.empty(0, 2)
    assert compute("reduce_max(x, axis=0)", x=empty).tolist() == [[-INF, -INF]]
    assert compute("reduce_prod(x, axis=0)", x=empty).tolist() == [[1.0, 1.0]]
    assert compute("scan_sum(x, axis=0)", x=empty).shape == (0, 2)


def test_half_operations_round_once() -> None:
    x = torch.randn(1000).half()
    y = torch.randn(1000).half()
    wanted = (x.numpy().astype(np.float32) / y.numpy().astype(np.float32)).astype(np.float16)
    assert compute("x / y", x=x, y=y).numpy().tobytes() == wanted.tobytes()


def test_gemm_accumulates_in_the_accumulator() -> None:
    a, b = torch.full((2, 300), 100, dtype=torch.int8), torch.full((300, 2), 100, dtype=torch.int8)
    assert compute("gemm(a, b)", a=a, b=b).tolist() == [[3_000_000] * 2] * 2
    half = torch.full((1, 4096), 1.0).half()
    assert compute("gemm(a, permute(a, [1, 0]))", a=half).tolist() == [[4096.0]]
    assert compute("gemm(a, b, c)", a=torch.eye(2), b=torch.eye(2), c=torch.ones(2, 2)).tolist() == [[2.0, 1.0], [1.0, 2.0]]


def test_casts_and_bits() -> None:
    assert compute("cast(x, i32)", x=t(-1.7, 1.7, 0.0)).tolist() == [-1, 1, 0]
    assert compute("cast(x, bool)", x=t(-0.5, 0.0, NAN)).tolist() == [True, False, True]
    assert compute("bitcast(x, i32)", x=t(1.0)).tolist() == [0x3F800000]


def test_shapes() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    assert compute("reshape(permute(x, [1, 0]), [2, 6])", x=x).tolist() == x.T.reshape(2, 6).tolist()
    assert compute("expand(x[1:2, :], [3, 4])", x=x).tolist() == x[1:2].expand(3, 4).tolist()
    assert compute("x[1, 0:4:2]", x=x).tolist() == [4.0, 6.0]
    assert compute("unsqueeze(reduce_sum(x, axis=1), axis=0)", x=x).shape == (1, 3, 1)


# ---------------------------------------------------------------- memory

COPY = """
x = tensor([5, 6], f32, role="input", source="0")
ids = tensor([3], i64, role="input", source="1")
y = tensor([5, 6], f32, role="output")
@kernel
def k():
    store(y[:, :], 0.0)
    BODY
returns("y")
"""


def copied(body: str, ids: list[int] | None = None, **options: object) -> torch.Tensor:
    sketch = parse(COPY.replace("BODY", body.replace("\n", "\n    ")))
    x = torch.arange(1.0, 31.0).reshape(5, 6)
    result = interpreter.call(sketch, [x, torch.tensor(ids or [0, 1, 2])], **options)
    assert isinstance(result, torch.Tensor)
    return result


X = torch.arange(1.0, 31.0).reshape(5, 6)


def test_loads_pad_and_stores_drop_outside() -> None:
    found = copied("store(y[0:4, 0:4], load(x[-1:3, 4:8], pad=9.0))")
    wanted = torch.zeros(5, 6)
    wanted[:4, :4] = 9.0
    wanted[1:4, :2] = X[0:3, 4:6]
    assert torch.equal(found, wanted)
    found = copied("store(y[-2:3, 4:9], load(x[:, 0:5]))")
    wanted = torch.zeros(5, 6)
    wanted[0:3, 4:6] = X[2:5, 0:2]
    assert torch.equal(found, wanted)


def test_steps_forwards_and_backwards() -> None:
    assert torch.equal(copied("store(y[:, :], load(x[4:-1:-1, 5:-1:-1]))"), X.flip(0, 1))
    found = copied("store(y[:, 0:3], load(x[:, 1:7:2], pad=0.0))")
    assert torch.equal(found[:, :3], X[:, 1::2])
    found = copied("store(y[4:-1:-2, 0], full([3], 1.0, f32))")
    assert found[:, 0].tolist() == [1.0, 0.0, 1.0, 0.0, 1.0]
    found = copied("store(y[:, 0:4], load(x[:, 7:-1:-2], pad=-1.0))")
    assert found[0, :4].tolist() == [-1.0, 6.0, 4.0, 2.0]


def test_picks_gather_and_scatter() -> None:
    found = copied("store(y[0:3, :], load(x[pick(load(ids[:])), :]))", [4, 0, 4])
    assert torch.equal(found[:3], X[[4, 0, 4]])
    found = copied("store(y[0:2, 0:3], permute(load(x[1:3, pick(load(ids[:]))]), [1, 0]))", [5, 0, 2])
    assert torch.equal(found[:2, :3], X[1:3][:, [5, 0, 2]])
    found = copied("store(y[0, pick(load(ids[:]))], full([3], 1.0, f32), mode='add')", [2, 2, 7])
    assert found[0].tolist() == [0.0, 0.0, 2.0, 0.0, 0.0, 0.0]
    found = copied("store(y[pick(load(ids[:])), 0], load(x[0:3, 1]), mode='max')", [1, 1, 0])
    assert found[:, 0].tolist() == [14.0, 8.0, 0.0, 0.0, 0.0]
    found = copied("store(y[0:3, 0], load(x[pick(load(ids[:])), 0], pad=-1.0))", [-1, 4, 5])
    assert found[:3, 0].tolist() == [-1.0, 25.0, -1.0]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("t = load(x[0, 4:8])", "reads positions 4 … 7 on axis 1 of extent 6"),
        ("t = load(x[pick(load(ids[:]) + 4), 0])", "picks positions 4 … 6 on axis 0 of extent 5"),
        ("store(x[0, :], 0.0)", "not an output or a temp"),
        ("store(y[0, 0:2], load(x[0, 0:3]))", "does not fit the region"),
        ("store(y[0, 0:3], load(ids[:]))", "store of torch.int64"),
        ("t = load(x[0, 0:3]) + load(ids[:])", "add of torch.float32 and torch.int64"),
    ],
)
def test_faults_while_running(body: str, reason: str) -> None:
    with pytest.raises(SketchError, match=reason.replace("…", ".")):
        copied(body)


def test_range_carries_and_parallel_does_not() -> None:
    body = "t = full([6], 0.0, f32)\nfor i in range(0, 5):\n    t = t + load(x[i, :])\nstore(y[0, :], t)"
    assert torch.equal(copied(body)[0], X.sum(0))
    body = "t = full([6], 1.0, f32)\nfor i in parallel(0, 5):\n    t = t + load(x[i, :])\n    store(y[i, :], t)"
    assert torch.equal(copied(body), X + 1)


# ---------------------------------------------------------------- strict mode


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("for i in parallel(0, 5):\n    store(y[0, :], 1.0)", "another iteration writes"),
        ("for i in parallel(0, 4):\n    store(y[i, :], load(y[i + 1, :]))", "another iteration reads"),
        ("for i in parallel(1, 5):\n    store(y[i, :], load(y[i - 1, :]))", "reads what another iteration writes"),
        ("for i in parallel(0, 5):\n    store(y[0, :], 1.0, mode='add')\n    t = load(y[0, :])", "another iteration"),
    ],
)
def test_strict_mode_finds_races(body: str, reason: str) -> None:
    copied(body)
    with pytest.raises(SketchError, match=reason):
        copied(body, strict=True)


def test_strict_mode_accepts_what_is_ordered() -> None:
    body = (
        "for i in range(0, 5):\n    for j in parallel(0, 6):\n        store(y[0, j], load(x[i, j]))\n"
        "for i in parallel(0, 5):\n    store(y[0, :], 1.0, mode='add')\n"
        "for j in parallel(0, 6):\n    store(y[1, j], squeeze(load(y[0, j:j + 1]), axis=0))"
    )
    assert copied(body, strict=True)[1].tolist() == (X[4] + 5).tolist()


def test_strict_mode_finds_what_was_never_written() -> None:
    text = COPY.replace("    store(y[:, :], 0.0)\n", "")
    x = [X, torch.tensor([0, 1, 2])]
    with pytest.raises(SketchError, match=r"3 elements of output y are never written, the first at \[4, 3\]"):
        interpreter.call(parse(text.replace("BODY", "store(y[0:4, :], 0.0)\n    store(y[4, 0:3], 0.0)")), x, strict=True)
    with pytest.raises(SketchError, match="never written"):
        interpreter.call(parse(text.replace("BODY", "store(y[:, :], load(y[:, :]))")), x, strict=True)


def test_shuffling_shows_dependence() -> None:
    body = "for i in parallel(0, 5):\n    store(y[0, :], load(x[i, :]))"
    assert len({tuple(copied(body, shuffle=seed)[0].tolist()) for seed in range(8)}) > 1


# ---------------------------------------------------------------- the whole


def test_sizes_views_constants_and_structures() -> None:
    text = """
N = size(4, dynamic=True)
B = tunable(2, [2, 3])
constant("table", [1.0, 10.0])
x = tensor([N, 2], f32, role="input", source="1")
flat = tensor([N * 2], f32, role="view", source="x")
scale = tensor([2], f32, role="constant", source="table")
w = tensor([2], f32, role="param", source="layer.weight")
y = tensor([N, 2], f32, role="output")
total = tensor([], f32, role="output")
@kernel
def k():
    for i in parallel(0, N, B):
        store(y[i:i + B, :], load(x[i:i + B, :], pad=0.0) * load(scale[:]) + load(w[:]))
    store(total[()], squeeze(reduce_sum(load(flat[:]), axis=0), axis=0))
returns({"y": "y", "more": ["total", (None, "x")]})
"""
    x = torch.randn(7, 2)
    result = interpreter.call(
        parse(text), ["unused", x], {"layer.weight": torch.tensor([1.0, 2.0])}, tunables={"B": 3}, strict=True
    )
    assert torch.equal(result["y"], x * torch.tensor([1.0, 10.0]) + torch.tensor([1.0, 2.0]))
    assert isinstance(result["more"], list)
    torch.testing.assert_close(result["more"][0], x.sum())
    assert result["more"][1][0] is None
    assert torch.equal(result["more"][1][1], x)


def test_library_calls() -> None:
    text = """
a = tensor([2, 3], f32, role="input", source="0")
b = tensor([3, 4], f32, role="input", source="1")
c = tensor([2, 4], f32, role="temp")
y = tensor([2, 4], f32, role="output")
library("aten.mm", inputs=["a", "b"], outputs=["c"])
library("aten.softmax.int", inputs=["c"], outputs=["y"], attributes='{"dim": 1}')
returns("y")
"""
    a, b = torch.randn(2, 3), torch.randn(3, 4)
    torch.testing.assert_close(interpreter.call(parse(text), [a, b], strict=True), (a @ b).softmax(1))


def test_inputs_are_looked_at() -> None:
    sketch = parse(COPY.replace("BODY", "pass"))
    with pytest.raises(SketchError, match="declared \\[5, 6\\] f32 but got"):
        interpreter.call(sketch, [torch.zeros(5, 7), torch.zeros(3, dtype=torch.int64)])
    with pytest.raises(SketchError, match="no value was given"):
        interpreter.run(sketch, {})
    with pytest.raises(SketchError, match="there is no size or tunable Q"):
        interpreter.run(sketch, {}, {"Q": 1})
