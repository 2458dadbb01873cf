"""The checker: each rule of the language, with a sketch that breaks it and one that does not."""

from __future__ import annotations

import pytest

from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.check.rules import check, infer, require
from kernelwright.sketch.nodes import DType, Int, Sym
from kernelwright.sketch.parse import parse

HEADER = """
M = size(100)
N = size(64)
D = size(50, dynamic=True)
B = tunable(16, [8, 16, 32])
C = tunable(25, [5, 25])
x = tensor([M, N], f32, role="input", source="0")
d = tensor([D, N], f32, role="input", source="1")
ids = tensor([M], i64, role="input", source="2")
h = tensor([N], f16, role="input", source="3")
w = tensor([N], f32, role="param", source="w")
flat = tensor([M * N], f32, role="view", source="x")
t1 = tensor([M, N], f32, role="temp")
y = tensor([M, N], f32, role="output")
y_flat = tensor([M * N], f32, role="view", source="y")
"""
WRITE_Y = ["for z in parallel(0, M):", "    store(y[z, :], 0.0)"]


def sketch_of(*lines: str, decorator: str = "@kernel") -> nodes.Sketch:
    """A sketch with these lines as its second kernel; the first one fills y."""
    first = "@kernel\ndef fill():\n" + "".join(f"    {line}\n" for line in WRITE_Y)
    text = HEADER + first + f"{decorator}\ndef k():\n" + "".join(f"    {line}\n" for line in lines) + 'returns("y")\n'
    return parse(text)


def faults(*lines: str, decorator: str = "@kernel") -> list[str]:
    return [error.reason for error in check(sketch_of(*lines, decorator=decorator))]


def only(*lines: str, decorator: str = "@kernel") -> str:
    found = faults(*lines, decorator=decorator)
    assert len(found) == 1, found
    return found[0]


# ---------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("load(x[0, :]) + load(ids[0:N])", "add of f32 and i64"),
        ("load(x[0, :]) + load(h[:])", "add of f32 and f16"),
        ("load(x[:, 0]) + load(x[0, :])", "do not broadcast"),
        ("load(ids[:]) / 2", "div of i64"),
        ("load(ids[:]) * 0.5", "mul 0.5 does not fit a i64 tile"),
        ("exp(load(ids[:]))", "exp of a i64 tile"),
        ("(load(ids[:]) > 0) + (load(ids[:]) > 1)", "add of bool"),
        ("load(x[0, :]) & load(x[1, :])", "bitwise and of f32"),
        ("where(load(x[0, :]), 1.0, load(x[0, :]))", "where needs a bool condition"),
        ("where(load(x[0, :]) > 0.0, 1.0, 0.0)", "of two bare numbers"),
        ("reduce_sum(load(h[:]), axis=0)", "reduce_sum of a f16 tile"),
        ("reduce_any(load(x[0, :]), axis=0)", "reduce_any of a f32 tile"),
        ("reduce_sum(load(x[0, :]), axis=1)", "names axis 1 of a tile with 1 axes"),
        ("arg_max(load(x[0, :]) > 0.0, axis=0)", "arg_max of a bool tile"),
        ("gemm(load(x[0:8, :]), load(x[0:8, :]))", "gemm needs tiles [m, k] and [k, n]"),
        ("gemm(load(x[0:8, 0:8]), load(x[0:8, 0:8]), full([8, 4], 0.0, f32))", "accumulator is [8, 4]"),
        ("reshape(load(x[0:8, :]), [7, N])", "changes the element count"),
        ("squeeze(load(x[0:2, :]), axis=0)", "whose extent is not 1"),
        ("permute(load(x[0:2, :]), [0, 0])", "does not name every axis"),
        ("expand(load(x[0:2, :]), [3, N])", "do not broadcast"),
        ("bitcast(load(x[0, :]), i64)", "another width"),
        ("take(load(x[0, :]), load(x[0, :]), axis=0)", "take needs integer indices"),
        ("load(x[pick(load(x[0, :])), 0])", "pick needs an integer tile"),
        ("load(x[0, :], pad=False)", "pad False does not fit"),
        ("full([N], 1, bool)", "full 1 does not fit a bool tile"),
        ("load(x[0, :])[60:70]", "may leave axis 0"),
    ],
)
def test_wrong_expressions(expression: str, reason: str) -> None:
    assert reason in only(f"t = {expression}")


