"""Which hardware a language's kernels are for: a language and the name of a target in, its sheet and its capabilities out.

The one place that says what nobody asked for: a language that runs natively designs for this machine, one of a device for the device
that is attached, else for its default target.
"""

from __future__ import annotations

from kernelwright.compiler.language import Language
from kernelwright.core.errors import ConfigError
from kernelwright.target import Capabilities, Target
from kernelwright.target.attached import attached

DEFAULT_TARGET = Language.default_target
"""What a GPU kernel is designed and compiled for when nobody says and no device is there."""


def targets_of(language: Language, target: str = "auto") -> tuple[Target, ...]:
    """The sheets that a language's kernels are for. `target` is a name, several names with commas, or "auto". For a language of a
    device "cpu" means without the device; a language that runs natively is for a CPU: this one, or another by its name."""
    names = [name.strip() for name in target.split(",") if name.strip()] or ["auto"]
    if language.runtime is None:
        asked = [Target.load(name) for name in names if name not in ("auto", "cpu")]
        return tuple(each for each in asked if each.kind == "cpu") or (Target.host(),)
    here = attached() if names[0] in ("auto", "cpu") else None
    if here is not None:
        return (here,)
    if names[0] in ("auto", "cpu"):
        names = [language.default_target]
    found = tuple(Target.load(name) for name in names)
    for each in found:
        if each.kind == "cpu":
            raise ConfigError(f"{language.name} kernels are for GPUs; {each.name} is none")
    return found


def capabilities_of(language: Language, target: str = "auto") -> Capabilities:
    """What designs in a language may count on, on the (first) target."""
    return Capabilities.of(
        targets_of(language, target)[0],
        language.executes,
        shared_limit=language.shared_limit,
    )
