"""The stopwatch: the only code that times calls, the same inside every contender's process (eager, torch.compile, candidate).

In: a callable and, per block, a sealed bundle of n input sets from the referee. Out: the nanoseconds of n calls back to back,
and any output of the block when asked. One block is a few messages, so that the parent can watch the process between them and
knows what each costs:

1. `time_prepare`  copy the input sets to fresh pointers (64-byte aligned, offset within a page varied: (output − input) modulo
                   4 KiB alone moves a kernel by 1.5x, see docs/judge.md);
2. `time_go`       run the n calls between two clock readings. Only the total counts: work moved from one call of a block into
                   another gains nothing. Right after the last call, elements at random positions are read out;
3. `time_outputs`  hand over the outputs of one call or of the whole block, and what was read out in step 2 beside what is there
                   now: if they differ, work was still going on. `time_inputs` hands over what a call left of its inputs;
4. `time_release`  let go of the block: what destructors do then is the kernel's work, too.

`time_ready` (after 1) and `time_rest` (after 4) are the judge's own work: a large block's memory is fetched and given back.

Every function that candidate code could replace is bound here at import, before that code is loaded. What the stopwatch says is
still only a claim: the parent holds it against its own wall clock (clock.py).
"""

from __future__ import annotations

import gc
import os
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from kernelwright.judge.reference.heap import Reserve, allocated_bytes, give_back
from kernelwright.judge.timing.turned import Turned
from kernelwright.workers import bundle
from kernelwright.workers.channel import ChannelGarbage, Message

Call = Callable[[Sequence[Any]], Any]

PAGE, LINE = 4096, 64
PROBES = 512

_now = time.perf_counter_ns
_urandom = os.urandom
_take = torch.take
_frombuffer = torch.frombuffer
_as_strided = torch.as_strided
_empty, _new_empty, _data_ptr = torch.empty, torch.Tensor.new_empty, torch.Tensor.data_ptr
_gradients, _set_gradients = torch.is_grad_enabled, torch._C._set_grad_enabled
_remainder = torch.remainder
_get_threads, _set_threads = torch.get_num_threads, torch.set_num_threads
_copy, _set, _storage = torch.Tensor.copy_, torch.Tensor.set_, torch.Tensor.untyped_storage
_part = torch.UntypedStorage.__getitem__
_Tensor, _uint8, _int64 = torch.Tensor, torch.uint8, torch.int64
_pack, _unpack, _leaves = bundle.pack, bundle.unpack, bundle.tensors
_gc_disable, _gc_enable = gc.disable, gc.enable
_turned = Turned.from_message


class Stopwatch:
    """Times one callable in this process. `call(inputs)` must be the very path that correctness trials use, but for the switch that turns
    gradients off: the stopwatch turns it once for a block."""

    device = "cpu"
    """Where its tensors live, in torch's words; another device has a stopwatch of its own (accelerator.py)."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._sets: list[Any] = []
        self._outputs: list[Any] = []
        self._probe: list[Any] = []
        self._positions: list[Any] = []
        self._reserve = Reserve()
        self._empty_handed = allocated_bytes()

    def start(self) -> None:
        """The model is there and has not been called: what is allocated from now on is what its calls need."""
        self._empty_handed = allocated_bytes()

    def handle(self, message: Message, fds: Sequence[int]) -> tuple[Message, list[int]]:
        """Answer one `time_*` message; the caller sends the reply and then closes the returned descriptors."""
        op = message.get("op")
        if op == "time_prepare":
            return {
                "ok": True,
                "calls": self.prepare(
                    message["header"],
                    fds[0],
                    int(message["align"]),
                    bool(message.get("skew")),
                    int(message.get("repeat") or 1),
                    _turned(message.get("turned")),
                ),
            }, []
        if op == "time_go":
            total, first = self.go()
            return {"ok": True, "ns": total, "first_ns": first, "calls": len(self._outputs)}, []
        if op == "time_outputs":
            return self.outputs(int(message["call"]), whole=message.get("whole") is True)
        if op == "time_inputs":
            packed = _pack(self.host(self._sets[int(message["call"])]))
            return {"ok": True, "header": packed.header}, [packed.fd]
        if op == "time_ready":
            self._reserve.ready()
            return {"ok": True}, []
        if op == "time_release":
            self.release()
            return {"ok": True}, []
        if op == "time_rest":
            self._reserve.rest()
            if message.get("trim") is not True:
                return {"ok": True}, []
            give_back()
            return {"ok": True, "kept": max(0, allocated_bytes() - self._empty_handed)}, []
        raise ChannelGarbage(f"unknown request {op!r}")

    def prepare(
        self,
        header: dict[str, Any],
        fd: int,
        align: int,
        skew: bool = False,
        repeat: int = 1,
        turned: Turned | None = None,
    ) -> int:
        """Copy the block's input sets into fresh memory. `align` seeds the pointers' offsets: alike for all contenders of a
        round. All of them come up again as often as `repeat` says. `turned`: what came is a part, the whole is made of it."""
        self.release()
        dice = random.Random(align)
        self._sets = [self._placed(inputs, dice, skew, turned) for inputs in _unpack(header, fd)] * repeat
        return len(self._sets)

    def go(self) -> tuple[int, int]:
        """Run the block; nanoseconds of all its calls together, and of the first of them."""
        _gc_disable()
        gradients = _gradients()
        _set_gradients(False)
        try:
            _wake()
            outputs, total, first = self._run(self._call, self._sets)
            self._read_out(outputs[-1] if outputs else None)
        finally:
            _set_gradients(gradients)
            _gc_enable()
        self._outputs = outputs
        return total, first

    def _run(self, call: Call, sets: list[Any]) -> tuple[list[Any], int, int]:
        """The outputs of all calls, and the nanoseconds of all and of the first."""
        outputs = []
        first = 0
        start = _now()
        for inputs in sets:
            outputs.append(call(inputs))
            first = first or _now() - start
        return outputs, _now() - start, first

    def _placed(self, inputs: Any, dice: random.Random, skew: bool, turned: Turned | None) -> Any:
        """A set of inputs where the kernel will find it."""
        return _place(inputs, dice, skew, turned)

    def host(self, tree: Any) -> Any:
        """Tensors as they can be handed over: in this process's memory."""
        return tree

    def outputs(self, index: int, *, whole: bool = False) -> tuple[Message, list[int]]:
        """The outputs of one call of the last block (or of all its calls), the elements read out after its last call, and whether
        all were plain tensors."""
        held, last = self._outputs if whole else self._outputs[index], self._outputs[-1]
        plain = all(type(tensor) is _Tensor for tensor in (*_leaves(held), *_leaves(last)))
        values = _pack(self.host(held))
        now = [self.host(_take(tensor, where)) for tensor, where in zip(_probed(last), self._positions, strict=True)]
        probe = _pack({"then": self._probe, "now": now})
        return {"ok": True, "header": values.header, "probe_header": probe.header, "plain": plain}, [values.fd, probe.fd]

    def release(self) -> None:
        """Let go of the last block's memory, so that the next one finds it warm."""
        tensors = {id(tensor): tensor for tensor in _probed([self._sets, self._outputs])}  # a repeated set is held once
        held = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        self._reserve.note(held)
        self._sets, self._outputs, self._probe, self._positions = [], [], [], []

    def _read_out(self, output: Any) -> None:
        self._probe, self._positions = [], []
        for tensor in _probed(output):
            where = _remainder(_frombuffer(bytearray(_urandom(8 * PROBES)), dtype=_int64), tensor.numel())
            where = where.to(tensor.device)
            self._positions.append(where)
            self._probe.append(self.host(_take(tensor, where)))


