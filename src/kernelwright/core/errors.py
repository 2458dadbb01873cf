"""Every failure a user can cause or meet, each as one sentence: what happened, where, what to do.

Raised where it is known, caught at the door (CLI, API), shown as one sentence with the exit code of its class. A verdict is not
an error: a kernel that is rejected is an answer.
"""

from __future__ import annotations

from pathlib import Path


class KernelwrightError(Exception):
    """Base of all errors that are shown to the user as one sentence; `exit_code` is what the command returns."""

    exit_code = 2


class TaskError(KernelwrightError):
    """A task file that cannot be used, with the line at fault where there is one."""

    def __init__(self, path: Path | str, reason: str, *, line: int | None = None) -> None:
        where = f"{path}:{line}" if line else f"{path}"
        super().__init__(f"{where}: {reason}")
        self.path = str(path)
        self.line = line
        self.reason = reason


class KernelFileError(KernelwrightError):
    """A kernel file that cannot even be read (missing, not text, a folder)."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


class SketchError(KernelwrightError):
    """A sketch that does not parse or check; `line` is the line of the sketch's source, `hint` what to write instead."""

    def __init__(self, reason: str, *, line: int = 0, path: Path | str = "sketch", hint: str = "") -> None:
        where = f"{path}:{line}: " if line else f"{path}: "
        super().__init__(f"{where}{reason}" + (f" ({hint})" if hint else ""))
        self.reason = reason
        self.line = line
        self.hint = hint


class UnsupportedOperator(KernelwrightError):
    """The built-in designer has no schedule for an operator of the task."""

    exit_code = 1

    def __init__(self, operator: str, detail: str = "") -> None:
        super().__init__(f"{operator} is not supported by the built-in designer yet" + (f": {detail}" if detail else ""))
        self.operator = operator


class ToolMissing(KernelwrightError):
    """Something that has to be installed, with the command that does it."""

    def __init__(self, tool: str, needed_for: str, install: str) -> None:
        super().__init__(f"{tool} was not found; it is needed for {needed_for}. Install it with: {install}")


class JudgeError(KernelwrightError):
    """The judge itself could not work (its reference process died, no memory for the task). Never the candidate's doing."""


class ConfigError(KernelwrightError):
    """A setting that is unknown or has a value that makes no sense."""


class StoreError(KernelwrightError):
    """The store cannot be read or written (full disk, damaged file, unknown run); what it held otherwise is kept."""


class ModelError(KernelwrightError):
    """A language model that did not give a usable answer: no key, no connection, an error of the server, nonsense."""


class BudgetReached(KernelwrightError):
    """The next call of a model could exceed what the run may spend. Not a failure of the run: its best so far stands."""

    exit_code = 1


class CannotLift(KernelwrightError):
    """A foreign kernel, or a part of it, that no sketch can express (yet): refused with the place and the reason, never guessed."""

    exit_code = 1

    def __init__(self, reason: str, *, path: Path | str = "", line: int = 0) -> None:
        where = f"{path}:{line}: " if path and line else f"{path}: " if path else ""
        super().__init__(f"{where}{reason}")
        self.reason = reason
        self.path = str(path)
        self.line = line


class PtxError(KernelwrightError):
    """PTX that cannot be read, or an instruction that the machine does not know: refused with its line, never guessed."""

    def __init__(self, reason: str, *, path: Path | str = "ptx", line: int = 0) -> None:
        super().__init__(f"{path}:{line}: {reason}" if line else f"{path}: {reason}")
        self.reason = reason
        self.line = line


class GpuError(KernelwrightError):
    """A launch that a device would refuse, or a kernel that did on the machine in software what it must not do."""

    exit_code = 1
