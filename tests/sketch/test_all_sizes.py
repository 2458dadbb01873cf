"""Proofs over all dynamic sizes: what is proved holds at sizes that the strict interpreter tries, what is refuted fails at the sizes
that are named, and what is planted is never proved."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelwright.core.errors import SketchError
from kernelwright.core.verdict import SizeProof
from kernelwright.sketch import nodes
from kernelwright.sketch.check import small_sizes, solver
from kernelwright.sketch.check.rules import Examination, check, examine
from kernelwright.sketch.check.size_proof import proof_of_texts
from kernelwright.sketch.interpret import interpreter
from kernelwright.sketch.parse import parse
from tests.sketch.test_soundness import DOMAIN, Accesses

HEADER = """
name = "planted"
n = size(16, dynamic=True, low={low}{high}, multiple_of={step})
m = size(5, dynamic=True, low=1)
B = tunable(4, [2, 4, 8])
x = tensor([n, m], f32, role="input", source="0")
y = tensor([n, m], f32, role="output")
y_flat = tensor([n * m], f32, role="view", source="y")
x_flat = tensor([n * m], f32, role="view", source="x")

@kernel
def fill():
    store(y[0:n, 0:m], 0.0)

@kernel
def k():
"""


def text_of(*lines: str, low: int = 0, high: int | None = None, step: int = 1) -> str:
    end = "" if high is None else f", high={high}"
    return HEADER.format(low=low, high=end, step=step) + "".join(f"    {line}\n" for line in lines) + 'returns("y")\n'


def proof_of(*lines: str, low: int = 0, high: int | None = None, step: int = 1) -> SizeProof:
    return proof_of_texts([text_of(*lines, low=low, high=high, step=step)])


RIGHT = {
    "rows": ["for i in parallel(0, n):", "    store(y[i, 0:m], load(x[i, 0:m]))"],
    "flat": ["for i in parallel(0, n * m):", "    store(y[i // m, i % m], load(x[i // m, i % m]))"],
    "padded_tiles": ["for i in parallel(0, n, B):", "    store(y[i:i + B, 0:m], load(x[i:i + B, 0:m], pad=0.0))"],
    "reversed": ["for i in parallel(0, n):", "    store(y[n - 1 - i, 0:m], load(x[n - 1 - i, m - 1:-1:-1]))"],
    "dealt_out": ["for p in parallel(0, 4):", "    for i in range(p, n, 4):", "        store(y[i, 0:m], load(x[i, 0:m]))"],
    "neighbours": ["for i in parallel(1, n - 1):", "    store(y[i, 0:m], load(x[i - 1, 0:m]) + load(x[i + 1, 0:m]))"],
    "two_in_one": ["for i in parallel(0, n * m):", "    store(y[i % n, i // n], load(x[i % n, i // n]))"],
}
BROKEN = {
    "beyond_the_end": (["for i in parallel(0, n):", "    store(y[i, 0:m], load(x[i + 1, 0:m]))"], "leave axis 0"),
    "before_the_start": (["for i in parallel(0, n):", "    store(y[i, 0:m], load(x[i - 1, 0:m]))"], "leave axis 0"),
    "last_tile": (["for i in parallel(0, n, B):", "    store(y[i:i + B, 0:m], load(x[i:i + B, 0:m]))"], "leave axis 0"),
    "at_least_eight": (["store(y[7, 0:m], load(x[7, 0:m]))"], "leave axis 0"),
    "off_by_a_product": (["for i in parallel(0, n):", "    store(y[i, 0], load(x_flat[i * m + m]))"], "leave axis 0"),
    "large_sizes_only": (["for i in parallel(0, n):", "    store(y[i, 0], load(x[i, max(0, i - 40) // 7 * m]))"], "leave axis 1"),
    "same_row": (["for i in parallel(0, n):", "    store(y[i // 2, 0:m], load(x[i, 0:m]))"], "may meet"),
    "overlap": (["for i in parallel(0, n, 2):", "    store(y[i:i + 3, 0:m], 1.0)"], "may meet"),
    "wrap_around": (["for i in parallel(0, n):", "    store(y[i % 20, 0:m], load(x[i, 0:m]))"], "may meet"),
    "wrong_stride": (["for i in parallel(0, n):", "    for j in parallel(0, m):", "        store(y_flat[i * 4 + j], 1.0)"], "may meet"),
    "reads_what_others_write": (["for i in parallel(0, n - 1):", "    store(y[i, 0:m], load(y[i + 1, 0:m]))"], "may meet"),
    "divides_by_zero": (["for i in parallel(0, m):", "    store(y[0:n, i % (n - 3)], 1.0)"], "division by"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right_for_every_size_is_proved(name: str) -> None:
    proof = proof_of(*RIGHT[name])
    assert proof.outcome == "proved", proof
    assert proof.statement == "proved for x[0] in 0.., x[1] in 1.."
    assert proof.accesses > 0


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("installed", [True, False], ids=["solver", "no_solver"])
def test_broken_at_some_size_is_refuted_with_it(name: str, installed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if installed and not solver.available():
        pytest.skip("z3-solver is not installed")
    monkeypatch.setattr(solver, "available", lambda: installed)
    lines, said = BROKEN[name]
    found = examine(parse(text_of(*lines)))
    assert found.settled is not None
    assert found.settled.refuted, found
    first = found.settled.refuted[0]
    assert said in first.reason
    assert fails(parse(text_of(*lines)), first.sizes), first
    assert any("it does at n = " in fault.reason for fault in found.faults)


def fails(sketch: nodes.Sketch, sizes: object, tries: int = 3) -> bool:
    """Whether the strict interpreter finds a fault at these sizes."""
    given_ = dict(sizes)  # type: ignore[call-overload]
    tunables = {t.name: given_.pop(t.name) for t in sketch.tunables if t.name in given_}
    shape = [given_.get(size.name, size.value) for size in sketch.sizes]
    try:
        interpreter.run(sketch, {"x": torch.zeros(shape)}, tunables=tunables, strict=True)
    except (SketchError, ZeroDivisionError):
        return True
    return False


def test_a_range_or_a_divisor_makes_it_right() -> None:
    tail = ["for i in parallel(0, n, 8):", "    store(y[i:i + 8, 0:m], load(x[i:i + 8, 0:m]))"]
    assert proof_of(*tail).outcome == "refuted"
    assert proof_of(*tail, step=8).statement == "proved for x[0] in 0.. in steps of 8, x[1] in 1.."
    seventh = ["store(y[7, 0:m], load(x[7, 0:m]))"]
    assert proof_of(*seventh, low=8).outcome == "proved"
    wrapped = BROKEN["wrap_around"][0]
    assert proof_of(*wrapped, low=1, high=20).statement == "proved for x[0] in 1..20, x[1] in 1.."
    assert proof_of(*wrapped, low=1, high=21).outcome == "refuted"


def test_the_access_is_named_with_its_line() -> None:
    lines = ["for i in parallel(0, n):", "    t = load(x[i, 0:m])", "    store(y[i, 0:m], t + load(x[n - i, 0:m]))"]
    proof = proof_of(*lines)
    assert proof.outcome == "refuted"
    (gap,) = proof.refuted
    assert gap.source == lines[2].strip()
    assert gap.at.startswith("x[0] = 1")
    assert proof.statement.startswith(f"refuted at {gap.at}: line {gap.line}: load of x may leave axis 0")


def test_data_as_positions_is_said_to_be_trusted() -> None:
    text = text_of("for i in parallel(0, n):", "    store(y[i : i + 1, 0:m], load(x[pick(cast(load(x[i, 0:1]), i64)), 0:m]))")
    proof = proof_of_texts([text])
    assert proof.outcome == "proved"
    assert "read from data" in proof.statement
    assert len(proof.trusted_lines) == 1


def test_what_nobody_can_decide_is_named() -> None:
    text = text_of("for i in parallel(0, n):", "    store(y[pick(cast(load(x[i, 0:1]), i64)), 0:m], 1.0)")
    proof = proof_of_texts([text])
    assert proof.outcome == "unproved"
    assert "may meet" in proof.open[0].reason
    assert not proof.refuted


def test_all_variants_must_be_proved() -> None:
    good, bad = text_of(*RIGHT["rows"]), text_of(*BROKEN["overlap"][0])
    assert proof_of_texts([good, good]).statement.startswith("2 variants proved for ")
    assert proof_of_texts([good, bad]).outcome == "refuted"
    assert proof_of_texts([]).outcome == "unproved"
    assert "cannot be read" in proof_of_texts(["store("]).statement
    fixed = good.replace(", dynamic=True, low=0, multiple_of=1", "").replace(", dynamic=True, low=1", "")
    assert "fixed sizes" in proof_of_texts([fixed]).statement


def varying(seed: int) -> nodes.Sketch:
    """A random sketch with both sizes dynamic, in ranges of their own."""
    r = random.Random(seed)
    sketch = Accesses(seed, general=True).sketch()
    sizes = []
    for size in sketch.sizes:
        low, step = r.choice([0, 0, 1, 3]), r.choice([1, 1, 2, 3])
        high = r.choice([None, None, low + 6])
        sizes.append(replace(size, dynamic=True, low=low, high=high, multiple_of=step))
    return replace(sketch, sizes=tuple(sizes))


def legal(size: nodes.Size, near: int) -> int:
    """The size of a range next to a number."""
    steps = -(-max(size.low, near) // size.multiple_of)
    value = steps * size.multiple_of
    return value if size.high is None or value <= size.high else size.high // size.multiple_of * size.multiple_of


def examined(seed: int) -> tuple[nodes.Sketch, Examination]:
    sketch = varying(seed)
    return sketch, examine(sketch)


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes the solver longer is undecided, which these tests allow."""
    monkeypatch.setattr(solver, "QUERY_SECONDS", 0.2)
    monkeypatch.setattr(solver, "TOTAL_SECONDS", 0.8)
    monkeypatch.setattr(solver, "QUICK_SECONDS", 0.1)
    monkeypatch.setattr(small_sizes, "MOST_PAIRS", 20_000)


PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(st.integers(0, 2**40), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=3))
@settings(PATIENT, max_examples=25)
def test_proved_holds_and_refuted_fails(seed: int, tried: list[tuple[int, int]]) -> None:
    sketch, found = examined(seed)
    assert found.settled is not None
    if not found.faults:
        for rows, columns in tried:
            sizes = {s.name: legal(s, near) for s, near in zip(sketch.sizes, (rows, columns), strict=True)}
            if any(value < s.low for s, value in zip(sketch.sizes, sizes.values(), strict=True)):
                continue  # the range is empty
            for setting in DOMAIN:
                assert not fails(sketch, {**sizes, "B": setting}), (sizes, setting)
    for finding in found.settled.refuted:
        if max(finding.sizes.values()) < 200:
            assert fails(sketch, finding.sizes), finding


def test_random_sketches_are_of_all_kinds() -> None:
    """Otherwise the property above would say nothing."""
    outcomes = [examined(seed)[1] for seed in range(16)]
    assert sum(not each.faults for each in outcomes) > 1
    assert sum(bool(each.settled and each.settled.refuted) for each in outcomes) > 4


def test_static_sketches_are_checked_as_before() -> None:
    sketch = Accesses(3).sketch()
    assert examine(sketch).settled is None
    assert [str(e) for e in examine(sketch).faults] == [str(e) for e in check(sketch)]
