"""What PyTorch takes for a task, before anybody designs: the time of eager and of torch.compile, and eager's operators by their share.

In: a task, in a worker that executes its file. Out: `measured`, milliseconds and shares, found out once for a run; nothing where it
cannot be measured. These figures lead a prompt; what is claimed in the end is the judge's own, measured side by side.
"""

from __future__ import annotations

import time
from typing import Any

from kernelwright.core.task import Task
from kernelwright.run.drafts import Drafter
from kernelwright.workers.channel import Channel, ChannelClosed, ChannelTimeout

SECONDS = 180.0
ROUNDS, ENOUGH = 15, 1.5
"""Timed calls at most, and seconds after which no further one is begun."""
SHOWN = 6


def measured(drafter: Drafter, task: Task, *, threads: int, compiled: bool) -> dict[str, Any]:
    """`eager_ms`, `compile_ms` and `operators` ([name, share, calls]); empty where it did not work."""
    found: dict[str, Any] = {}
    for compile_it in (False, True) if compiled else (False,):
        request = {"task": task.as_json(), "threads": threads, "compile": compile_it}
        try:
            found |= drafter.ask("agents.eager:serve", request, timeout=SECONDS)["found"]
        except (ChannelTimeout, ChannelClosed):
            return found
    return found


def told(found: dict[str, Any]) -> str:
    """The figures in a few lines."""
    if not found.get("eager_ms"):
        return "not measured"
    lines = [f"- PyTorch eager takes {found['eager_ms']:.3g} ms a call"]
    if found.get("compile_ms"):
        lines.append(f"- torch.compile takes {found['compile_ms']:.3g} ms a call")
    shares = [f"{name} {share:.0%}" + (f" ({calls} calls)" if calls > 1 else "") for name, share, calls in found["operators"]]
    if shares:
        lines.append(f"- eager's time by operator: {', '.join(shares)}")
    return "\n".join(lines)


def serve(channel: Channel) -> None:
    """The worker of one measurement."""
    message, _ = channel.receive(None)
    try:
        found = _measure(message)
    except Exception:
        found = {}  # a task that cannot be run here is the judge's to tell
    channel.send({"found": found})


def _measure(message: dict[str, Any]) -> dict[str, Any]:
    import torch

    from kernelwright.core.task.load import load_task

    torch.set_num_threads(int(message["threads"]))
    loaded = load_task(Task.from_source(**message["task"]))
    model = loaded.construct(0)
    inputs = loaded.draw(0)[0]
    with torch.no_grad():
        if message["compile"]:
            import torch._inductor.config as inductor

            inductor.compile_threads = 1
            return {"compile_ms": _milliseconds(torch.compile(model), inputs)}
        eager = _milliseconds(model, inputs)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            model(*inputs)
    events = [event for event in profile.key_averages() if event.key.startswith("aten::") and event.self_cpu_time_total > 0]
    total = sum(event.self_cpu_time_total for event in events) or 1.0
    events.sort(key=lambda event: -event.self_cpu_time_total)
    operators = [
        [event.key.removeprefix("aten::"), round(event.self_cpu_time_total / total, 3), event.count] for event in events[:SHOWN]
    ]
    return {"eager_ms": eager, "operators": operators}


def _milliseconds(call: Any, inputs: Any) -> float:
    """The median of a few calls after two that warm up."""
    taken = []
    began = time.monotonic()
    for number in range(ROUNDS + 2):
        start = time.perf_counter()
        call(*inputs)
        if number >= 2:
            taken.append(time.perf_counter() - start)
        if taken and time.monotonic() - began > ENOUGH:
            break
    return round(sorted(taken)[len(taken) // 2] * 1e3, 4)
