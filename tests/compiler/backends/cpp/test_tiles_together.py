"""Several products at once, tiles put side by side, products whose last tiles are clipped, and panels that were made beforehand."""

from __future__ import annotations

import pytest
from lowering import built, check

from kernelwright.sketch.parse import parse

SEVERAL = """
a = tensor([5, {m}, {k}], f32, role="input", source="0")
b = tensor([5, {k}, {n}], f32, role="input", source="1")
y = tensor([5, {m}, {n}], f32, role="output")

@kernel
def work():
    for i in parallel(0, {m}, 8):
        left = load(a[0:5, i:i + 8, 0:{k}], pad=0.0)
        right = load(b[0:5, 0:{k}, 0:{n}])
        store(y[0:5, i:i + 8, 0:{n}], gemm(left, {right}) * 2.0)

returns("y")
"""


@pytest.mark.parametrize(("m", "k", "n"), [(16, 8, 32), (19, 7, 21), (8, 1, 5)])
@pytest.mark.parametrize("right", ["right", "right + 1.0"], ids=["plain", "computed"])
def test_several_products(m: int, k: int, n: int, right: str) -> None:
    check(parse(SEVERAL.format(m=m, k=k, n=n, right=right)), rtol=1e-4, atol=1e-4)


def test_planes_that_would_meet_in_the_cache_are_moved_apart() -> None:
    check(parse(SEVERAL.format(m=8, k=4, n=64, right="right")), rtol=1e-4, atol=1e-4)


STACKED = """
x = tensor([10, 40], f32, role="input", source="0")
y = tensor([20, 80], f32, role="output")

@kernel
def work():
    for i in parallel(0, 10, 5):
        t = load(x[i:i + 5, -1:41], pad=0.0)
        left = t[0:5, 0:40]
        right = t[0:5, 2:42]
        total = left + right
        gap = left - right
        row = stack([total, gap], axis=2)
        other = stack([gap * 0.5, total * 0.5], axis=2)
        both = stack([row, other], axis=1)
        image = reshape(both, [10, 80])
        store(y[i * 2:i * 2 + 10, 0:80], image + reduce_sum(image, axis=1))

returns("y")
"""


def test_tiles_side_by_side_are_written_in_one_pass() -> None:
    module = check(parse(STACKED), rtol=1e-5, atol=1e-5)
    body = module.SOURCE[module.SOURCE.index("static void work") :]
    assert "? " not in body.split("gap")[-1], "choices by position are made when the code is written"


CLIPPED = """
a = tensor([37, 83], f32, role="input", source="0")
b = tensor([83, 50], f32, role="input", source="1")
y = tensor([37, 50], f32, role="output")

@kernel
def work():
    for i in parallel(0, 37, 24):
        for j in parallel(0, 50, 32):
            acc = full([24, 32], 0.0, f32)
            for k in range(0, 83, 48):
                acc = gemm(load(a[i:i + 24, k:k + 48], pad=0.0), load(b[k:k + 48, j:j + 32], pad=0.0), acc)
            store(y[i:i + 24, j:j + 32], acc)

returns("y")
"""


def test_tiles_beyond_the_end_are_clipped_not_copied() -> None:
    module = check(parse(CLIPPED), rtol=1e-4, atol=1e-4)
    assert "a_tile[" not in module.SOURCE
    assert "min_of<int64_t>(24" in module.SOURCE


PANELS = """
a = tensor([30, 40], f32, role="input", source="0")
w = tensor([40, 45], f32, role="param", source="w")
p = tensor([3, 40, 16], f32, role="temp")
y = tensor([30, 45], f32, role="output")

@kernel(once=True)
def pack():
    for j in parallel(0, 3):
        store(p[j, 0:40, 0:16], load(w[0:40, j * 16:j * 16 + 16], pad=0.0))

@kernel
def work():
    for j in parallel(0, 3, 2):
        panels = load(p[j:j + 2, 0:40, 0:16], pad=0.0)
        store(y[0:30, j * 16:j * 16 + 32], gemm(load(a[0:30, 0:40]), reshape(permute(panels, [1, 0, 2]), [40, 32])))

returns("y")
"""


def test_panels_in_memory_are_used_as_they_lie() -> None:
    sketch = parse(PANELS)
    check(sketch, rtol=1e-4, atol=1e-4)
    assert "panels[" not in built(sketch).SOURCE