@pytest.mark.parametrize(
    ("expression", "shape", "dtype"),
    [
        ("load(x[0:8, :]) + load(w[:])", [8, "N"], "f32"),
        ("load(x[0:8, :]) > 0.0", [8, "N"], "bool"),
        ("reduce_max(load(x[0:8, :]), axis=0)", [1, "N"], "f32"),
        ("arg_min(load(x[0:8, :]), axis=1)", [8, 1], "i64"),
        ("scan_sum(load(ids[:]), axis=0)", ["M"], "i64"),
        ("gemm(load(x[0:8, 0:4]), load(x[0:4, :]))", [8, "N"], "f32"),
        ("gemm(cast(load(x[0:8, 0:4]), i8), cast(load(x[0:4, :]), i8))", [8, "N"], "i32"),
        ("load(x[pick(load(ids[0:7])), 3:5])", [7, 2], "f32"),
        ("load(x[pick(load(ids[0:7])), pick(unsqueeze(load(ids[0:3]), axis=1))])", [3, 7], "f32"),
        ("permute(load(x[0:8, :]), [1, 0])", ["N", 8], "f32"),
        ("iota(B) + 1", ["B"], "i64"),
        ("where(load(ids[0:N]) > 2, load(w[:]), -inf)", ["N"], "f32"),
        ("cast(1.5, f16)", [], "f16"),
        ("take(load(x[0:8, :]), iota(5), axis=0)", None, ""),
        ("take(load(x[0:8, :]), unsqueeze(iota(5), axis=0), axis=1)", [8, 5], "f32"),
        ("load(flat[0:B])[0:4]", [4], "f32"),
    ],
)
def test_inferred_types(expression: str, shape: list[int | str] | None, dtype: str) -> None:
    sketch = sketch_of(f"t = {expression}")
    if shape is None:
        assert check(sketch) != []
        return
    found = infer(sketch).names["k"]["t"]
    assert found.shape == tuple(Int(e) if isinstance(e, int) else Sym(e) for e in shape)
    assert found.dtype is DType(dtype)


def test_infer_gives_the_type_of_every_expression() -> None:
    sketch = sketch_of("t = exp(load(x[0:8, :]))", "u = reduce_sum(t, axis=1)")
    typing = infer(sketch)
    kernel = sketch.steps[1]
    assert isinstance(kernel, nodes.Kernel)
    second = kernel.body[1]
    assert isinstance(second, nodes.Assign)
    assert isinstance(second.value, nodes.Reduce)
    assert typing.shape_of(second.value) == (Int(8), Int(1))
    assert typing.shape_of(second.value.x) == (Int(8), Sym("N"))
    assert typing.dtype_of(second.value.x) is DType.f32


def test_one_fault_is_reported_once() -> None:
    assert len(faults("t = load(x[0, :]) + load(ids[0:N])", "u = exp(t)", "store(y[0, :], u)")) == 1


# ---------------------------------------------------------------- bounds


