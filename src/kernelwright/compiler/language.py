"""What a language plugs in: lowering a sketch to a kernel file, what it needs of the machine, and its skills.

A language is one object found under the entry point group `kernelwright.dsl`, so that another package can add one.

A language of a device that is not at hand also names its `runtime`: a module that makes the language run in the candidate's process
all the same (an interpreter, an emulator), and compiles what was launched for the targets asked for. docs/add-a-language.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from kernelwright.core import plugins
from kernelwright.core.errors import ConfigError
from kernelwright.core.size_choice import SizeTable
from kernelwright.core.tools import Tool
from kernelwright.core.verdict import Execution
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


class Language:
    """One DSL: subclass it, say what differs, and name an instance as an entry point. All that is asked of a language anywhere is here:
    no list of languages exists elsewhere.

    A language of a device that may not be at hand names its `runtime`; without one, its kernels run natively. One whose backend can
    write a sketch in several ways also has `options` (`HasCodegenOptions`)."""

    name: str
    title: str = ""
    """As people and models call it, with what its kernels are built by; its name if empty."""
    skills: Path
    """A folder of Markdown that a model's Coder reads."""
    sign: str = ""
    """A regular expression that a file of the language matches; without one, users write --dsl."""
    precedence: int = 0
    """Of the languages whose sign a file shows, the least is taken: a file of any language may name a C++ compiler."""
    execution: Execution = "native"
    """How its kernels are executed where no device is: "interpreter" or "emulator" (as compiled); `execution_on` where that depends."""
    fallback: Execution | None = None
    """How a kernel is executed whose code the first way refuses (`NotExecuted`), if there is another way."""
    runtime: str | None = None
    """A module with the functions of `OffDeviceRuntime`."""
    executes: Literal["threads", "blocks"] = "threads"
    """"blocks" where each parallel iteration of a sketch is a block of threads (target/capabilities.py)."""
    shared_limit: int = 0
    """Bytes of a block's shared memory that its kernels ask for at most; 0: what the device has."""
    default_target: str = "h100"
    """What a kernel is compiled for when nobody says and no device is attached."""
    emitter: str = ""
    """The module that `lower` asks: a function `lower` of the same arguments. It is imported when a kernel is written, not before."""
    lifter: str = ""
    """A module that reads other people's kernels back into sketches (compiler/lift/door.py)."""

    def lower(
        self, sketch: Sketch, *, state: State = (), shapes: Sequence[Sketch] = (), capabilities: Capabilities | None = None
    ) -> str:
        """One self-contained Python file that defines `ModelNew`; `shapes` are sketches for the task's other input shapes,
        `capabilities` what the kernels may count on (of this machine or the default target if None).
        Raises SketchError for what the language cannot express."""
        written: str = import_module(self.emitter).lower(sketch, state=state, shapes=shapes, capabilities=capabilities)
        return written

    def execution_on(self, kind: str) -> Execution:
        """How its kernels for such a target are executed here without one."""
        return self.execution

    @property
    def devices(self) -> tuple[str, ...]:
        """Kinds of targets that its kernels run on where one is attached."""
        return ("cuda",)

    @property
    def reads(self) -> tuple[str, ...]:
        """Paths of the host that its kernels read beyond Python, the compiler and the system's libraries: a driver's registry."""
        return ()

    def needs(self) -> Sequence[Tool]:
        """What of this machine its kernels need to be built and run on their device (natively: here)."""
        return ()

    def needs_off_device(self) -> Sequence[Tool]:
        """What its runtime needs to run them without the device."""
        return self.needs()

    def needs_to_lift(self) -> Sequence[Tool]:
        """What its lifter needs."""
        return self.needs()

    def further_ways(self) -> Sequence[tuple[str, Sequence[Tool]]]:
        """Further ways in which its kernels are examined here, each with what it needs."""
        return ()

    def tools(self, kind: str) -> dict[str, str]:
        """Programs of this machine that compiling for such a target needs; the runtime finds them under `tools` in the target's sheet."""
        return {}


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


@runtime_checkable
class HasVariants(Protocol):
    """A language whose kernel files may hold several variants for the same dynamic sizes and a table that chooses among them."""

    def lower(
        self,
        sketch: Sketch,
        *,
        state: State = (),
        shapes: Sequence[Sketch] = (),
        capabilities: Capabilities | None = None,
        table: SizeTable | None = None,
    ) -> str:
        """As `Language.lower`; with a `table`, `sketch` and `shapes` are its variants 0, 1, …"""

    variants: bool


class OffDeviceRuntime(Protocol):
    """The functions of a runtime module. It is imported in the judge's template, where nothing foreign runs, and used in the
    sandboxed process of one candidate, where our files cannot be read any more: whatever it needs, it imports at its top."""

    def install(self, target: Mapping[str, Any]) -> None:
        """Before the kernel file is loaded: redirect what the language needs. `target` is the sheet of the (first) target, with the
        `execution` that was decided for it."""

    def context(self, *, calling: bool) -> AbstractContextManager[Any]:
        """Open around every piece of foreign code: loading and constructing (calling=False), each call of forward (True)."""

    def launches(self) -> int:
        """How many kernels of the language have been launched so far."""

    def compile_for(self, target: Mapping[str, Any]) -> Mapping[str, Any]:
        """After the trials: compile what was launched for a target (its sheet). Gives {"compiler": text, "kernels": [figures…]}
        with the fields of `judge.offdevice.KernelFigures`; raises `CompileFailed` with the compiler's first error."""

    def host_work(self) -> Sequence[str]:
        """Optional: work of forward that left the device, named like an operator (`compiler/offdevice/redirect.host_work`); it counts as
        a library's."""

    def notes(self) -> Sequence[str]:
        """What the reader of the verdict should know about how the kernel was executed."""


class NotExecuted(Exception):
    """What a kernel was compiled to has something that a runtime does not execute; the first argument names it. The judge goes on in the
    language's other way (`Language.fallback`)."""


class CompileFailed(Exception):
    """A runtime's compiler refused a kernel for a target. The first argument is its first error, with the place."""


def installed() -> tuple[str, ...]:
    """The names of all installed languages; none of them is imported."""
    return plugins.names()


def readable(name: str) -> tuple[str, ...]:
    """Paths of the host that a language's kernels read beside what every kernel may; none for a language that is not installed."""
    found: Language | None = plugins.load(name)
    return found.reads if found is not None else ()


def languages() -> dict[str, Language]:
    """All installed languages by name."""
    return {name: language(name) for name in plugins.names()}


def language(name: str) -> Language:
    """The language of this name; an unknown one is told with the names that exist."""
    found: Language | None = plugins.load(name)
    if found is None:
        raise ConfigError(f"there is no language {name!r}; installed are: {', '.join(sorted(installed()))}")
    return found
