"""Languages of a device: how such a kernel is executed here, and what its compiler says for the targets asked for.

In: the language of a kernel and the names of targets. Out: `Setting` (None for a language that runs natively): on the device where
one is attached that the language and torch can reach, else in an interpreter or emulator; then `CompiledFor` of each target from
the figures that the candidate's process reports. The compiler ran there, because it executes foreign code; so
its figures are taken as plain numbers, and occupancy and the predicted time are worked out here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pydantic import ValidationError

from kernelwright.compiler.hardware import targets_of
from kernelwright.compiler.language import Language, language
from kernelwright.core import plugins
from kernelwright.core.errors import ConfigError
from kernelwright.core.launch_figures import MOST_LINES, LaunchFigures
from kernelwright.core.verdict import CompiledFor, Execution, KernelFigures
from kernelwright.judge.device import torch_device
from kernelwright.judge.timing.roofline import Work
from kernelwright.target import Target
from kernelwright.target.attached import attached
from kernelwright.target.occupancy import occupancy
from kernelwright.target.predict import Launch, predicted_ms, predicted_seconds

MOST_KERNELS = 64


@dataclass(frozen=True)
class Setting:
    """How a kernel of a device's language is executed: by a `runtime` without the device, or on the `device` (torch's name of it)."""

    dsl: str
    execution: Execution
    runtime: str
    targets: tuple[Target, ...]
    device: str = ""
    tools: tuple[dict[str, str], ...] = ()
    """For each target, programs of this machine that its compiler needs beyond the language's package (`Language.tools`)."""
    fallback: Execution | None = None
    """How it is executed where this way refuses it."""

    def sheet(self, number: int = 0) -> dict[str, Any]:
        """A target as plain data, for the candidate's process, which knows neither our settings nor the user's environment."""
        return asdict(self.targets[number]) | {
            "tools": self.tools[number] if self.tools else {},
            "execution": self.execution,
        }

    def other(self) -> Setting | None:
        """The other way to execute the kernel, if there is one."""
        if self.fallback in (None, self.execution):
            return None
        assert self.fallback is not None
        return replace(self, execution=self.fallback, fallback=None)


def setting(dsl: str, target: str = "auto") -> Setting | None:
    """The setting for a language, or None when its kernels run natively. `target` is a name, several names with commas, or
    "auto": the device that is attached, if any. "cpu" means without the device, since that is where an interpreter runs."""
    found: Language | None = plugins.load(dsl)
    if found is None or found.runtime is None:
        return None
    names = [name.strip() for name in target.split(",") if name.strip()] or ["auto"]
    here = attached()
    if here is not None and names in (["auto"], [here.name]) and here.kind in found.devices:
        device = torch_device(here)
        if device:
            return Setting(dsl, "device", "", (here,), device)
    targets = targets_of(found, target)
    execution = found.execution_on(targets[0].kind)
    tools = tuple(found.tools(each.kind) for each in targets)
    return Setting(dsl, execution, found.runtime, targets, tools=tools, fallback=found.fallback)


def timed(dsl: str, target: str = "auto") -> bool:
    """Whether a kernel of this language is executed for real here, so that its speed means something."""
    found = setting(dsl, target)
    return found is None or bool(found.device)


def require_device(dsl: str, target: str) -> None:
    """Refuse a language that is not installed, and hardware that its kernels do not run on."""
    language(dsl)
    if setting(dsl, target) is None and target not in ("auto", "cpu"):
        raise ConfigError(f"{dsl} kernels run on this machine's CPU, not on {target}; choose --target cpu or another language")


def compiled_for(target: Target, reply: dict[str, Any], facts: dict[str, Any]) -> CompiledFor:
    """One target's entry of the verdict from what the candidate's process said."""
    kernels: list[KernelFigures] = []
    launches: list[Launch] = []
    for item in _entries(reply.get("kernels"))[:MOST_KERNELS]:
        figures = KernelFigures(
            name=str(item.get("name", "kernel"))[:200],
            registers=_number(item.get("registers")),
            shared_memory=_number(item.get("shared_memory")),
            spills=_number(item.get("spills")),
            threads=_number(item.get("threads")),
            blocks=_number(item.get("blocks")),
        )
        if not target.threaded:
            kernels.append(figures)
            launches.append(Launch(None, figures.blocks))
            continue
        found = occupancy(
            target,
            threads=figures.threads or target.warp,
            registers=figures.registers or 0,
            shared_memory=figures.shared_memory or 0,
        )
        kernels.append(figures.model_copy(update={"occupancy": round(found.fraction, 4), "limiter": found.limiter}))
        launches.append(Launch(found, figures.blocks))
    work = Work.from_facts(facts)
    seconds = predicted_seconds(
        target, bytes_moved=work.read_bytes + work.written_bytes, flops=work.flops, dtype=work.dtype, launches=launches
    )
    profiles = _profiles(reply.get("launches"))
    if profiles:
        seconds = predicted_ms(profiles) / 1e3
    floor = max(
        target.memory_seconds(work.read_bytes, work.written_bytes), work.flops / (target.peak(work.dtype) or float("inf"))
    )
    narrow = min(kernels, key=lambda kernel: kernel.occupancy or 0.0, default=None)
    return CompiledFor(
        registers=_most(kernel.registers for kernel in kernels),
        shared_memory=_most(kernel.shared_memory for kernel in kernels),
        spills=_total(kernel.spills for kernel in kernels),
        occupancy=narrow.occupancy if narrow else None,
        limiter=narrow.limiter if narrow else None,
        predicted_ms=round(seconds * 1e3, 6) if kernels else None,
        architecture=target.arch,
        compiler=str(reply.get("compiler", ""))[:300],
        stage=str(reply.get("stage", ""))[:20],
        kernels=tuple(kernels),
        predicted_error=max(each.predicted.error for each in profiles) if profiles else None,
        speed_of_light_ms=round(floor * 1e3, 6) if kernels else None,
        launches=profiles,
    )


def does_not_fit(target: Target, compiled: CompiledFor) -> str:
    """Why a kernel that compiles could not be launched on the target all the same, or nothing."""
    for kernel in compiled.kernels:
        room = target.shared_memory_per_block or target.shared_memory
        if room and (kernel.shared_memory or 0) > room:
            return (
                f"{kernel.name} needs {kernel.shared_memory:,} bytes of shared memory in a block, {target.title} has {room:,}"
            )
        if kernel.occupancy == 0:
            return f"a block of {kernel.name} does not fit on {target.title}: too many {kernel.limiter}"
    return ""


def _entries(value: Any) -> Sequence[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _profiles(value: Any) -> tuple[LaunchFigures, ...]:
    """What the candidate's process says of its launches, as far as it is of the right form; text is cut."""
    found = []
    for item in _entries(value)[:MOST_KERNELS]:
        try:
            each = LaunchFigures.model_validate(item)
        except ValidationError:
            continue
        lines = tuple(line.model_copy(update={"file": line.file[-200:], "source": ""}) for line in each.lines[:MOST_LINES])
        advice = tuple(sentence[:300] for sentence in each.advice[:3])
        found.append(each.model_copy(update={"name": each.name[:200], "lines": lines, "advice": advice}))
    return tuple(found)


def _number(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 62 else None


def _most(values: Any) -> int | None:
    known = [value for value in values if value is not None]
    return max(known) if known else None


def _total(values: Any) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