@pytest.mark.parametrize(
    "lines",
    [
        ["for i in range(0, M):", "    t = load(x[i, :])"],
        ["for i in range(0, M, C):", "    t = load(x[i:i + C, :])"],
        ["for i in range(0, M, B):", "    t = load(x[i:i + B, :], pad=0.0)"],
        ["for i in range(0, M - 2):", "    t = load(x[i:i + 3, :])"],
        ["for i in range(0, M):", "    t = load(x[M - 1 - i, :])"],
        ["for i in range(0, M // 2):", "    t = load(x[i * 2 + 1, :])"],
        ["for i in range(0, M):", "    for j in range(0, i + 1):", "        t = load(x[i - j, :])"],
        ["for i in range(0, M * N):", "    t = load(x[i // N, i % N])"],
        ["for i in range(0, M):", "    t = load(x[min(i + 5, M - 1), :])"],
        ["for i in range(0, M):", "    t = load(x[max(i - 5, 0), :])"],
        ["for i in range(0, D):", "    t = load(d[i, :])"],
        ["for i in range(0, D):", "    t = load(d[D - 1 - i, :])"],
        ["for i in range(0, D * N):", "    t = load(d[i // N, i % N])"],
        ["t = load(x[M - 1:-1:-1, :])"],
        ["t = load(x[0:M:2, 1:N:2])"],
        ["t = load(x[pick(load(ids[:])), :])"],
        ["for i in range(0, M, 4):", "    for j in range(i, i + 4):", "        t = load(x[j, :])"],
    ],
)
def test_loads_that_stay_inside(lines: list[str]) -> None:
    assert faults(*lines) == []


@pytest.mark.parametrize(
    "lines",
    [
        ["for i in range(0, M + 1):", "    t = load(x[i, :])"],
        ["for i in range(0, M, B):", "    t = load(x[i:i + B, :])"],
        ["for i in range(0, M):", "    t = load(x[i - 1, :])"],
        ["for i in range(0, M):", "    t = load(x[i + 1, :])"],
        ["for i in range(0, M):", "    t = load(x[i * 2, :])"],
        ["for i in range(0, D, C):", "    t = load(d[i:i + C, :])"],
        ["t = load(d[49, :])"],
        ["t = load(x[-1, :])"],
        ["t = load(x[M:-1:-1, :])"],
        ["for i in range(0, M * N):", "    t = load(x[i % N, i // N])"],
        ["for i in range(0, M):", "    t = load(x[max(i, 5) + 1, :])"],
    ],
)
def test_loads_that_may_leave(lines: list[str]) -> None:
    assert "may leave axis" in only(*lines)


def test_the_tunable_at_fault_is_named() -> None:
    assert "with B=8" in only("for i in range(0, M, B):", "    t = load(x[i:i + B, :])")


def test_extents_are_free_of_loop_variables() -> None:
    assert "the extent i depends on i" in only("for i in range(0, M):", "    t = load(x[0:i, 0], pad=0.0)")


# ---------------------------------------------------------------- scopes and writes


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["t = load(t1[0, :])"], "nothing has written yet"),
        (["store(t1[0, :], 0.0, mode='add')"], "updates what nothing has written yet"),
        (["store(x[0, :], 0.0)"], "store to x, a tensor of role input"),
        (["store(flat[0:5], 0.0)"], "store to flat, a tensor of role input"),
        (["store(y[0, :], load(ids[0:N]))"], "store of a i64 tile to y"),
        (["store(y[0, :], load(x[0:N, 0:2], pad=0.0))"], "shapes [N, 2] and [N] do not broadcast"),
        (["store(y[0, :], load(x[0:1, :]))"], "store of a tile [1, N] to a region [N] of y"),
        (["store(y[0, :], full([3], 0.0, f32))"], "do not broadcast"),
        (["store(y[0, :], 1)", "store(y[0, :], True)"], "stored number True does not fit"),
        (["t = load(x[0, :], level='shared')"], "unknown level"),
        (["for i in range(0, M, unrol=2):", "    pass"], "unknown hint unrol"),
        (["for i in range(0, M, 0):", "    pass"], "must be a positive"),
        (["for M in range(0, 3):", "    pass"], "has the name of something else"),
        (["acc = full([N], 0.0, f32)", "for i in range(0, M):", "    acc = load(ids[0:N])"], "enters the loop i as"),
        (["t = load(x[0, :])", "for i in parallel(0, M):", "    t = load(x[i, :])"], "again inside it"),
        (["M = load(x[0, :])"], "M is bound as a tile"),
    ],
)
def test_wrong_statements(lines: list[str], reason: str) -> None:
    assert reason in only(*lines)


