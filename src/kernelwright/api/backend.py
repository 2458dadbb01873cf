"""`torch.compile(model, backend="kernelwright")`: what Dynamo calls with each graph.

AOTAutograd makes the graph functional and puts mutations, views and aliases right around it; `Program` decides about the inside when the
first real inputs come, and here the whole is raced with eager once more, wrappers and all. Until then, and wherever something refuses,
Dynamo's own graph runs eagerly: so does a graph that needs gradients. One with symbolic sizes gets a program for each size that keeps
coming (`by_size`).

Options of `torch.compile(…, options={…})`: `background` (True: eager serves until the pieces are there), `budget` (seconds for preparing
a graph, 300), `race` (False: what is right is used, however fast), `designs` (how many designs of a piece are built and raced, 1).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch.fx import GraphModule

from kernelwright.api import libraries
from kernelwright.api.any_size import Symbols, kernel_for_any_size
from kernelwright.api.by_size import BySize, symbolic
from kernelwright.api.explanation import Record, new_record
from kernelwright.api.machine_load import quiet_now
from kernelwright.api.program import Program
from kernelwright.api.race import race
from kernelwright.core.errors import ConfigError, UnsupportedOperator
from kernelwright.core.folders import cache_folder

OPTIONS = {"background": False, "budget": 300.0, "race": True, "designs": 1}
_forked = False
_threads: list[threading.Thread] = []


def _after_fork() -> None:
    global _forked
    _forked = True
    _threads.clear()


os.register_at_fork(after_in_child=_after_fork)


class NeedsGradients(Exception):
    """AOTAutograd asks for a graph with a backward pass."""


def kernelwright(graph: GraphModule, inputs: Sequence[Any], *, options: dict[str, Any] | None = None) -> Callable[..., Any]:
    """The entry point of the group `torch_dynamo_backends`."""
    unknown = set(options or {}) - set(OPTIONS)
    if unknown:
        raise ConfigError(f"the backend has no option {sorted(unknown)[0]!r}; it has {', '.join(OPTIONS)}")
    chosen = OPTIONS | (options or {})
    record = new_record(sum(n.op.startswith("call_") for n in graph.graph.nodes), inputs)
    if not any(map(symbolic, inputs)):
        return _compiled(graph, inputs, chosen, record)

    def for_sizes(given: Sequence[Any]) -> Callable[..., Any]:
        from torch._subclasses.fake_tensor import FakeTensorMode

        with torch._guards.tracing(torch._guards.TracingContext(FakeTensorMode())):
            return _compiled(graph, given, chosen, new_record(record.operators, given))

    symbols = Symbols.of(graph)

    def for_any(given: Sequence[Any]) -> Callable[..., Any]:
        if torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and a.requires_grad for a in given):
            raise UnsupportedOperator("this graph", "gradients are needed")
        return kernel_for_any_size(graph, symbols, given)

    raced, wanted = bool(chosen["race"]), None if chosen["background"] else for_any
    return BySize(graph.forward, for_sizes, wanted, record, raced=raced, usable=_usable)


def _usable() -> bool:
    """Whether kernels may run here: the threads of a pool that they wait for do not come along into a forked process."""
    return not _forked or torch.get_num_threads() == 1


def _compiled(graph: GraphModule, inputs: Sequence[Any], chosen: dict[str, Any], record: Record) -> Callable[..., Any]:
    """The graph for the sizes of these inputs."""
    program: list[Program] = []
    mutated: list[bool] = []

    def inference(functional: GraphModule, _: Sequence[Any]) -> Program:
        context = torch._guards.TracingContext.try_get()
        metadata = context.fw_metadata if context is not None else None
        mutated.append(metadata is None or any(i.mutates_data or i.mutates_metadata for i in metadata.input_info))
        raced, designs = bool(chosen["race"]), int(chosen["designs"])
        program.append(Program(functional, record, budget=float(chosen["budget"]), raced=raced, designs=designs))
        return program[0]

    def training(*_: Any) -> Any:
        raise NeedsGradients

    try:
        from torch._functorch.aot_autograd import aot_module_simplified

        compiled = aot_module_simplified(
            graph, list(inputs), fw_compiler=training, bw_compiler=training, inference_compiler=inference
        )
    except NeedsGradients:
        return _left(graph, record, "gradients are needed: call it under torch.no_grad() or inference_mode()")
    except Exception as error:
        return _left(graph, record, f"AOTAutograd refuses: {(str(error).splitlines() or [type(error).__name__])[0][:160]}")
    if not program:
        return _left(graph, record, "there is nothing to compute")
    if program[0].refusal:
        return _left(graph, record, program[0].refusal)
    if program[0].draws and chosen["background"]:
        return _left(graph, record, "it draws random numbers, which trying in the background would draw, too")
    return Served(graph, compiled, program[0], record, any(mutated), bool(chosen["background"]))


def _left(graph: GraphModule, record: Record, why: str) -> Callable[..., Any]:
    record.why = why
    record.say()
    eager: Callable[..., Any] = graph.forward
    return eager


class Served:
    """A graph in use. Thread-safe: one thread decides, the others are served by eager meanwhile."""

    def __init__(
        self,
        graph: GraphModule,
        compiled: Callable[..., Any],
        program: Program,
        record: Record,
        mutates: bool,
        background: bool,
    ) -> None:
        self.eager: Callable[..., Any] = graph.forward
        self.compiled, self.program, self.record, self.mutates = compiled, program, record, mutates
        self.background = background
        self._lock = threading.Lock()
        self._started = False
        self.run: Callable[..., Any] = self.decide

    def __call__(self, *args: Any) -> Any:
        if not _usable():
            return self.eager(*args)
        return self.run(*args)

    def decide(self, *args: Any) -> Any:
        """The first calls: prepares, then races the whole, and answers by eager's means until all is decided."""
        if not self._lock.acquire(blocking=False):
            return self.eager(*args)
        try:
            if self.run != self.decide:
                return self.run(*args)
            if self.background and not self.program.ready:
                if not self._started:
                    self._started = True
                    thread = threading.Thread(target=self._prepare_beside, args=([_copied(a) for a in args],), daemon=True)
                    _threads.append(thread)
                    thread.start()
                return self.eager(*args)
            with torch.random.fork_rng(devices=[], enabled=self.program.draws):
                if not self.program.ready:
                    self._prepare(self._own(args))
                self._choose(args)
        finally:
            self._lock.release()
        return self.run(*args)

    def _prepare_beside(self, args: list[Any]) -> None:
        with torch.no_grad(), self._lock:
            self._prepare(args)

    def _prepare(self, args: Sequence[Any]) -> None:
        from torch._dynamo.convert_frame import compile_lock

        self.compiled(*args)
        with compile_lock:  # recording keeps notes that all threads share: not while another one's model is recorded
            try:
                self.program.prepare()
            except Exception as error:  # a fault of ours must not become one of the user's program
                self.record.why = f"preparing failed: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:160]}"

    def _choose(self, args: Sequence[Any]) -> None:
        if not self.program.improved:
            self._settle(self.eager)
            return
        if not self.program.raced:
            self.record.used = True
            self._settle(self.compiled)
            return
        note = cache_folder("graphs") / f"{self.program.key}.json"
        found = _kept(note)
        if found is None or (not found["quiet"] and quiet_now()):
            outcome = race(lambda: self.eager(*self._own(args)), lambda: self.compiled(*self._own(args)))
            if found is None or outcome.quiet:
                found = {**asdict(outcome), "won": outcome.won}
                libraries.write(note, json.dumps(found))
        self.record.gain, self.record.low, self.record.high = found["gain"], found["low"], found["high"]
        self.record.eager, self.record.used = found["eager"], found["won"]
        busy = "" if found["quiet"] else ", on a busy machine"
        self.record.why = f"no faster than eager as a whole{busy}" if not found["won"] else busy.removeprefix(", ")
        self._settle(self.compiled if found["won"] else self.eager)

    def _own(self, args: Sequence[Any]) -> list[Any]:
        """The inputs, or copies where the graph changes them."""
        return [_copied(a) for a in args] if self.mutates else list(args)

    def _settle(self, run: Callable[..., Any]) -> None:
        self.run = run
        self.record.say()


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _kept(note: Any) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(note.read_text())
        return found if {"gain", "low", "high", "eager", "won", "quiet"} <= set(found) else None
    except (OSError, ValueError):
        return None


def wait() -> None:
    """Waits until graphs that are prepared in the background are there; the next call of each decides about it."""
    while _threads:
        _threads.pop().join()