def _wake() -> None:
    """Bring the interpreter and torch's allocation of tensors into the caches, as they are in the middle of a model. The process was
    stopped and has copied its inputs since: else a call of a millisecond pays a twentieth for Python's cold start. Only functions
    bound above run here, nothing that a candidate can replace."""
    tensor = _empty((4, 4))
    for _ in range(3):
        _data_ptr(_new_empty(tensor, (4, 4)))


def still_working(probe: dict[str, Any]) -> bool:
    """Whether elements changed after the call had returned: it was not finished when it said so. Runs in the referee."""
    pairs = zip(probe["then"], probe["now"], strict=True)
    return any(bool(((then != now) & ~((then != then) & (now != now))).any()) for then, now in pairs)


def _probed(output: Any) -> list[Any]:
    return [tensor for tensor in _leaves(output) if type(tensor) is _Tensor and tensor.numel() > 0]


def _place(tree: Any, dice: random.Random, skew: bool, turned: Turned | None) -> Any:
    """A copy of the tree whose tensors start at a chosen offset within a page."""
    whole = {id(tensor) for place, tensor in enumerate(_leaves(tree)) if turned and place in turned.carried}

    def placed(item: Any) -> Any:
        if isinstance(item, _Tensor):
            return _place_tensor(item, dice, skew, turned if id(item) in whole else None)
        if isinstance(item, dict):
            return {key: placed(part) for key, part in item.items()}
        if isinstance(item, list | tuple):
            return type(item)(placed(part) for part in item)
        return item

    return placed(tree)


def _place_tensor(tensor: Any, dice: random.Random, skew: bool, turned: Turned | None) -> Any:
    if tensor.numel() == 0:
        return tensor.clone()
    shape, strides = turned.layout(tensor) if turned else (tensor.shape, tensor.stride())
    span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    nbytes = span * tensor.element_size()
    room = _empty(nbytes + 2 * PAGE, dtype=_uint8)
    start = (-room.data_ptr()) % PAGE + LINE * dice.choice((0, dice.randrange(PAGE // LINE)))
    if skew:  # a slice of a tensor is contiguous, too, and starts wherever its first element lies
        start += tensor.element_size() * dice.choice((1, 3, 5, 7))
    # A storage of its own, as a tensor of any program has: nothing tells it from one that the judge did not place.
    flat = _set(_empty(0, dtype=tensor.dtype), _part(_storage(room), slice(start, start + nbytes)), 0, (span,), (1,))
    if turned:
        turned.fill(_as_strided(flat, shape, strides), tensor)
    else:
        _copy(flat, _as_strided(tensor, (span,), (1,), tensor.storage_offset()))
    return _as_strided(flat, shape, strides)


def refill(tensors: list[Any], values: list[Any], turned: Turned | None) -> None:
    """Other values into tensors of a block, past their version counters: each is written through a tensor of its own on the same memory."""
    for place, (tensor, value) in enumerate(zip(tensors, values, strict=True)):
        whole = turned if turned and place in turned.carried else None
        shape, strides = whole.layout(value) if whole else (value.shape, value.stride())
        if tuple(tensor.shape) != tuple(shape) or tuple(tensor.stride()) != tuple(strides) or tensor.dtype != value.dtype:
            raise ValueError("the inputs have another layout")
        if not value.numel():
            continue
        inside = _set(
            _empty(0, dtype=tensor.dtype, device=tensor.device), _storage(tensor), tensor.storage_offset(), shape, strides
        )
        if whole:
            whole.fill(inside, value)
        else:
            _copy(inside, value)
