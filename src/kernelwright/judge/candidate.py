"""The candidate's worker: loads a kernel file and answers the parent, in a process that is closed in and trusted with nothing.

In (requests, one at a time): `load` (source, constructor arguments, seed), `weights`, `time_prepare`/`time_go`/… (stopwatch.py),
`refill` (new values into the same tensors), `collect` (outputs of the last block and its inputs as they are now), `held` (outputs
of an earlier call once more), `forget`, `trace_on`, `trace_off`, `compile_for` (a language's runtime compiles what was launched).
Out: replies with tensors as sealed bundles; a failure of the kernel is a reply too: {"ok": false, "kind", "type", "error", "trace"}.

A correctness trial and a timed block are the same three requests, run by the same lines of code: nothing on the stack, in the
environment or in the grad mode tells them apart. Whatever this process says is checked by the parent and the referee; what is
captured here at import only makes tampering harder.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kernelwright.compiler.language import CompileFailed, NotExecuted
from kernelwright.judge.honesty.trace import Trace
from kernelwright.judge.reference.heap import LARGE_BYTES, give_back
from kernelwright.judge.timing.device_stopwatch import DeviceStopwatch
from kernelwright.judge.timing.stopwatch import Stopwatch, refill
from kernelwright.judge.timing.turned import Turned
from kernelwright.workers import bundle
from kernelwright.workers.channel import Channel, Message, close_all

MEMORY_WORDS = ("not enough memory", "can't allocate memory", "cannot allocate memory", "bad_alloc", "out of memory")
BUILD_WORDS = (
    "error building extension",
    "undefined symbol",
    "cannot open shared object",
    "ninja is required",
    "compilation failed",
)

_Tensor = torch.Tensor
_no_grad = torch.no_grad
_pack, _unpack, _clone, _leaves = bundle.pack, bundle.unpack, bundle.clone, bundle.tensors
_nothing = contextlib.nullcontext()
_memset = ctypes.memset
_refill, _turned = refill, Turned.from_message


class Contender:
    """One loaded kernel and what is kept between requests."""

    def __init__(self, runtimes: Mapping[str, Any] | None = None) -> None:
        self.model: Any = None
        self.stopwatch = Stopwatch(self.call)
        self.held: list[Any] = []
        self.around: Any = _nothing
        self.runtimes = runtimes or {}
        self.runtime: Any = None
        """The module that makes a language run without its device (`OffDeviceRuntime` in compiler/language.py)."""

    def call(self, inputs: Sequence[Any]) -> Any:
        """The one way in which a kernel is ever called, by the stopwatch, which turns gradients off: a kernel is not charged for the
        judge's own Python."""
        if self.runtime is None and self.around is _nothing:
            return self.model(*inputs)
        with self.around, self._context(calling=True):
            return self.model(*inputs)

    def _context(self, *, calling: bool) -> Any:
        return _nothing if self.runtime is None else self.runtime.context(calling=calling)

    def answer(self, message: Message, fds: list[int]) -> tuple[Message, list[int]]:
        op = message["op"]
        if op.startswith("time_"):
            reply, sent = self.stopwatch.handle(message, fds)
            if "kept" in reply:  # outputs that the judge asked for are not the kernel's
                reply["kept"] = max(0, reply["kept"] - sum(_extent(tensor) for tensor in _leaves(self.held) if tensor.numel()))
            return reply, sent
        if op == "refill":
            return self.refill(message, fds[0])
        if op == "load":
            return self.load(message, fds[0])
        if op == "weights":
            return self.weights(message, fds[0])
        if op == "collect":
            return self.collect(int(message["call"]), hold=message["hold"] is True, part=message.get("part"))
        if op == "held":
            return _reply_with({"held": self.stopwatch.host(self.held[int(message["index"])])})
        if op == "forget":
            self.held.clear()
            return {"ok": True}, []
        if op == "trace_on":
            self.around = Trace()
            return {"ok": True}, []
        if op == "trace_off":
            seen, self.around = self.around, _nothing
            compiled = any(name.startswith(("torch._inductor.compile_fx", "torch._inductor.codecache")) for name in sys.modules)
            launched = self.runtime.launches() if self.runtime else 0
            operators = seen.operators | set(getattr(self.runtime, "host_work", list)())
            told = {"operators": sorted(operators)[:200], "copied": seen.copied, "compiler": compiled}
            return {"ok": True, **told, "launches": launched}, []
        if op == "compile_for":
            with self._context(calling=False):
                figures = dict(self.runtime.compile_for(message["target"]))
            return {"ok": True, **figures, "notes": list(self.runtime.notes())[:20]}, []
        raise ValueError(f"unknown request {op!r}")

    def load(self, message: Message, fd: int) -> tuple[Message, list[int]]:
        """Run the kernel file and construct its class under the seed, as the referee constructed the reference."""
        args, kwargs = _unpack(message["init"], fd, writable=True)
        torch.set_num_threads(int(message["threads"]))
        if message.get("device"):
            self.stopwatch = DeviceStopwatch(self.call, str(message["device"]))
        if message.get("runtime"):
            self.runtime = self.runtimes[message["runtime"]]
            self.runtime.install(message["target"])
        with self._context(calling=False):
            module = _run_file(message["source"])
        kind = getattr(module, message["class"], None)
        if kind is None:
            raise NoSuchClass(f"the kernel file defines no class {message['class']}")
        torch.manual_seed(int(message["seed"]))
        with _no_grad(), self._context(calling=False):
            self.model = kind(*args, **kwargs)
        if hasattr(self.model, "eval"):
            self.model.eval()
        if message.get("device") and hasattr(self.model, "to"):
            self.model.to(self.stopwatch.device)
        self.stopwatch.start()
        return {"ok": True, "state": _state(self.model)}, []

    def weights(self, message: Message, fd: int) -> tuple[Message, list[int]]:
        # Extra buffers of the kernel's own are its business; that all of the reference's names are there, the parent has checked.
        self.model.load_state_dict(_unpack(message["weights"], fd, writable=True), strict=False)
        return {"ok": True}, []

    def refill(self, message: Message, fd: int) -> tuple[Message, list[int]]:
        """New values into the very tensors of the last call, past torch's version counters: whoever knows inputs again by
        identity, pointer or version must be wrong now."""
        (fresh,) = _unpack(message["header"], fd)
        _refill(_leaves(self.stopwatch._sets[0]), _leaves(fresh), _turned(message.get("turned")))
        return {"ok": True}, []

    def collect(self, call: int, *, hold: bool, part: Sequence[int] | None) -> tuple[Message, list[int]]:
        """Outputs of a call of the last block, and its inputs as the call left them (`part`: from one row to another, of the inputs at
        these places). Then the inputs are overwritten: an output
        that secretly is an input will differ when it is sent again."""
        outputs, inputs = self.stopwatch._outputs[call], self.stopwatch._sets[call]
        odd = oddity(outputs, self.stopwatch.device)
        if odd:
            return {"ok": True, "odd": odd}, []
        host = self.stopwatch.host
        left = inputs if part is None else _rows_of(inputs, *part)
        reply, fds = _reply_with({"outputs": host(outputs), "inputs_after": host(left)})
        for tensor in _leaves(inputs):
            if tensor.numel():
                _spoil(tensor)
        if hold:
            self.held.append(outputs)
        if sum(_extent(tensor) for tensor in (*_leaves(inputs), *_leaves(outputs)) if tensor.numel()) >= LARGE_BYTES:
            give_back()
        return reply, fds


