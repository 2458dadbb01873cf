"""Where the numbers differ: a mask of wrong elements in, "last 7 columns" and a map out. For the person or model that fixes it."""

from __future__ import annotations

import math
from typing import Any

import torch

MOST_ROWS, MOST_COLUMNS = 24, 48  # of a map
AXIS_NAMES = {1: ("elements",), 2: ("rows", "columns")}


def describe(wrong: Any) -> str:
    """One phrase for the set of wrong elements of an output."""
    total, count = wrong.numel(), int(wrong.sum())
    if count == 0:
        return "nothing"
    if count == total:
        return "everything"
    if wrong.dim() == 0:
        return "the value"
    if count == 1:
        return f"one element, at {_index(wrong.nonzero()[0])}"
    names = AXIS_NAMES.get(wrong.dim()) or tuple(f"dim {axis}" for axis in range(wrong.dim()))
    hit = [_touched(wrong, axis) for axis in range(wrong.dim())]
    partial = [axis for axis, touched in enumerate(hit) if not bool(touched.all())]
    covered = _covered(hit, wrong.shape)
    dense = count / covered
    if not partial:
        if count > 0.9 * total:
            return f"nearly everything ({count} of {total})"
        return f"scattered over the whole output ({100 * count / total:.3g} %)"
    words = " × ".join(_along(hit[axis], names[axis], wrong.dim() > 2) for axis in partial)
    if dense > 0.9:
        return words
    if all(_irregular(hit[axis]) for axis in partial):
        return f"scattered ({count} of {total} elements)"
    return f"scattered within {words} ({100 * dense:.3g} % of them)"


def samples(received: Any, expected: Any, wrong: Any, limit: int = 4) -> tuple[str, ...]:
    """The first wrong elements as `[index]: expected …, got …`."""
    places = wrong.nonzero()[:limit]
    lines = []
    for place in places:
        at = tuple(place.tolist())
        lines.append(f"[{', '.join(map(str, at))}]: expected {_number(expected[at])}, got {_number(received[at])}")
    return tuple(lines)


def _touched(wrong: Any, axis: int) -> Any:
    """Which positions along an axis have a wrong element at all."""
    others = [dim for dim in range(wrong.dim()) if dim != axis]
    return wrong.any(dim=others) if others else wrong


def _covered(hit: list[Any], shape: Any) -> int:
    size = 1
    for touched in hit:
        size *= int(touched.sum())
    return max(size, 1)


def _steps(touched: Any) -> tuple[Any, list[int]]:
    """The touched positions of an axis, and the distinct distances between neighbours."""
    places = torch.nonzero(touched).flatten()
    return places, (places[1:] - places[:-1]).unique().tolist()


def _irregular(touched: Any) -> bool:
    places, steps = _steps(touched)
    return len(places) < 3 or len(steps) > 1


def _along(touched: Any, name: str, many: bool) -> str:
    """One axis's part of the region: first, last, every k-th, a range, or a number of positions."""
    places, steps = _steps(touched)
    count, length = len(places), len(touched)
    first, last = int(places[0]), int(places[-1])
    of = f"of {name}" if many else name
    if count == 1:
        where = "first" if first == 0 else "last" if first == length - 1 else ""
        if many:
            return f"{where or 'index ' + str(first)} {of} only"
        one = name.removesuffix("s")
        return f"{where} {one} only" if where else f"{one} {first} only"
    if steps == [1]:
        if first == 0:
            return f"first {count} {of}"
        return f"last {count} {of}" if last == length - 1 else f"{name} {first}..{last}"
    if len(steps) == 1 and count > 2:
        step = _ordinal(int(steps[0]))
        return (f"every {step} index {of}" if many else f"every {step} {name.removesuffix('s')}") + (
            f" from {first}" if first else ""
        )
    return f"{count} of {length} {'indices ' + of if many else name} between {first} and {last}"


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def _index(place: Any) -> str:
    return f"[{', '.join(str(int(part)) for part in place)}]"


def _number(value: Any) -> str:
    plain = value.item()
    return f"{plain:.9g}" if isinstance(plain, float) else str(plain)


def heat(wrong: Any) -> dict[str, Any] | None:
    """The share of wrong elements by block, along the two longest axes in their order (one, for a line): a map of where the error lies.
    Block r of n of an axis covers the elements from r * length // n on. None where there is nothing to draw."""
    if wrong.dim() == 0 or wrong.numel() <= 1:
        return None
    shape = list(wrong.shape)
    axes = sorted(sorted(range(len(shape)), key=lambda axis: -shape[axis])[:2])
    others = [axis for axis in range(len(shape)) if axis not in axes]
    counts = wrong.sum(dim=others) if others else wrong.long()
    depth = math.prod(shape[axis] for axis in others)
    counts = counts.reshape(-1, counts.shape[-1]).double()
    for axis, most in enumerate((MOST_ROWS, MOST_COLUMNS)):
        length = counts.shape[axis]
        parts = min(length, most)
        block = torch.tensor([k * length // parts for k in range(parts + 1)])
        total = torch.zeros(*(parts if a == axis else counts.shape[a] for a in range(2)), dtype=torch.float64)
        into = torch.bucketize(torch.arange(length), block[1:-1], right=True)
        widths = (block[1:] - block[:-1]).double()
        counts = total.index_add_(axis, into, counts) / (widths[:, None] if axis == 0 else widths)
    rows, columns = counts.shape
    return {
        "shape": shape,
        "axes": axes,
        "rows": rows,
        "columns": columns,
        "share": [round(float(s) / depth, 4) for s in counts.flatten()],
    }
