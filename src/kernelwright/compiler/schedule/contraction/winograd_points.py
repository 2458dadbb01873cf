"""Evaluation at six points: how a line of six inputs, its taps and its outputs are transformed for Winograd's convolution.

F(m, r) makes m outputs of an r-tap convolution from m + r - 1 = 6 inputs with 6 multiplications instead of m * r. The points are 0,
+-3/4, +-3/2 and infinity: their rounding errors are about half of those of the customary 0, +-1, +-2. Pairs of points share their
even and odd parts. In: tiles and a function that binds a tile to a name. Out: tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernelwright.sketch.nodes import Binary, Number, Tile, Var

Bind = Callable[[str, Tile], Var]
NEAR, FAR = 0.75, 1.5
COUNT = 6


def plus(a: Tile, b: Tile) -> Tile:
    return Binary("add", a, b)


def minus(a: Tile, b: Tile) -> Tile:
    return Binary("sub", a, b)


def times(factor: float, a: Tile) -> Tile:
    return Binary("mul", a, Number(factor))


def total(terms: Sequence[Tile]) -> Tile:
    """The sum of all terms, from the first to the last."""
    result = terms[0]
    for term in terms[1:]:
        result = plus(result, term)
    return result


def inputs_at(bind: Bind, d: Sequence[Tile]) -> list[Tile]:
    """Six neighbours at the six points."""
    near, far = NEAR * NEAR, FAR * FAR
    found = [plus(minus(d[4], times(near + far, d[2])), times(near * far, d[0]))]
    for point, other in ((NEAR, far), (FAR, near)):
        even = bind("even", minus(d[4], times(other, d[2])))
        odd = bind("odd", times(point, minus(d[3], times(other, d[1]))))
        found += [plus(even, odd), minus(even, odd)]
    return [*found, plus(minus(d[5], times(near + far, d[3])), times(near * far, d[1]))]


def weights_at(bind: Bind, taps: Sequence[Tile]) -> list[Tile]:
    """The polynomial of the taps (3 to 5 of them) at the six points, scaled so that the outputs need no division."""
    found = [times(1 / (NEAR * FAR) ** 2, taps[0])]
    for point, other in ((NEAR, FAR), (FAR, NEAR)):
        scale = 1 / (2 * point**2 * (point**2 - other**2))
        even = bind("even", total([times(scale * point**k, taps[k]) for k in range(0, len(taps), 2)]))
        odd = bind("odd", total([times(scale * point**k, taps[k]) for k in range(1, len(taps), 2)]))
        found += [plus(even, odd), minus(even, odd)]
    return [*found, taps[-1]]


def outputs_from(bind: Bind, z: Sequence[Tile], count: int) -> list[Tile]:
    """`count` outputs from the products at the six points."""
    sums = [bind("even", plus(z[1], z[2])), bind("even", plus(z[3], z[4]))]
    gaps = [bind("odd", minus(z[1], z[2])), bind("odd", minus(z[3], z[4]))]
    found = [total([z[0], *sums])]
    for i in range(1, count):
        near, far = gaps if i % 2 else sums
        found.append(plus(times(NEAR**i, near), times(FAR**i, far)))
    return [*found[:-1], plus(found[-1], z[5])]