class NoSuchClass(Exception):
    """The kernel file lacks the class it must define."""


def serve(channel: Channel) -> None:
    """Answer until the parent is gone. Every reply carries the number of its request."""
    contender = Contender(dict(sys.modules))
    for name in [name for name in sys.modules if name.split(".")[0] == "kernelwright"]:
        del sys.modules[name]  # a kernel file stands alone: it cannot import us
    while True:
        message, fds = channel.receive(None)
        sent: list[int] = []
        try:
            reply, sent = contender.answer(message, fds)
        except BaseException as error:
            reply = describe_failure(error)
        finally:
            close_all(fds)
        channel.send({**reply, "id": message.get("id")}, sent)
        close_all(sent)


def describe_failure(error: BaseException) -> Message:
    """An exception of the kernel as data: its kind (build, memory, exit, refused, crash), its text, and the end of its traceback."""
    text = str(error) or type(error).__name__
    if isinstance(error, subprocess.CalledProcessError):
        text = "\n".join([text, *(_text(part) for part in (error.stderr, error.output) if part)])
    kind = "crash"
    lowered = text.lower()
    if isinstance(error, MemoryError) or any(word in lowered for word in MEMORY_WORDS):
        kind = "memory"
    elif isinstance(error, NotExecuted):
        kind = "refused"
    elif isinstance(error, SystemExit):
        kind, text = "exit", f"the kernel called sys.exit({error.code!r})"
    elif _is_build_failure(error) or any(word in lowered for word in BUILD_WORDS):
        kind = "build"
    place = error.__traceback__
    while place is not None and not place.tb_frame.f_code.co_filename.endswith("kernel.py"):
        place = place.tb_next  # our own frames say nothing about the kernel
    trace = "".join(traceback.format_exception(type(error), error, place, limit=-6))
    return {"ok": False, "kind": kind, "type": type(error).__name__, "error": text[-6000:], "trace": trace[-4000:]}


