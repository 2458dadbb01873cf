"""Every example of docs/sketch.md parses, prints back, checks, and computes what torch computes, for every tunable value."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from kernelwright.sketch import nodes
from kernelwright.sketch.check.rules import check
from kernelwright.sketch.expressions import SIGNATURES
from kernelwright.sketch.interpret import interpreter
from kernelwright.sketch.parse import parse
from kernelwright.sketch.print import to_source

PAGE = (Path(__file__).parents[2] / "docs" / "sketch.md").read_text()
EXAMPLES = {sketch.name: sketch for sketch in map(parse, re.findall(r"```python\n(.*?)```", PAGE, re.S))}


def _random(tensor: nodes.Tensor, sizes: dict[str, int]) -> torch.Tensor:
    from kernelwright.sketch.index import evaluate

    shape = [evaluate(extent, sizes) for extent in tensor.shape]
    if tensor.dtype is nodes.DType.i64:
        return torch.randint(0, 20, shape)
    return torch.randn(shape)


REFERENCES: dict[str, Callable[..., Any]] = {
    "scaled_relu": lambda x: F.relu(x) * 2.5,
    "softmax": lambda x: x.softmax(1),
    "online_softmax": lambda x: x.softmax(1),
    "layernorm": lambda x, weight, bias: F.layer_norm(x, [768], weight, bias),
    "linear_relu": lambda x, weight, bias: F.relu(F.linear(x, weight, bias)),
    "conv2d": lambda x, weight, bias: F.conv2d(x, weight, bias, stride=2, padding=1),
    "attention": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "mean": lambda x: x.mean(),
    "embedding_count": lambda ids, weight: (F.embedding(ids, weight), torch.bincount(ids, minlength=20)),
}


def test_every_example_has_a_reference() -> None:
    assert EXAMPLES.keys() == REFERENCES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_checks_and_prints_back(name: str) -> None:
    sketch = EXAMPLES[name]
    assert check(sketch) == []
    assert parse(to_source(sketch)) == sketch


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_computes_what_torch_computes(name: str) -> None:
    torch.manual_seed(0)
    sketch = EXAMPLES[name]
    sizes = {size.name: size.value for size in sketch.sizes}
    arguments = [_random(t, sizes) for t in sketch.tensors if t.role == "input"]
    state = {t.source: _random(t, sizes) for t in sketch.tensors if t.role == "param"}
    wanted = REFERENCES[name](*arguments, *state.values())
    longest = max([len(t.domain) for t in sketch.tunables], default=1)
    for turn in range(longest):  # every value of every tunable at least once
        setting = {t.name: t.domain[(turn + place) % len(t.domain)] for place, t in enumerate(sketch.tunables)}
        found = interpreter.call(sketch, arguments, state, tunables=setting, shuffle=1, strict=True)
        torch.testing.assert_close(found, wanted)


def test_the_page_names_every_operation() -> None:
    text = PAGE.replace("/", " ")
    missing = [name for name in SIGNATURES if not re.search(rf"\b{name.removeprefix('reduce_').removeprefix('scan_')}\b", text)]
    operators = {
        "add",
        "sub",
        "mul",
        "div",
        "floordiv",
        "mod",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "xor",
        "shl",
        "shr",
        "invert",
    }
    assert set(missing) <= operators
