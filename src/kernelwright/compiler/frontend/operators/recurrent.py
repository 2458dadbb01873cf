"""Recurrent networks: LSTM, GRU and plain RNN layers stay whole, because unrolled they are thousands of kernels.

What does not wait for the step before, the product of all inputs with their weights, is one ordinary matrix product of the graph.
The rest is a custom kernel (compiler/schedule/recurrence.py) that walks through time. In: ATen's lstm, gru, rnn_tanh and
rnn_relu with their flat list of weights. Out: the sequence of outputs and the last states.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kernelwright.compiler.frontend.operators.product import matmul
from kernelwright.compiler.frontend.operators.table import Result, rule
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.values import GATES, Cell, CustomKernel, KernelBuilder, Value
from kernelwright.sketch.nodes import DType


def recurrent(
    cell: Cell, out: Sequence[Result], x: Value, states: Sequence[Value], params: Sequence[Value], biases: bool, layers: int,
    bidirectional: bool, batch_first: bool,
) -> tuple[Value, ...]:  # fmt: skip
    """All layers and directions; the output first, then each kind of state [layers * directions, batch, hidden]."""
    if x.dtype not in (DType.f32, DType.f64):
        raise NotImplementedError(f"recurrent layers of {x.dtype}")
    plain = len(x.shape) == 2
    if plain:
        x, states = b.unsqueeze(x, 1), [b.unsqueeze(s, 1) for s in states]
    elif batch_first:
        x = b.permute(x, (1, 0, 2))
    directions = 2 if bidirectional else 1
    each = 4 if biases else 2
    if len(params) != each * layers * directions:
        raise NotImplementedError("recurrent layers with a projection")
    if 0 in x.shape:
        raise NotImplementedError("recurrent layers over nothing")
    last: list[list[Value]] = [[] for _ in states]
    for layer in range(layers):
        sides: list[Value] = []
        for side in range(directions):
            place = layer * directions + side
            weights = params[place * each : (place + 1) * each]
            begin = [b.select(s, 0, place) for s in states]
            sequence, end = _layer(cell, b.flip(x, (0,)) if side else x, begin, weights)
            sides.append(b.flip(sequence, (0,)) if side else sequence)
            for kind, value in zip(last, end, strict=True):
                kind.append(b.unsqueeze(value, 0))
        width = sum(s.shape[2] for s in sides)
        x = v.Concat((*x.shape[:2], width), x.dtype, tuple(sides), 2) if len(sides) > 1 else sides[0]
    ends = [v.Concat((len(kind), *kind[0].shape[1:]), x.dtype, tuple(kind), 0) if len(kind) > 1 else kind[0] for kind in last]
    if plain:
        return (b.squeeze(x, (1,)), *(b.squeeze(e, (1,)) for e in ends))
    return (b.permute(x, (1, 0, 2)) if batch_first else x, *ends)


def _layer(cell: Cell, x: Value, begin: list[Value], weights: Sequence[Value]) -> tuple[Value, list[Value]]:
    """One direction of one layer: the hidden states [time, batch, hidden], and the last of each kind of state."""
    steps, batch, features = x.shape
    gates, hidden = GATES[cell], weights[1].shape[1]
    flat = b.reshape(x, (steps * batch, features))
    given = matmul(flat, b.permute(weights[0], (1, 0)), x.dtype)
    if len(weights) == 4:
        given = b.add(given, weights[2])
        if cell != "gru":  # its third gate scales this bias together with the product
            given = b.add(given, weights[3])
    given = b.reshape(given, (steps, batch, gates, hidden))
    again = b.reshape(weights[1], (gates, hidden, hidden))
    bias = b.reshape(weights[3], (gates, hidden)) if cell == "gru" and len(weights) == 4 else None
    origin = f"aten.{cell}.input"
    args = (given, again, *begin, *([bias] if bias is not None else []))
    history = CustomKernel((steps + 1, batch, hidden), x.dtype, None, args, origin=origin)  # type: ignore[arg-type]
    kept = [CustomKernel((batch, hidden), x.dtype, None, args, origin=origin) for _ in begin[1:]]  # type: ignore[arg-type]

    def write(builder: KernelBuilder, _: tuple[Value, ...]) -> None:
        builder.step_through_time(cell, given, again, begin, bias, history, kept)

    for one in (history, *kept):
        one.write = write
        one.group = [history, *kept]
    return b.slice_axis(history, 0, 1, steps + 1), [b.select(history, 0, steps), *kept]


@rule("lstm.input")
def lstm(
    out: Any, x: Value, states: Sequence[Value], params: Sequence[Value], biases: bool, layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[Value, ...]:  # fmt: skip
    _refuse_training(dropout, train)
    return recurrent("lstm", out, x, states, params, biases, layers, bidirectional, batch_first)


def _one_state(cell: Cell) -> Any:
    def made(
        out: Any, x: Value, state: Value, params: Sequence[Value], biases: bool, layers: int, dropout: float, train: bool,
        bidirectional: bool, batch_first: bool,
    ) -> tuple[Value, ...]:  # fmt: skip
        _refuse_training(dropout, train)
        return recurrent(cell, out, x, [state], params, biases, layers, bidirectional, batch_first)

    return made


def _refuse_training(dropout: float, train: bool) -> None:
    if train and not math.isclose(dropout, 0.0):
        raise NotImplementedError("dropout between recurrent layers")


rule("gru.input")(_one_state("gru"))
rule("rnn_tanh.input")(_one_state("rnn_tanh"))
rule("rnn_relu.input")(_one_state("rnn_relu"))
