"""Kernels are read by running what they are compiled to: what is left is their mathematics, whatever way they compute it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernelwright.compiler.lift import lift
from kernelwright.sketch.interpret import interpreter

KERNELS = Path(__file__).parent / "kernels"


def test_what_no_text_reader_follows() -> None:
    path = KERNELS / "by_running.py"
    lifted = lift(path.read_text(), "triton", path=str(path))
    assert any("compiled" in note for note in lifted.notes)
    torch.manual_seed(3)
    x, q, k, v = torch.randn(7, 50), *(torch.randn(2, 70, 16).half() for _ in range(3))
    label = torch.randint(0, 50, (7,))
    label[4] = -100
    index, value, loss, squashed, total, out = interpreter.call(lifted.sketch, [x, label, q, k, v], {})
    assert torch.equal(index.long(), x.argmax(1))
    assert torch.equal(value, x.amax(1))
    want = torch.nn.functional.cross_entropy(x, label, reduction="none", ignore_index=-100)
    torch.testing.assert_close(loss, want)
    torch.testing.assert_close(squashed, torch.tanh(x) * x)
    torch.testing.assert_close(total, x.sum().reshape(1), rtol=1e-4, atol=1e-4)
    attended = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True, scale=0.25)
    torch.testing.assert_close(out, attended, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize(("shape", "type"), [("m16n8k16", "f16"), ("m16n8k8", "tf32"), ("m16n8k32", "s8"), ("m8n8k4", "f64")])
def test_fragments_cover_a_matrix_once(shape: str, type: str) -> None:
    from kernelwright.compiler.lift.ptx.warp import fragments

    a, b, c, depth = fragments(shape, type)
    rows = 8 if shape.startswith("m8") else 16

    def places(layout: list[tuple[object, object]]) -> list[tuple[int, int]]:
        return [(int(i), int(j)) for at, to in layout for i, j in zip(at, to, strict=True)]  # type: ignore[call-overload]

    assert sorted(places(a)) == [(i, k) for i in range(rows) for k in range(depth)]
    assert sorted(places(b)) == [(k, j) for k in range(depth) for j in range(8)]
    assert sorted(places(c)) == [(i, j) for i in range(rows) for j in range(8)]
