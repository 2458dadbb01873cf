"""Addresses to slices: each case is checked against the plain meaning of the address, element by element."""

from __future__ import annotations

import itertools

import pytest
import torch

from kernelwright.compiler.lift.access import axis, data_symbol, folded, sliced
from kernelwright.compiler.lift.regions import load_slice
from kernelwright.sketch import nodes
from kernelwright.sketch.index import evaluate, polynomial, rejoined, simplify, to_index
from kernelwright.sketch.index.exhaustive import never_negative
from kernelwright.sketch.interpret import interpreter
from kernelwright.sketch.nodes import Index, IndexOp, Int, Sym


def _e(left: Index | int, op: str, right: Index | int) -> Index:
    wrap = lambda x: Int(x) if isinstance(x, int) else x  # noqa: E731
    return simplify(IndexOp(op, wrap(left), wrap(right)))  # type: ignore[arg-type]


def _plus(*terms: Index | int) -> Index:
    total: Index = Int(0)
    for term in terms:
        total = _e(total, "+", term)
    return total


PID = Sym("pid")
CASES = {
    # name: (address, extents, mask, range of pid, shape, shape of the best view, picks, conditions left)
    "row of a softmax": (_plus(_e(PID, "*", 781), axis(0)), [1024], [_plus(780, _e(axis(0), "*", -1))], 8, [8, 781], (8, 781), 0, 0),
    "flat blocks": (
        _plus(_e(PID, "*", 128), axis(0)), [128], [_plus(8 * 77 - 1, _e(PID, "*", -128), _e(axis(0), "*", -1))], 5, [8, 77],
        (616,), 0, 0,
    ),
    "transposed tile": (
        _plus(_e(axis(0), "*", 1), _e(PID, "*", 16), _e(axis(1), "*", 48)), [16, 32], [_plus(29, _e(axis(1), "*", -1))], 3, [30, 48],
        (30, 48), 0, 0,
    ),
    "rows that wrap around": (
        _plus(_e(_e(_plus(_e(PID, "*", 16), axis(0)), "%", 40), "*", 12), axis(1)), [16, 12], [], 3, [40, 12], (40, 12), 1, 0,
    ),
    "half of a row": (
        _plus(_e(PID, "*", 64), axis(0)), [64], [_plus(31, _e(axis(0), "*", -1))], 4, [4, 64], (4, 64), 0, 1,
    ),
    "borders of an image": (
        _plus(_e(_plus(PID, -1), "*", 9), axis(0), -1), [16],
        [_plus(PID, -1), _plus(6, _e(PID, "*", -1), 1), _plus(axis(0), -1), _plus(9, _e(axis(0), "*", -1))], 9, [7, 9], (7, 9), 0, 0,
    ),
    "a buffer without shape": (
        _plus(_e(PID, "*", 10), axis(0)), [16], [_plus(9, _e(axis(0), "*", -1))], 6, [60], (6, 10), 0, 0,
    ),
    "taken apart and put together": (
        _plus(_e(_e(_plus(_e(PID, "*", 8), axis(0)), "//", 5), "*", 5), _e(_plus(_e(PID, "*", 8), axis(0)), "%", 5)), [8], [], 5, [8, 5],
        (40,), 0, 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_slice_reads_what_the_address_reads(name: str) -> None:
    address, extents, mask, programs, shape, seen, picks, left = CASES[name]
    found = sliced(address, extents, mask, {"pid": (0, programs - 1)}, shape)
    assert (found.shape, found.gathers(), len(found.left)) == (seen, bool(picks), left)
    memory = torch.randn(*shape).reshape(-1)
    loaded = load_slice("x", found, extents, -7.0, {})
    sketch = nodes.Sketch(
        "t", "", (), (),
        (
            nodes.Tensor("x", tuple(map(Int, seen)), nodes.DType.f32, "input", "0"),
            nodes.Tensor("y", (Int(programs), *map(Int, extents)), nodes.DType.f32, "output"),
        ),
        (
            nodes.Kernel("k", (nodes.For("pid", "parallel", Int(0), Int(programs), Int(1), (
                nodes.Store("y", (nodes.At(PID), *(nodes.Span(Int(0), Int(e)) for e in extents)), loaded),
            )),)),
        ),
        '"y"',
    )  # fmt: skip
    result = interpreter.run(sketch, {"x": memory.reshape(seen)})["y"]
    for pid in range(programs):
        for place in itertools.product(*map(range, extents)):
            env = {"pid": pid, **{f"@{k}": v for k, v in enumerate(place)}}
            if all(evaluate(condition, env) >= 0 for condition in mask):
                assert result[(pid, *place)] == memory[evaluate(address, env)], (pid, place)
            elif not left:
                assert result[(pid, *place)] == -7.0, (pid, place)


def test_rows_by_index_are_picked() -> None:
    found = sliced(_plus(_e(data_symbol("ids", [0]), "*", 32), axis(1)), [4, 32], [], {}, [100, 32])
    assert found.kinds() == ["pick", "span"]


def test_index_in_the_last_axis_is_not_trusted() -> None:
    """A position read from memory may pass the end of a row; only the flat view is then right for sure."""
    found = sliced(_plus(_e(PID, "*", 32), data_symbol("ids", [0])), [4], [], {"pid": (0, 9)}, [10, 32])
    assert found.shape == (320,)


def test_proofs() -> None:
    ranges = {"pid": (0, 63), "@0": (0, 15)}
    block = _plus(_e(PID, "*", 16), axis(0))
    assert folded(_e(block, "//", 16), ranges) == PID
    assert folded(_e(block, "%", 1024), ranges) == block
    assert to_index(rejoined(polynomial(_plus(_e(_e(PID, "//", 7), "*", 21), _e(_e(PID, "%", 7), "*", 3))))) == _e(PID, "*", 3)
    assert not never_negative(_plus(1022, _e(block, "*", -1)), ranges)
    assert never_negative(_plus(1022, _e(block, "*", -1)), ranges, [_plus(500, _e(block, "*", -1))])
