"""A verdict, distilled to what helps the next attempt: a Verdict in, a few lines of facts out, and the failure's identity.

Rejected kernels: the first compiler error with the lines of the source around it, or where and how the numbers differ. Correct but
slow ones: what bounds them (`bounds.py` adds what the compiler and the port model say of the loops). Everything that is quoted here
comes from foreign programs: prompts fence it as data.
"""

from __future__ import annotations

import re

from kernelwright.agents.conductor import Kind
from kernelwright.agents.conductor.situation import BEYOND_THE_ROOF
from kernelwright.core.verdict import Status, Verdict

KINDS = {
    Status.correct: Kind.correct,
    Status.wrong_values: Kind.wrong,
    Status.wrong_shape: Kind.wrong,
    Status.wrong_dtype: Kind.wrong,
    Status.cheating: Kind.cheating,
    Status.build_failed: Kind.build_failed,
    Status.crashed: Kind.crashed,
    Status.timed_out: Kind.crashed,
    Status.out_of_memory: Kind.crashed,
    Status.unusable_task: Kind.crashed,
}
COMPILER_PLACE = re.compile(r"(?P<file>[^\s:]+\.(?:cpp|cc|cu|h|hpp|py)):(?P<line>\d+)(?::(?P<column>\d+))?")
AROUND = 4
LONGEST = 4000
"""Characters of facts; beyond this a model loses the thread, and so do people."""


def kind(verdict: Verdict) -> Kind:
    """The Conductor's word for a verdict."""
    return KINDS[verdict.status]


def identity(verdict: Verdict) -> str:
    """The failure without what changes by itself (places, numbers, temporary names): equal for the same mistake made again."""
    if verdict.ok:
        return ""
    if verdict.build is not None:
        text = verdict.build.message
    elif verdict.mismatch is not None:
        text = f"{verdict.mismatch.output}: {verdict.mismatch.region}"
    else:
        text = verdict.reason
    return f"{verdict.status}: {plain(text)}"


def plain(text: str) -> str:
    """A message without file places, numbers and hexadecimal addresses."""
    text = COMPILER_PLACE.sub("", text).split("; did you mean")[0]
    text = re.sub(r"/[\w./-]*/", "", text)
    text = re.sub(r"0x[0-9a-fA-F]+|\b[0-9a-f]{16,}\b", "#", text)
    return re.sub(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", "#", text).strip(": ").lower()[:300]


def failure(verdict: Verdict, kernel: str) -> str:
    """Why a kernel was rejected, in a few lines; `kernel` is the file that was judged."""
    lines = [f"status: {verdict.status}", f"reason: {verdict.reason}"]
    if verdict.build is not None:
        lines += [f"first error: {verdict.build.message}"]
        around = source_around(verdict.build.message, kernel)
        lines += ["the source there:", around] if around else []
        if verdict.build.excerpt:
            lines += ["the compiler's words:" if around else "excerpt:", verdict.build.excerpt]
    if verdict.mismatch is not None:
        m = verdict.mismatch
        lines.append(f"where: {m.region} of {m.output} ({m.wrong} of {m.total} elements wrong)")
        if m.trial:
            lines.append(f"trial: {m.trial}")
        if m.worst_error is not None and m.bound is not None:
            lines.append(f"largest error {m.worst_error:.3g}, allowed {m.bound:.3g}")
        lines += [f"  {sample}" for sample in m.samples]
    if verdict.library_calls:
        lines.append(f"library calls seen: {', '.join(verdict.library_calls)}")
    if verdict.status in (Status.crashed, Status.timed_out, Status.out_of_memory) and verdict.stderr_tail.strip():
        lines += ["it printed last:", "\n".join(verdict.stderr_tail.strip().splitlines()[-12:])]
    return "\n".join(lines)[:LONGEST]


def speed(verdict: Verdict, kernel: str = "") -> str:
    """How fast a correct kernel is and how far from what the hardware allows, in a few lines; where it was profiled, the lines of the
    `kernel` that take the time."""
    from kernelwright.agents.profiled import paragraph

    timing = verdict.timing
    if timing is None:
        predicted = [f"{name}: predicted {c.predicted_ms:.3g} ms" + (f", {c.registers} registers, {c.spills or 0} bytes spilled"
                     if c.registers is not None else "")
                     for name, c in (verdict.compiled_for or {}).items() if c.predicted_ms is not None]  # fmt: skip
        profiles = [paragraph(c.launches, kernel) for c in (verdict.compiled_for or {}).values() if c.launches][:1]
        return "\n".join(["its speed was not measured", *predicted, *profiles])
    lines = [
        f"kernel {timing.kernel_ms:.3g} ms, PyTorch eager {timing.eager_ms:.3g} ms: {timing.speedup:.2f}x eager "
        f"(95 % interval {timing.speedup_low:.2f} to {timing.speedup_high:.2f}), {timing.threads} threads, {timing.cache} cache"
    ]
    if timing.compile_ms is not None:
        lines.append(f"torch.compile {timing.compile_ms:.3g} ms")
    if timing.roofline_ms and timing.roofline_fraction is not None:
        lines.append(_against_the_roof(timing.roofline_ms, timing.roofline_fraction))
    return "\n".join(lines)


def _against_the_roof(floor_ms: float, share: float) -> str:
    """How far from the hardware's bound, where that bound means something."""
    if share > BEYOND_THE_ROOF:
        return (
            f"the roofline of the reference's own work is {floor_ms:.3g} ms, and the kernel is faster: it does less work, or its data stay "
            "in cache, so that figure bounds nothing"
        )
    if share < 0.01:
        return (
            f"bytes and counted operations alone would take {floor_ms:.3g} ms, under 1 % of the kernel's time: what bounds it is something "
            "else (operations that are not counted, latency, dependent steps, the call itself)"
        )
    return f"the hardware allows {floor_ms:.3g} ms: the kernel reaches {share:.0%} of that"


def source_around(message: str, kernel: str) -> str:
    """The lines of the native source that a compiler's message points at. The source is a string inside a Python file, and the
    compiler counts from the string's first line."""
    place = COMPILER_PLACE.search(message)
    if place is None or place["file"].endswith(".py"):
        return ""
    at = int(place["line"])
    lines = native_source(kernel).splitlines()
    if not 0 < at <= len(lines):
        return ""
    start = max(1, at - AROUND)
    return "\n".join(
        f"{number:5d}{'>' if number == at else ' '} {lines[number - 1]}"
        for number in range(start, min(len(lines), at + AROUND) + 1)
    )


def native_source(kernel: str) -> str:
    """The native source text in a kernel file: its longest string constant that looks like C."""
    import ast

    try:
        tree = ast.parse(kernel)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str) and "{" in n.value]
    return max((text for text in texts if re.search(r"extern\s+\"C\"|__global__|#include|PYBIND11", text)), key=len, default="")
