"""What a language plugs in: lowering a sketch to a kernel file, what it needs of the machine, and its skills.

A language is one object found under the entry point group `kernelwright.dsl`, so that another package can add one.

A language of a device that is not at hand also names its `runtime`: a module that makes the language run in the candidate's process
all the same (an interpreter, an emulator), and compiles what was launched for the targets asked for. docs/add-a-language.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from kernelwright.core import plugins
from kernelwright.core.errors import ConfigError
from kernelwright.sketch.nodes import Sketch
from kernelwright.target import Capabilities

Entry = tuple[str, Sequence[int], str, bool]
State = Sequence[Entry]
"""(name, shape, dtype, is it a buffer) for each entry of the reference's state_dict. A `InitialisedState` also knows how they are drawn."""


class InitialisedState(tuple[Entry, ...]):
    """A State with the statements that draw its values as the reference's constructor does (core/task/initialisation.py):
    `statements` run in order,
    `values` has the expression of each entry. A kernel constructed under the reference's seed then holds the reference's weights."""

    statements: tuple[str, ...]
    values: Mapping[str, str]

    def __new__(
        cls, entries: Sequence[Entry], statements: Sequence[str] = (), values: Mapping[str, str] | None = None
    ) -> InitialisedState:
        made = super().__new__(cls, entries)
        made.statements, made.values = tuple(statements), dict(values or {})
        return made


def constructor(entries: Sequence[Entry], state: State) -> list[str]:
    """The lines of ModelNew's constructor that declare its state as zeros, for a state_dict to be loaded into, and then fill it with the
    reference's draws where they are known."""
    out = [
        f"        _declare(self, {name!r}, torch.zeros({list(shape)!r}, dtype=torch.{dtype}), {buffer})"
        for name, shape, dtype, buffer in entries
    ]
    if isinstance(state, InitialisedState) and state.statements:
        out.append("        with torch.no_grad():  # the reference's draws, in its order: the same seed gives the same weights")
        out += [f"            {statement}" for statement in state.statements]
        out.append("        self.load_state_dict({")
        out += [f"            {name!r}: {value}," for name, value in state.values.items()]
        out.append("        }, strict=False)")
    return out


class Language(Protocol):
    """One DSL. `lower` raises SketchError for what it cannot express; `facts` is what `doctor` shows.

    Optional attributes: `execution` ("native", or without the device "interpreter" or "emulator") and `runtime` (the name of a
    module with the functions of `OffDeviceRuntime`). Without them a kernel is executed natively. `devices` (kinds of targets that
    its kernels run on where one is attached: "cuda" if not said). `executes` (target/capabilities.py: "blocks" where each parallel
    iteration is a block, "threads" if not said) and `shared_limit` (bytes of a block's shared memory that its kernels ask for at most)
    say how it uses a device, `default_target` for which one it designs when nobody says. `reads` (paths of the host that its kernels
    must be able to read beyond Python, the compiler and the system's libraries: a driver's registry) and `sign` (a regular
    expression that a file of the language matches). `tools(kind)` names programs of this machine that its compiler for such a target
    needs; its runtime finds them under `tools` in the target's sheet. A language whose coder can write one sketch in several ways is a
    `HasCodegenOptions`."""

    name: str
    skills: Path

    def lower(
        self, sketch: Sketch, *, state: State = (), shapes: Sequence[Sketch] = (), capabilities: Capabilities | None = None
    ) -> str:
        """One self-contained Python file that defines `ModelNew`; `shapes` are sketches for the task's other input shapes,
        `capabilities` what the kernels may count on (of this machine or the default target if None)."""

    def facts(self) -> dict[str, str]:
        """What of this machine the language uses, and what is missing, by name."""


@runtime_checkable
class HasCodegenOptions(Protocol):
    """A language with options that a search may turn; a kernel file says `OPTIONS = {…}` where they differ from the defaults."""

    def options(self, kernel: str) -> Mapping[str, tuple[int, tuple[int, ...]]]:
        """Name → (default, values worth trying) of what may matter to a kernel written by `lower`. None changes what is computed."""

    def lower(
        self,
        sketch: Sketch,
        *,
        state: State = (),
        shapes: Sequence[Sketch] = (),
        capabilities: Capabilities | None = None,
        options: Mapping[str, int],
    ) -> str:
        """As `Language.lower`, in the way that the options say."""


class OffDeviceRuntime(Protocol):
    """The functions of a runtime module. It is imported in the judge's template, where nothing foreign runs, and used in the
    sandboxed process of one candidate, where our files cannot be read any more: whatever it needs, it imports at its top."""

    def install(self, target: Mapping[str, Any]) -> None:
        """Before the kernel file is loaded: redirect what the language needs. `target` is the sheet of the (first) target."""

    def context(self, *, calling: bool) -> AbstractContextManager[Any]:
        """Open around every piece of foreign code: loading and constructing (calling=False), each call of forward (True)."""

    def launches(self) -> int:
        """How many kernels of the language have been launched so far."""

    def compile_for(self, target: Mapping[str, Any]) -> Mapping[str, Any]:
        """After the trials: compile what was launched for a target (its sheet). Gives {"compiler": text, "kernels": [figures…]}
        with the fields of `judge.offdevice.KernelFigures`; raises `CompileFailed` with the compiler's first error."""

    def host_work(self) -> Sequence[str]:
        """Optional: work of forward that left the device, named like an operator (`dsl.offdevice.redirect.host_work`); it counts as
        a library's."""

    def notes(self) -> Sequence[str]:
        """What the reader of the verdict should know about how the kernel was executed."""


class CompileFailed(Exception):
    """A runtime's compiler refused a kernel for a target. The first argument is its first error, with the place."""


def installed() -> tuple[str, ...]:
    """The names of all installed languages; none of them is imported."""
    return plugins.names()


def readable(name: str) -> tuple[str, ...]:
    """Paths of the host that a language's kernels read beside what every kernel may; none for a language that is not installed."""
    return tuple(getattr(plugins.load(name), "reads", ()))


def languages() -> dict[str, Language]:
    """All installed languages by name."""
    return {name: language(name) for name in plugins.names()}


def language(name: str) -> Language:
    """The language of this name; an unknown one is told with the names that exist."""
    found: Language | None = plugins.load(name)
    if found is None:
        raise ConfigError(f"there is no language {name!r}; installed are: {', '.join(sorted(installed()))}")
    return found
