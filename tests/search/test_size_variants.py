"""Variants for the sizes that occur: the table that is made of measurements, the file that it chooses in, and the way through a job."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from kernelwright.compiler.designer import design_module
from kernelwright.compiler.language import HasVariants, language
from kernelwright.core.errors import ConfigError
from kernelwright.core.kernel import Kernel
from kernelwright.core.size_choice import SizeTable, Split, as_json, from_json
from kernelwright.core.task.dynamic import Dynamic, SizeSymbol
from kernelwright.core.task.shape_counts import ShapeCount, counted, parse_shapes, shapes_text, written
from kernelwright.search.size_tree import Measured, best_alone, seconds_of, table_of

DYNAMIC = Dynamic((SizeSymbol("n", 1, 4096, 1, 6),), ((0, 0, "n"),), ("x[0]",))


def measured(rows: dict[tuple[int, ...], tuple[int, tuple[float | None, ...]]]) -> list[Measured]:
    return [Measured(dict(zip("ab", sizes, strict=False)), count, times) for sizes, (count, times) in rows.items()]


def table(rows: dict[tuple[int, ...], tuple[int, tuple[float | None, ...]]]) -> SizeTable:
    return table_of(measured(rows), {"a": "x[0]", "b": "x[1]"}, "a machine")


def test_a_split_where_it_pays() -> None:
    made = table({(1,): (50, (4.0, 1.0)), (8,): (5, (4.0, 2.0)), (512,): (5, (9.0, 20.0))})
    assert made.tree == Split("a", 64, 1, 0)
    assert (made.choose({"a": 8}), made.choose({"a": 64})) == (1, 0)
    assert "x[0] = 512 (5 of 60 calls): 9000  2e+04" in made.evidence


def test_no_split_for_noise_and_none_for_what_never_occurs() -> None:
    assert table({(1,): (5, (1.0, 0.99)), (512,): (5, (9.0, 9.1))}).tree == 0
    assert table({(1,): (1, (4.0, 1.0)), (512,): (10_000, (9.0, 20.0))}).tree == 0, "one call in ten thousand"


def test_two_sizes_that_matter_together() -> None:
    """Neither size alone says anything: only both splits together are a gain."""
    made = table({(1, 1): (1, (1.0, 9.0)), (1, 64): (1, (9.0, 1.0)), (64, 1): (1, (9.0, 1.0)), (64, 64): (1, (1.0, 9.0))})
    for a in (1, 64):
        for b in (1, 64):
            assert made.choose({"a": a, "b": b}) == (0 if a == b else 1)


def test_a_variant_that_cannot_run_is_never_chosen() -> None:
    assert table({(1,): (5, (4.0, None)), (512,): (5, (9.0, 1.0))}).variants() == (0, 1)
    assert table({(1,): (5, (4.0, None)), (512,): (5, (9.0, None))}).variants() == (0,)


def test_a_table_travels_and_is_renumbered() -> None:
    made = SizeTable(Split("a", 8, 5, Split("b", 2, 3, 5)))
    assert from_json(as_json(made.tree)) == made.tree
    assert made.variants() == (3, 5)
    assert made.renumbered().tree == Split("a", 8, 1, Split("b", 2, 0, 1))
    assert made.names() == ("a", "b")


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 99), st.integers(0, 99)),
        st.tuples(st.integers(1, 9), st.tuples(*[st.floats(0.01, 10.0)] * 3)),
        min_size=1,
        max_size=8,
    )
)
def test_a_table_is_never_worse_than_one_variant(rows: dict[Any, Any]) -> None:
    every = measured(rows)
    made = table(rows)
    alone = sum(one.cost(best_alone(every)) for one in every)
    assert seconds_of(every, made) <= alone * (1 + 1e-9)
    assert seconds_of(every, made) >= sum(min(one.cost(v) for v in range(3)) for one in every) - 1e-9


# ---------------------------------------------------------------- --shapes


def test_shapes_as_written() -> None:
    assert parse_shapes("512,768; 64,768*10") == [ShapeCount(1, (512, 768)), ShapeCount(10, (64, 768))]
    assert counted(parse_shapes("3; 5*4; 3"), DYNAMIC, [(6, 9)]) == {(5,): 4, (3,): 2}


@pytest.mark.parametrize("text", ["", "a,b", "1;;x", "{}", '{"format": "other", "calls": []}', "1*"])
def test_what_is_no_list_of_shapes_is_one_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match="--shapes"):
        parse_shapes(text)


@pytest.mark.parametrize(
    ("text", "said"), [("1,2", "varies 1 sizes"), ("5000", "is not in 1..4096"), ("0", "is not in 1..4096")]
)
def test_sizes_must_be_those_of_the_task(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        counted(parse_shapes(text), DYNAMIC, [(6, 9)])


def test_recorded_calls_that_fit_the_task(tmp_path: Path) -> None:
    calls = [
        ShapeCount(7, (), "a.Model", ((3, 9),)),
        ShapeCount(2, (), "a.Model", ((4, 9),)),
        ShapeCount(90, (), "b.Other", ((3, 9),)),
        ShapeCount(50, (), "a.Model", ((3, 10),)),
        ShapeCount(50, (), "a.Model", ((3, 9), (1,))),
    ]
    path = tmp_path / "shapes.json"
    path.write_text(written(calls))
    found = parse_shapes(shapes_text(str(path)))
    assert counted(found, DYNAMIC, [(6, 9)], "Model") == {(3,): 7, (4,): 2}
    assert counted(found, DYNAMIC, [(6, 9)], "Elsewhere") == {(3,): 97, (4,): 2}
    with pytest.raises(ConfigError, match="none of the recorded calls"):
        counted(found, DYNAMIC, [(6, 11)])


# ---------------------------------------------------------------- the file


def test_a_file_with_variants_chooses_by_size(tmp_path: Path) -> None:
    model = nn.LayerNorm(20).eval()
    designs = [
        design_module(
            model, [torch.randn(n, 20)], limit=1, dynamic=replace(DYNAMIC, symbols=(replace(DYNAMIC.symbols[0], example=n),))
        )
        for n in (6, 300)
    ]
    sketches = [each[0].sketch for each in designs]
    state = [(name, tuple(t.shape), "float32", False) for name, t in model.state_dict().items()]
    coder = language("cpp")
    assert isinstance(coder, HasVariants)
    name = sketches[0].sizes[0].name
    chosen = SizeTable(Split(name, 100, 0, 1), ("made for a test",))
    text = coder.lower(sketches[0], state=state, shapes=sketches[1:], table=chosen)
    path = tmp_path / "kernel.py"
    path.write_text(text)
    assert len(Kernel.from_path(path).sketches) == 2
    assert "    # made for a test" in text
    spec = importlib.util.spec_from_file_location("by_size", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.ModelNew()
    made.load_state_dict(model.state_dict())
    called: list[int] = []
    for number, program in enumerate(made._programs):
        inner = program.forward
        program.forward = lambda *args, n=number, f=inner: (called.append(n), f(*args))[1]
    with torch.no_grad():
        for rows in (1, 99, 100, 301):
            x = torch.randn(rows, 20)
            torch.testing.assert_close(made(x), model(x), rtol=1e-4, atol=1e-5)
    assert called == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="1 to 4096"):
        made(torch.randn(5000, 20))
    with pytest.raises(ValueError):
        made(torch.randn(20))


TASK = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1

def get_inputs():
    return [torch.randn(6, 9)]

def get_init_inputs():
    return []

def get_dynamic():
    return "x[0]=1..500"
"""


@pytest.mark.slow
def test_tune_with_shapes(tmp_path: Path) -> None:
    from kernelwright.cli.main import run

    path = tmp_path / "task.py"
    path.write_text(TASK)
    out = tmp_path / "out"
    common = ["tune", str(path), "--no-compile", "--out", str(out)]
    assert run([*common, "--shapes", "2*50;400"]) == 0
    assert (out / "kernel.py").exists()
    assert run([*common, "--shapes", "2,3"]) == 2
    assert run([*common, "--shapes", "2", "--dsl", "triton"]) == 2


def test_costs_without_a_measurement_are_infinite() -> None:
    assert math.isinf(Measured({"a": 1}, 2, (None,)).cost(0))