def _is_build_failure(error: BaseException) -> bool:
    return isinstance(
        error, SyntaxError | ImportError | subprocess.CalledProcessError | NoSuchClass | FileNotFoundError | CompileFailed
    ) or getattr(error, "while_loading", False)


def oddity(tree: Any, device: str = "cpu") -> str:
    """What is not plain about an output: a subclass or a lazy object may do its work only when it is looked at."""
    if type(tree) is _Tensor:
        if tree.device.type != device or tree.layout is not torch.strided:
            return f"an output is a {tree.layout} tensor on {tree.device}"
        return ""
    if isinstance(tree, _Tensor):
        return f"an output is a {type(tree).__name__}, not exactly a torch.Tensor"
    if tree is None or type(tree) in (bool, int, float, str):
        return ""
    if type(tree) in (list, tuple) or type(tree).__module__ == "torch.return_types" or _is_named_tuple(tree):
        return next(filter(None, (oddity(item, device) for item in tree)), "")
    if type(tree) is dict or type(tree).__name__ == "OrderedDict":
        return next(filter(None, (oddity(item, device) for item in tree.values())), "")
    return f"an output is a {type(tree).__name__}, not a torch.Tensor"


def _is_named_tuple(tree: Any) -> bool:
    return isinstance(tree, tuple) and hasattr(type(tree), "_fields") and type(tree).__iter__ is tuple.__iter__


def _run_file(source: str) -> Any:
    path = os.path.join(os.getcwd(), "kernel.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    spec = importlib.util.spec_from_file_location("kernel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel"] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        with contextlib.suppress(Exception):
            error.while_loading = True  # type: ignore[attr-defined]
        raise
    return module


def _rows_of(tree: Any, start: int, stop: int, *carried: int) -> Any:
    """Some rows of those tensors that carry any; all others whole."""
    chosen = {id(tensor) for place, tensor in enumerate(_leaves(tree)) if place in carried}

    def part(item: Any) -> Any:
        if isinstance(item, _Tensor):
            return item[start:stop] if id(item) in chosen else item
        if isinstance(item, dict):
            return {key: part(one) for key, one in item.items()}
        return type(item)(part(one) for one in item) if isinstance(item, list | tuple) else item

    return part(tree)


def _spoil(tensor: Any) -> None:
    if tensor.is_cpu:
        _memset(tensor.data_ptr(), 1, _extent(tensor))
    else:
        tensor.data.fill_(1)


def _extent(tensor: Any) -> int:
    """Bytes from a tensor's first to its last element."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return int(span * tensor.element_size())


def _state(model: Any) -> list[Any]:
    """Names, shapes and dtypes of the parameters and buffers, or nothing when the class has none to load."""
    if not isinstance(model, torch.nn.Module):
        return []
    return [
        [name, list(value.shape), str(value.dtype)] for name, value in model.state_dict().items() if isinstance(value, _Tensor)
    ]


def _reply_with(trees: dict[str, Any]) -> tuple[Message, list[int]]:
    reply: Message = {"ok": True}
    fds = []
    for name, tree in trees.items():
        packed = _pack(tree)
        reply[name] = packed.header
        fds.append(packed.fd)
    return reply, fds


def _text(part: Any) -> str:
    return part.decode(errors="replace") if isinstance(part, bytes) else str(part)