def test_carried_and_local_names() -> None:
    assert faults("t = full([N], 0.0, f32)", "for i in range(0, M):", "    t = t + load(x[i, :])", "store(y[0, :], t)") == []
    # the parser already refuses a local name after its loop; the checker does so for sketches built by hand
    loop = nodes.For("i", "range", Int(0), Sym("M"), Int(1), (nodes.Assign("t", nodes.Iota(Int(3))),))
    sketch = sketch_of("pass")
    by_hand = nodes.Kernel("k2", (loop, nodes.Assign("u", nodes.Var("t"))))
    changed = nodes.Sketch(**{**sketch.__dict__, "steps": (*sketch.steps, by_hand)})
    assert [e.reason for e in check(changed)] == ["t is read before it is bound"]


def test_once_kernels_read_parameters_only() -> None:
    store = "store(t1[0, :], load({}))"
    assert faults(store.format("w[:]"), decorator="@kernel(once=True)") == []
    assert "a once-kernel reads x" in only(store.format("x[0, :]"), decorator="@kernel(once=True)")
    assert "which is not a temp" in only("store(y[0, :], load(w[:]))", decorator="@kernel(once=True)")


def test_outputs_are_written() -> None:
    text = HEADER + '@kernel\ndef k():\n    pass\nreturns("y")\n'
    assert [e.reason for e in check(parse(text))] == ["output y is never written"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("M = size(3)\nM = size(4)", "declared 2 times"),
        ("B = tunable(3, [4])", "not in its domain"),
        ("x = tensor([2], f32, role='input', source='a')", "position in forward"),
        ("x = tensor([2], f32, role='param')", "state_dict"),
        ("x = tensor([2], f32, role='constant', source='q')", "there is no constant"),
        ("constant('q', [1.0])\nx = tensor([2], f32, role='constant', source='q')", "has 2 elements"),
        ("x = tensor([2], f32, role='view', source='q')", "not a tensor declared before"),
        ("q = tensor([3], f32, role='temp')\nx = tensor([2], f32, role='view', source='q')", "not as many elements"),
        ("q = tensor([2], f16, role='temp')\nx = tensor([2], f32, role='view', source='q')", "which is f16"),
        ("x = tensor([2], f32, role='temp')\nreturns('x')", "the temp x"),
        ("returns('nothing')", "not a tensor"),
    ],
)
def test_wrong_declarations(text: str, reason: str) -> None:
    whole = text if "returns" in text else text + "\nreturns(None)"
    assert any(reason in error.reason for error in check(parse(whole)))


def test_require_raises_the_first_fault() -> None:
    with pytest.raises(SketchError, match="may leave axis 0"):
        require(sketch_of("t = load(x[M, :])"))


# ---------------------------------------------------------------- races


