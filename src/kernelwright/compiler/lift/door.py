"""The door of this room: a kernel file in, its sketch out.

The file is run once on example inputs, to see its launches; since that is foreign code, it happens in a process of its own
(`child.py`) with the judge's sandbox closed around it. What comes back is the text of a sketch, parsed and checked again here.
A language's `lifter` is a module with `install(tracer, target)`, `context(calling)` and `lifted(seen)`.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from kernelwright.compiler.language import languages, readable
from kernelwright.compiler.lift.compose import Lifted
from kernelwright.core.errors import CannotLift, KernelFileError
from kernelwright.core.task import Task
from kernelwright.sketch.check.rules import require
from kernelwright.sketch.parse import parse

SECONDS = 300


def lift(
    source: str,
    dsl: str,
    task: Task | None = None,
    inputs: str | None = None,
    *,
    path: str = "kernel.py",
    entry: str | None = None,
    init: str | None = None,
    original: str = "",
    seconds: float = SECONDS,
) -> Lifted:
    """The sketch of a foreign kernel file; CannotLift with the line and the reason for what no sketch expresses.

    `task` gives inputs and parameters; without it the file's own `get_inputs` and `get_init_inputs` do, or `inputs`, such as
    `"f32[128,512], f32[512], 3"`; `init` is the text of a list of constructor arguments. `entry` is the class or function to call;
    otherwise `ModelNew`, `Model`, or the function that launches a kernel. `original` is what people wrote,
    where `source` only stands for it.
    """
    request = _request(source, dsl, task, inputs, path, entry, init, original)
    reply = _answered(request, path, seconds)
    notes = tuple(str(note) for note in reply["notes"])
    return Lifted(require(parse(str(reply["sketch"]))), notes, str(reply["entry"]), str(reply["init"]))


def explain(
    source: str,
    dsl: str,
    task: Task | None = None,
    inputs: str | None = None,
    *,
    path: str = "kernel.py",
    entry: str | None = None,
    init: str | None = None,
    original: str = "",
    seconds: float = SECONDS,
) -> dict[str, Any]:
    """What a kernel file computes: `formulas`, `pytorch` code, `assumptions`, `launches`. As `lift`, but nothing is scheduled."""
    request = _request(source, dsl, task, inputs, path, entry, init, original)
    return _answered({**request, "explain": True}, path, seconds)


def _request(
    source: str, dsl: str, task: Task | None, inputs: str | None, path: str, entry: str | None, init: str | None, original: str
) -> dict[str, Any]:
    lifters = {name: found.lifter for name, found in languages().items() if found.lifter}
    if dsl not in lifters:
        raise CannotLift(f"there is no lifter for {dsl} yet; kernels of {', '.join(sorted(lifters))} can be lifted", path=path)
    try:
        ast.parse(source)
    except (SyntaxError, ValueError) as error:  # told before a process with torch is started
        line = getattr(error, "lineno", None)
        raise KernelFileError(
            f"{path}:{line}" if line else path, f"this is not Python: {getattr(error, 'msg', None) or error}"
        ) from None
    return {
        "source": source, "path": path, "module": lifters[dsl], "entry": entry, "inputs": inputs, "init": init,
        "task": None if task is None else task.as_json(), "reads": readable(dsl), "original": original,
    }  # fmt: skip


def _answered(request: dict[str, Any], path: str, seconds: float) -> dict[str, Any]:
    reply = _ask(request, path, seconds)
    if "refused" in reply:
        raise CannotLift(str(reply["refused"]), path=str(reply.get("path") or path), line=int(reply.get("line") or 0))
    return reply


def _ask(request: dict[str, Any], path: str, seconds: float) -> dict[str, Any]:
    """Runs the child; its answer comes over a pipe of its own, so prints of the file do not matter."""
    with tempfile.TemporaryDirectory(prefix="kernelwright-lift-") as folder:
        os.chmod(folder, 0o755)
        reading, writing = os.pipe()
        command = [sys.executable, "-m", "kernelwright.compiler.lift.child", str(writing), folder]
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=(writing,)
            )
        finally:
            os.close(writing)
        try:
            _, errors = _finish(process, json.dumps(request).encode(), seconds)
            with os.fdopen(reading, "rb") as pipe:
                answer = pipe.read()
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            os.close(reading)
            raise CannotLift(f"reading it took longer than {seconds:.0f} s", path=path) from None
    if not answer:
        raise CannotLift(f"the process that reads it ended without an answer: {_last_line(errors)}", path=path)
    reply: dict[str, Any] = json.loads(answer)
    return reply


def _finish(process: subprocess.Popen[bytes], data: bytes, seconds: float) -> tuple[bytes, bytes]:
    out, errors = process.communicate(data, timeout=seconds)
    return out or b"", errors or b""


def _last_line(errors: bytes) -> str:
    lines = errors.decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "no word about why"
