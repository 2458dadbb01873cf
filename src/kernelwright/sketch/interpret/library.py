"""How a `LibraryCall` is called: its JSON attributes taken apart, for the interpreter and for coders.

In: a LibraryCall. Out: a `Plan`: which inputs are arguments by position, which arguments are given by name, and which of the
operator's results are written. What JSON cannot say stands in objects with one key: `{"$input": k}` is the k-th of `inputs` (a
tensor that is not among the first arguments, or in a list), `{"$dtype": "float32"}` is a dtype of torch. Attributes of the call
itself: `"$results": [k, …]` are the positions of the results that `outputs` hold, for an operator with several; `"$complex":
{"inputs": [k, …], "outputs": [k, …]}` are tensors that hold complex numbers as pairs (real, imaginary) along their last axis.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kernelwright.sketch.nodes import LibraryCall


@dataclass(frozen=True)
class Plan:
    """`results` is None for an operator whose results are the outputs in order."""

    positional: tuple[int, ...]
    keywords: dict[str, Any]
    results: tuple[int, ...] | None
    complex_inputs: frozenset[int]
    complex_outputs: frozenset[int]


def plan(step: LibraryCall) -> Plan:
    """Takes the attributes apart."""
    given: dict[str, Any] = json.loads(step.attributes)
    keywords = {name: value for name, value in given.items() if not name.startswith("$")}
    named = set(_inputs_in(list(keywords.values())))
    pairs = given.get("$complex", {})
    return Plan(
        tuple(k for k in range(len(step.inputs)) if k not in named),
        keywords,
        tuple(given["$results"]) if "$results" in given else None,
        frozenset(pairs.get("inputs", ())),
        frozenset(pairs.get("outputs", ())),
    )


def filled(value: Any, tensor: Callable[[int], Any], dtype: Callable[[str], Any], plain: Callable[[Any], Any]) -> Any:
    """A keyword's value with references replaced; lists stay lists, other values go through `plain`."""
    if isinstance(value, list):
        return [filled(item, tensor, dtype, plain) for item in value]
    if isinstance(value, dict):
        return tensor(value["$input"]) if "$input" in value else dtype(value["$dtype"])
    return plain(value)


def _inputs_in(value: Any) -> Iterator[int]:
    if isinstance(value, list):
        for item in value:
            yield from _inputs_in(item)
    elif isinstance(value, dict) and "$input" in value:
        yield int(value["$input"])