@pytest.mark.parametrize(
    "lines",
    [
        ["for i in parallel(0, M, B):", "    store(y[i:i + B, :], 1.0)"],
        ["for i in parallel(0, M, B):", "    for j in parallel(0, N, 8):", "        store(y[i:i + B, j:j + 8], 1.0)"],
        ["for i in parallel(0, M * N):", "    store(y[i // N, i % N], 1.0)"],
        ["for i in parallel(0, M):", "    for j in range(0, N, 8):", "        store(y[i, j:j + 8], 1.0)"],
        ["for i in parallel(0, M):", "    store(y[M - 1 - i, :], 1.0)"],
        ["for i in parallel(0, M // 2):", "    store(y[2 * i:2 * i + 2, :], 1.0)"],
        ["for i in parallel(0, M):", "    for j in parallel(0, N):", "        store(y_flat[i * N + j], 1.0)"],
        ["for i in parallel(0, M):", "    store(y[i, 0:32], 1.0)", "    store(y[i, 32:64], 2.0)"],
        ["for i in parallel(0, M):", "    store(y[i, :], load(y[i, :]) + 1.0)"],
        ["for i in parallel(0, M):", "    for j in parallel(0, N, 16):", "        store(y[0, :], 1.0, mode='add')"],
        ["for i in parallel(0, 1):", "    store(y[0, :], 1.0)"],
        ["for i in parallel(0, M, B):", "    store(y[i // B, :], 1.0)"],
        ["for i in parallel(0, M):", "    store(y[i, pick(load(ids[0:8]))], 1.0)"],
        ["for i in range(0, M):", "    for j in parallel(0, N):", "        store(y[0:3, j], 1.0)"],
        ["for i in parallel(0, M // 4):", "    for j in range(0, 4):", "        store(y[i * 4 + j, :], 1.0)"],
        ["for i in parallel(0, 600):", "    store(y[i // 60, (i // 6) % 10 + i % 6 * 10], 1.0)"],
    ],
)
def test_independent_iterations(lines: list[str]) -> None:
    assert faults(*lines) == []


@pytest.mark.parametrize(
    "lines",
    [
        ["for i in parallel(0, M):", "    store(y[0, :], 1.0)"],
        ["for i in parallel(0, M):", "    store(y[i:i + 2, :], 1.0)"],
        ["for i in parallel(0, M, 8):", "    store(y[i:i + B, :], 1.0)"],
        ["for i in parallel(0, M, B):", "    for j in parallel(0, N, 8):", "        store(y[i:i + B, 0:8], 1.0)"],
        ["for i in parallel(0, M * N):", "    store(y[i // N, 0], 1.0)"],
        ["for i in parallel(0, M):", "    for j in parallel(0, N + 1):", "        store(y_flat[i * N + j], 1.0)"],
        ["for i in parallel(0, M):", "    store(y[i // 2, :], 1.0)"],
        ["for i in parallel(0, M):", "    store(y[i % 50, :], 1.0)"],
        ["for i in parallel(0, M - 1):", "    store(y[i + 1, :], load(y[i, :]))"],
        ["for i in parallel(0, M):", "    store(y[i, 0:32], 1.0)", "    store(y[0, 31:64], 2.0)"],
        ["for i in parallel(0, M):", "    store(y[pick(load(ids[i:i + 1])), :], 1.0)"],
        ["for i in parallel(0, M // 4):", "    for j in range(0, 5):", "        store(y[i * 4 + j, :], 1.0)"],
        ["for i in parallel(0, M):", "    store(y[i, :], 1.0)", "    store(y_flat[0:5], 1.0)"],
        ["for i in parallel(0, M):", "    store(y[0, :], 1.0, mode='add')", "    t = load(y[0, :])"],
        ["for i in parallel(0, M):", "    store(y[0, :], 1.0, mode='add')", "    store(y[0, :], 1.0, mode='max')"],
        ["for i in parallel(0, M):", "    for j in range(0, N):", "        store(y[j, i // 2:i // 2 + 1], 1.0)"],
    ],
)
def test_iterations_that_may_meet(lines: list[str]) -> None:
    found = faults(*lines)
    assert found
    assert all("may meet" in reason for reason in found)


def test_a_fault_is_told_where_it_stands_and_not_again_by_what_follows_from_it() -> None:
    """The mixed dtypes are the fault; that the sum over them has no axis is not."""
    source = """name = "t"
a = tensor([16], i32, role="input", source="0")
b = tensor([16], i64, role="input", source="1")
y = tensor([1], i64, role="output")

@kernel
def k():
    c = load(a[:]) + load(b[:])
    store(y[:], reduce_sum(c * 2) + 1)

returns("y")
"""
    found = check(parse(source))
    assert [(fault.line, fault.reason) for fault in found] == [(8, "add of i32 and i64")]
