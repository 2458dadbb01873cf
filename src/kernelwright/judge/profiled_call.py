"""The profile of a kernel on a target that is not at hand: one call in the candidate's sandbox, its launches counted, its time predicted.

In: a judge, a task, a kernel, a target's name. Out: `Profile`. The kernel runs once on the task's own inputs and is held against the
reference there: that is no verdict, only a sign that what was counted is the work that was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.core.errors import ConfigError
from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.core.verdict import CompiledFor, Status
from kernelwright.judge import offdevice
from kernelwright.judge.rejection import Rejected
from kernelwright.judge.timing.roofline import Work
from kernelwright.judge.verify import Judge
from kernelwright.target import Target


@dataclass(frozen=True)
class Profile:
    """What is known of a kernel on a target. `compiled` is None for a kernel that did not come so far; `wrong` says why its values are
    not those of the reference, if so."""

    target: Target
    dsl: str
    compiled: CompiledFor | None
    work: Work | None
    wrong: str = ""
    notes: tuple[str, ...] = ()


def profile(judge: Judge, task: Task, kernel: Kernel, target: str, *, dsl: str | None = None) -> Profile:
    """Run the kernel once and profile its launches. ConfigError for a language that runs on the CPU itself."""
    language = dsl or kernel.dsl
    setting = offdevice.setting(language, target)
    if setting is None:
        raise ConfigError(f"{language} kernels run on this machine's CPU and can be timed here: use kernelwright verify")
    if setting.device:
        raise ConfigError(
            f"{setting.targets[0].title} is attached: a kernel is timed there, not predicted; use kernelwright verify"
        )
    wrong, session = "", judge.session(task, kernel, setting)
    with session:
        try:
            session.open()
            session.load()
            try:
                session.try_once()
            except Rejected as rejected:
                if rejected.status not in (Status.wrong_values, Status.wrong_shape, Status.wrong_dtype):
                    raise
                wrong = rejected.reason
            session.compile_for_targets()
        except Rejected as rejected:
            wrong = rejected.reason
            if rejected.build is not None and rejected.build.message not in wrong:
                wrong += f": {rejected.build.message}"
        notes = tuple(session.warnings)
        compiled = session.compiled.get(setting.targets[0].name)
        work = Work.from_facts(session.facts) if session.facts else None
    return Profile(setting.targets[0], language, compiled, work, wrong, notes)
