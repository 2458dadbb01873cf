"""Recorded inputs and outputs of a source kernel, where its device is not at hand: a file and sketches in, the number of cases out.

The file is what torch.save wrote: a dictionary with `inputs` (forward's arguments), `outputs` (what it returned) and, where there are
parameters, `state` (its state_dict); or a list of such dictionaries. It is read as data only (weights_only). The sketch must give
every recorded output within rounding; then the judge holds the new kernel against the sketch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelwright.core.dtypes import from_torch
from kernelwright.core.errors import KernelFileError, KernelwrightError, SketchError

if TYPE_CHECKING:
    from kernelwright.run.drafts import Drafter
    from kernelwright.workers.channel import Channel

SECONDS = 300.0


class Disagrees(KernelwrightError):
    """The sketch does not reproduce a recording."""

    exit_code = 1


def compare(drafter: Drafter, path: str, texts: Sequence[str]) -> int:
    """How many recorded cases the sketch reproduces: all of them, or an error that names the first that it does not."""
    return int(_ask(drafter, path, {"sketches": list(texts)})["cases"])


def inputs(drafter: Drafter, path: str) -> str:
    """What the first case was called with, as `--inputs` writes it: a kernel that says no inputs is lifted at these."""
    return str(_ask(drafter, path, {})["inputs"])


def _ask(drafter: Drafter, path: str, message: dict[str, Any]) -> dict[str, Any]:
    from kernelwright.workers.channel import ChannelError

    if not Path(path).is_file():
        raise KernelFileError(path, "there is no such file of recorded outputs")
    try:
        reply = drafter.ask("jobs.migrate.golden:serve", {"path": str(Path(path).resolve()), **message}, timeout=SECONDS)
    except ChannelError as error:
        raise KernelwrightError(f"{path}: comparing with the recorded outputs did not finish: {error}") from error
    if not reply.get("ok"):
        raise (
            Disagrees(f"{path}: {reply.get('error')}")
            if reply.get("differs")
            else KernelFileError(path, str(reply.get("error")))
        )
    return reply


def serve(channel: Channel) -> None:
    """The worker: answers one request."""
    message, _ = channel.receive(None)
    try:
        if "sketches" in message:
            channel.send({"ok": True, "cases": _compare(message["path"], message["sketches"])})
        else:
            channel.send({"ok": True, "inputs": _inputs(message["path"])})
    except Disagrees as error:
        channel.send({"ok": False, "differs": True, "error": str(error)})
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        channel.send({"ok": False, "error": f"this is no recording of inputs and outputs: {first}"})


def _cases(path: str) -> list[dict[str, Any]]:
    import torch

    saved: Any = torch.load(path, map_location="cpu", weights_only=True)
    cases: list[dict[str, Any]] = [saved] if isinstance(saved, dict) else list(saved)
    if not cases:
        raise ValueError("it is empty")
    return cases


def _inputs(path: str) -> str:
    import torch
    from torch.utils import _pytree as pytree

    leaves = pytree.tree_leaves(_cases(path)[0]["inputs"])
    return ", ".join(
        f"{from_torch(x.dtype) or x.dtype}[{','.join(map(str, x.shape))}]" for x in leaves if isinstance(x, torch.Tensor)
    )


def _compare(path: str, texts: Sequence[str]) -> int:
    import torch
    from torch.utils import _pytree as pytree

    from kernelwright.sketch.interpret.compare import difference
    from kernelwright.sketch.interpret.interpreter import call
    from kernelwright.sketch.module import fits
    from kernelwright.sketch.parse import parse

    cases = _cases(path)
    sketches = [parse(text) for text in texts]
    for number, case in enumerate(cases):
        leaves = pytree.tree_leaves(case["inputs"])
        sketch = next((one for one in sketches if fits(one, leaves)), None)
        if sketch is None:
            shapes = [list(x.shape) for x in leaves if isinstance(x, torch.Tensor)]
            raise Disagrees(f"case {number} has inputs of the shapes {shapes}, for which the kernel has no sketch")
        try:
            made = pytree.tree_leaves(call(sketch, leaves, case.get("state")))
        except SketchError as error:
            raise Disagrees(f"case {number}: {error}") from error
        wanted = pytree.tree_leaves(case["outputs"])
        if len(made) != len(wanted):
            raise Disagrees(f"case {number} has {len(wanted)} outputs, the kernel's sketch gives {len(made)}")
        for place, (want, got) in enumerate(zip(wanted, made, strict=True)):
            _, reason = difference(want, got)
            if reason:
                raise Disagrees(f"case {number}, output {place}: the kernel's sketch does not give what was recorded: {reason}")
    return len(cases)
