"""What lanes of a warp do together: shuffles, votes, matrix fragments, rows of matrices from shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.tape import Tape
from kernelwright.compiler.lift.ptx.arithmetic import converted, tape_type
from kernelwright.compiler.lift.ptx.words import Held, Parts, Word, as_float, codes_of, from_float, packed, split
from kernelwright.gpu.ptx import type_bytes


def moved(held: Held, source: Any) -> Held:
    """Each lane gets what another one holds."""
    if isinstance(held, Parts):
        return Parts(tuple(_moved(w, source) for w in held.words))
    return _moved(held, source)


def _moved(one: Word, source: Any) -> Word:
    return Word(one.width, one.bits[source], None if one.codes is None else one.codes[source])


def shuffle_source(mode: str, lane: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """The lane that `shfl` reads from, and whether it lies in range."""
    b, clamp, segments = b & 31, c & 31, (c >> 8) & 31
    top = (lane & segments) | (clamp & ~segments & 31)
    bottom = lane & segments
    if mode == "up":
        j = lane - b
        inside = j >= top
    elif mode == "down":
        j = lane + b
        inside = j <= top
    elif mode == "bfly":
        j = lane ^ b
        inside = j <= top
    else:
        j = bottom | (b & ~segments & 31)
        inside = j <= top
    return np.where(inside, j, lane), inside


# ---------------------------------------------------------------- matrix fragments


Layout = list[tuple[Any, Any]]
"""For each element that a lane holds: its row and its column, one for each of the 32 lanes."""


def fragments(shape: str, type: str) -> tuple[Layout, Layout, Layout, int]:
    """Where the elements of A (row, k), B (k, column) and C (row, column) lie, and k."""
    lane = np.arange(32)
    group, thread = lane >> 2, lane & 3
    c = [(group + 8 * (i >> 1), 2 * thread + (i & 1)) for i in range(4)]
    if shape == "m8n8k4" and type == "f64":
        return [(group, thread)], [(thread, group)], [(group, 2 * thread + i) for i in range(2)], 4
    per = {1: 4, 2: 2, 4: 1}[4 if type == "tf32" else type_bytes(type)]
    depth = int(shape.rpartition("k")[2])
    span = 4 * per
    if not shape.startswith("m16n8") or depth % span:
        raise Refused(0, f"matrix instructions of shape {shape} for {type} are not read")
    a: Layout = []
    b: Layout = []
    for part in range(depth // span):
        for half in (0, 1):
            a += [(group + 8 * half, part * span + per * thread + i) for i in range(per)]
        b += [(part * span + per * thread + i, group) for i in range(per)]
    return a, b, c, depth


def _elements(helds: Sequence[Held], type: str) -> list[Word]:
    size = 4 if type == "tf32" else type_bytes(type)
    found: list[Word] = []
    for held in helds:
        words = split(held, (size,) * (held.width // size))
        if words is None:
            raise Refused(0, f"a fragment does not hold numbers of type {type}")
        found += words
    return found


def matrix_product(
    tape: Tape, base: Any, shape: str, types: Sequence[str], a: Sequence[Held], b: Sequence[Held], c: Sequence[Held]
) -> list[Held]:
    """`mma.sync`: `base` is the number of each lane's warp's first lane. The registers of D."""
    d_type, a_type, b_type, c_type = types
    rows, columns, out, depth = fragments(shape, a_type)
    whole = a_type[0] in "su"
    middle = "s32" if whole else "f64" if a_type == "f64" else "f32"
    lane = (np.arange(tape.lanes) - base) % 32
    left = [_widened(tape, w, a_type, middle) for w in _elements(a, a_type)]
    right = [_widened(tape, w, b_type, middle) for w in _elements(b, b_type)]
    sums = [_widened(tape, w, c_type, middle) for w in _elements(c, c_type)]
    where_a = {
        (int(r), int(k)): (part, at) for part, (rs, ks) in enumerate(rows) for at, (r, k) in enumerate(zip(rs, ks, strict=True))
    }
    where_b = {
        (int(k), int(n)): (part, at)
        for part, (ks, ns) in enumerate(columns)
        for at, (k, n) in enumerate(zip(ks, ns, strict=True))
    }
    kind = tape_type(middle)
    lefts, rights = (np.stack([codes_of(tape, w, kind) for w in side]) for side in (left, right))
    made: list[Word] = []
    for total, (r, n) in zip(sums, out, strict=True):
        codes = None if total.codes is None and not total.bits.any() else codes_of(tape, total, kind)
        for k in range(depth):
            pick_a = np.array([where_a[int(r[j]), k] for j in range(32)])
            pick_b = np.array([where_b[k, int(n[j])] for j in range(32)])
            one = lefts[pick_a[lane, 0], base + pick_a[lane, 1]]
            other = rights[pick_b[lane, 0], base + pick_b[lane, 1]]
            product = tape.emit("mul", kind, one, other)
            codes = product if codes is None else tape.emit("add", kind, codes, product)
        word = Word(type_bytes(middle), np.zeros(tape.lanes, dtype=np.uint64), codes)
        narrow = converted(tape, word, middle, d_type, ("rn",)) if d_type not in (middle, "s32") else word
        assert isinstance(narrow, Word)
        made.append(narrow)
    if type_bytes(d_type) == 2:
        return [packed((made[k], made[k + 1])) for k in range(0, len(made), 2)]
    return list(made)


def _widened(tape: Tape, one: Word, source: str, target: str) -> Word:
    if source == "tf32":
        source = "f32"
    if source == target:
        return one
    if one.codes is None and source in ("f16", "bf16"):
        return Word(4, from_float(as_float(one.bits, source), target))
    made = converted(tape, one, source, target, ("rn",))
    assert isinstance(made, Word)
    return made


def matrix_rows(lane: Any, base: Any, addresses: Any, number: int, transposed: bool) -> tuple[Any, Any]:
    """`ldmatrix`: the addresses of the two 16-bit elements that each lane gets of matrix `number`."""
    inside = (lane - base) % 32
    if not transposed:
        first = addresses[base + 8 * number + inside // 4] + (inside % 4) * 4
        return first, first + 2
    rows = [addresses[base + 8 * number + (inside % 4) * 2 + i] + (inside // 4) * 2 for i in (0, 1)]
    return rows[0], rows[1]
