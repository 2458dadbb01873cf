"""The orchestrator: a task and a kernel in, a Verdict out. Trusted, imports no torch, runs no foreign code.

How one verdict comes about (`Judge.verify`):

1. the referee opens the task (facts, constructor arguments) while the candidate's cell is made ready;
2. the candidate loads the kernel file and constructs its class; weights travel by name where names and shapes match;
3. trials: the referee draws, the candidate runs, the referee checks values, structure and that inputs were left alone;
   outputs of earlier calls are asked for again and must not have changed; one trial nobody can foresee is traced;
4. the track: what the trace saw, and what the process has mapped (trace.py);
5. the first trial once more, then the clock (clock.py) when timing is asked for;
6. the verdict. Whatever the candidate does on the way ends in `Rejected` (rejection.py), never in an error of ours.

`session.py` owns the steps, `conversation.py` the exchange with the two workers.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelwright import suites
from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.core.verdict import CompiledFor, SizeTiming, Status, Track, Verdict
from kernelwright.judge import offdevice
from kernelwright.judge.conversation import Times
from kernelwright.judge.device import condition, held
from kernelwright.judge.expectations import Expectations
from kernelwright.judge.phases import Phases
from kernelwright.judge.rejection import Refused, Rejected, from_channel, from_finding
from kernelwright.judge.servers import judge_server
from kernelwright.judge.session import Session
from kernelwright.judge.sizes import SIZE_SECONDS, at_sizes, proof_for, size_timing, sizes_of
from kernelwright.judge.timing import clock
from kernelwright.judge.timing.bandwidth import Streams
from kernelwright.judge.timing.baselines import Baselines
from kernelwright.target import Target
from kernelwright.target.cpu import physical_cores
from kernelwright.workers.channel import ChannelError
from kernelwright.workers.exclusive import Exclusive
from kernelwright.workers.fork_server import ForkServer
from kernelwright.workers.worker import Worker

TAIL = 2000


class Judge:
    """Judges kernels. Holds the server process, so that a verdict needs no import of torch; use it as a context manager, from
    as many threads as you like (a timed phase has the machine for itself); `tasks_at_once` says of how many tasks. `confined`: task
    files are strangers', and run in the sandbox as kernels do."""

    def __init__(
        self, *, threads: int | None = None, times: Times | None = None, tasks_at_once: int = 1, confined: bool = False
    ) -> None:
        self.threads = threads or default_threads()
        self.times = times or Times()
        self.confined = confined
        self.server = judge_server(self.threads, confined=confined)
        self._off_device: dict[str, ForkServer] = {}
        self._expectations = Expectations(self.threads)
        self.exclusive = Exclusive()
        self._baselines = Baselines(self.server, self.threads, self.exclusive, kept=tasks_at_once + 1)
        self._target: Target | None = None
        self._streams: Streams | None = None

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process that belongs to this judge."""
        self.server.close()
        for server in self._off_device.values():
            server.close()
        if self._streams:
            self._streams.close()

    def prepare(
        self,
        task: Task,
        dsl: str = "cpp",
        target: str = "auto",
        *,
        compile_contender: bool = True,
        contenders: tuple[str, ...] = (),
    ) -> None:
        """Begin with the contenders of a task whose kernels will be timed: torch.compile takes as long as writing a kernel does.
        Nothing to do for a language that is only interpreted here."""
        setting = self._setting(dsl, target)
        if setting is None or setting.device:
            modes = (*(["compile"] if compile_contender else []), *contenders)
            self._baselines.prepare(task, modes, setting.device if setting else "")

    def verify(
        self,
        task: Task | str | Path,
        kernel: Kernel | str | Path,
        *,
        dsl: str | None = None,
        target: str = "auto",
        track: Track = "pure",
        timing: bool = True,
        compile_contender: bool = True,
        contenders: tuple[str, ...] = (),
        budget_s: float = 5.0,
    ) -> Verdict:
        """The verdict on one kernel. Raises TaskError or KernelFileError for files that cannot be judged at all; everything that
        is the kernel's doing is in the verdict. `budget_s` bounds the referee's trials and the clock's rounds, each. `target` (names
        with commas) is what a kernel whose device is not at hand is compiled for; such a kernel is not timed.
        `contenders` are further baselines beside eager and torch.compile: "max-autotune", or what a plug-in calls itself."""
        started, laps = time.monotonic(), Phases()
        task = task if isinstance(task, Task) else suites.task(task)
        kernel = as_kernel(kernel, dsl)
        fields: dict[str, Any] = {
            "task": task.name,
            "task_hash": task.hash,
            "kernel_hash": kernel.hash,
            "dsl": dsl or kernel.dsl,
            "track": track,
        }
        setting = self._setting(fields["dsl"], target)
        device = setting.device if setting else ""
        timing = timing and (setting is None or bool(device))
        holding = held(setting.targets[0]) if setting and device else contextlib.nullcontext()
        told: tuple[str, ...] = ()
        with holding:
            while True:
                with self.session(task, kernel, setting) as session:
                    session.warnings += told
                    try:
                        found = self._judged(
                            session, laps, track, target, timing=timing, compile_contender=compile_contender,
                            contenders=contenders, budget_s=budget_s,
                        )  # fmt: skip
                    except Refused as refused:
                        other = setting.other() if setting else None
                        if other is not None:
                            setting = other
                            told = (f"executed in the {other.execution}: {refused.reason}",)
                            continue
                        found = self._ended(session, refused)
                    break
        if setting is not None:
            fields |= {"execution": setting.execution, "target": ",".join(each.name for each in setting.targets)}
        laps.end("end")
        return Verdict(**fields, **found, seconds=round(time.monotonic() - started, 3), phases=laps.seconds)

    def _judged(
        self, session: Session, laps: Phases, track: Track, target: str, *, timing: bool, compile_contender: bool,
        contenders: tuple[str, ...], budget_s: float,
    ) -> dict[str, Any]:  # fmt: skip
        """What one session finds out, as fields of the verdict. `Refused` where the kernel is not executed in this way."""
        found: dict[str, Any] = {}
        timed_sizes: list[SizeTiming] = []
        try:
            session.known = self._expectations.of(session.task).get("referee") or {}
            session.open()
            laps.end("open")
            if timing:
                dsl = session.setting.dsl if session.setting else session.kernel.dsl
                self.prepare(session.task, dsl, target, compile_contender=compile_contender, contenders=contenders)
            session.load()
            laps.end("build")
            session.run_trials(budget_s)
            self._expectations.learn(session.task, referee=session.learnt)
            session.rush()
            session.repeat()
            laps.end("trials")
            session.judge_track(track)
            if session.interpreted:
                session.compile_for_targets()
                laps.end("targets")
            flags = self._task_flags(session)
            laps.end("track and task")
            measured = self._timed(session, laps, track, compile_contender, contenders, budget_s) if timing else None
            session.judge_time(track)
            session.look_back()
            found |= {"status": Status.correct, "reason": _praise(session, measured), "task_flags": flags}
            if measured is not None:
                found |= {"timing": measured.timing}
                timed_sizes = self._timed_sizes(session, laps)
                session.warnings += measured.warnings
        except Refused:
            raise
        except Rejected as rejected:
            return found | self._ended(session, rejected, timed_sizes)
        return found | self._ended(session, None, timed_sizes, found.get("timing"))

    def _ended(
        self, session: Session, rejected: Rejected | None, timed_sizes: Sequence[SizeTiming] = (), timing: Any = None
    ) -> dict[str, Any]:
        """The fields that every verdict has, and why a kernel was rejected."""
        fields: dict[str, Any] = {}
        if rejected is not None:
            fields |= {"status": rejected.status, "reason": rejected.reason}
            fields |= {"mismatch": rejected.mismatch, "build": rejected.build}
        fields |= {"sizes": sizes_of(session, timing, timed_sizes)}
        fields |= {"proof": proof_for(session, session.kernel)}
        fields |= {"trials": session.trials_run(), "library_calls": tuple(session.library_calls)}
        fields |= {"sandbox": session.level, "stderr_tail": session.printed()[-TAIL:]}
        fields |= {"compiled_for": session.compiled or None}
        return fields | {"warnings": tuple(session.warnings)}

    def session(self, task: Task, kernel: Kernel, setting: offdevice.Setting | None = None) -> Session:
        """A conversation about one kernel, for whoever wants less than a verdict; a context manager."""
        return Session(self._server_for(setting), task, kernel, self.threads, self.times, self.exclusive, setting)

    def _setting(self, dsl: str, target: str) -> offdevice.Setting | None:
        return offdevice.setting(dsl, target)

    def _server_for(self, setting: offdevice.Setting | None) -> ForkServer:
        """The process that workers are forked from. A language without its device has one of its own, in which its runtime is
        imported: an interpreter must not be in the process of a kernel that is timed."""
        if setting is None or setting.device:
            return self.server
        server = judge_server(self.threads, preload=(setting.runtime,), confined=self.confined)
        return self._off_device.setdefault(setting.runtime, server)

    def _task_flags(self, session: Session) -> tuple[str, ...]:
        """What the task cannot tell, found once per task."""
        known = self._expectations.of(session.task).get("flags")
        if known is None:
            known = session.flags()
            self._expectations.learn(session.task, flags=known)
        return tuple(known)

    def _timed(
        self,
        session: Session,
        laps: Phases,
        track: Track,
        compile_contender: bool,
        contenders: tuple[str, ...],
        budget_s: float,
    ) -> clock.Measurement:
        """The measurement. Who is accused by times is measured again in a fresh process: a cheat does it there, too."""

        def anew() -> tuple[Worker, Worker]:
            session.running().resume()
            session.judge_time(track)
            session.look_back()
            session.load_again()
            device = session.setting.device if session.setting else ""
            return session.running(), self._baselines.anew(session.task, device)

        measured = self._measure(session, laps, compile_contender, contenders, budget_s, again=anew)
        if measured.finding and measured.finding.get("by_time"):
            first = measured.finding
            session.load_again()
            laps.end("fresh process")
            measured = self._measure(session, laps, compile_contender, contenders, budget_s)
            if measured.finding:
                again = f"{first['reason']}; in a fresh process again: {measured.finding['reason']}"
                raise from_finding({**measured.finding, "reason": again})
        if measured.finding:
            raise from_finding(measured.finding)
        return measured

    def _timed_sizes(self, session: Session, laps: Phases) -> list[SizeTiming]:
        """The ratio over eager at a few of the other sizes that were tried."""
        found = []
        for number, place in session.timed_trials.items():
            with at_sizes(session, number) as facts:
                measured = self._measure(session, laps, False, (), SIZE_SECONDS, facts)
            if measured.finding:
                raise from_finding(measured.finding).at(place)
            if measured.timing is not None:
                found.append(size_timing(place, measured.timing))
        return found

    def _measure(
        self, session: Session, laps: Phases, compile_contender: bool, contenders: tuple[str, ...], budget_s: float,
        facts: dict[str, Any] | None = None, again: clock.Again | None = None,
    ) -> clock.Measurement:  # fmt: skip
        """The timed phase: alone, since whatever else runs would disturb it."""
        assert session.candidate is not None
        assert session.referee is not None
        on = session.setting.targets[0] if session.setting else None
        device = session.setting.device if session.setting else ""
        self._baselines.eager(session.task, device)
        others = {}
        for mode in (*(["compile"] if compile_contender else []), *contenders):
            worker, warning = self._baselines.other(session.task, mode, device)
            if worker is None:
                session.warnings.append(warning)
            else:
                others[mode] = worker
        laps.end("contenders")
        with self.exclusive.alone():
            laps.end("waiting for silence")
            if self._target is None:
                self._target = Target.host()
                self._streams = Streams(self._target, self.threads)
            before = condition(on) if on else ""
            try:
                measured = clock.measure(
                    session.candidate,
                    self._baselines.eager(session.task, device),  # who was alone before may have started it anew
                    others.pop("compile", None),
                    session.referee,
                    others=others,
                    facts=facts or session.facts,
                    target=on or self._target,
                    device=bool(device),
                    threads=self.threads,
                    budget_s=budget_s,
                    streams=None if device else self._streams,
                    again=again,
                    reload_seconds=laps.seconds.get("build", 0.0),
                )
            except ChannelError as error:
                raise from_channel(error, session.candidate, "a timed call of forward", self.times.run) from error
            finally:
                session.candidate.resume()
                self._baselines.rest()
                laps.end("clock")
        if on and before:
            session.warnings.append(f"{on.title} before the measurement: {before}; after it: {condition(on)}")
        return measured


def as_kernel(kernel: Kernel | str | Path, dsl: str | None) -> Kernel:
    """A kernel from whatever names it: text has line breaks, a path has none."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and "\n" in kernel:
        return Kernel.from_source(kernel, dsl=dsl)
    return Kernel.from_path(kernel, dsl=dsl)


def default_threads() -> int:
    """Physical cores that this process may use: what every contender gets."""
    return max(1, min(physical_cores(), len(os.sched_getaffinity(0))))


def _compiled(name: str, figures: CompiledFor) -> str:
    """What became of a kernel on one target's compiler, and nothing that it has not said."""
    if figures.predicted_ms is None:
        return f"not compiled for {figures.architecture or name}: {figures.compiler}"
    time = f"{figures.predicted_ms:.3g} ms on {name}"
    if figures.stage in ("", "binary"):
        return f"compiles for {figures.architecture} (predicted, not measured: {time})"
    by = f"{figures.compiler}; predicted by the roofline alone, not measured: {time}"
    return f"lowers to {figures.stage} for {figures.architecture} ({by})"


def _praise(session: Session, measured: clock.Measurement | None) -> str:
    ran = session.trials_run()
    text = f"right in {session.trials_passed} trials over {len(ran.distributions)} distributions"
    if session.setting is not None and session.interpreted:
        return f"{text}, in the {session.setting.execution}; " + "; ".join(
            _compiled(name, figures) for name, figures in session.compiled.items()
        )
    if measured is None or measured.timing is None:
        return text
    timing = measured.timing
    return f"{text}; {timing.speedup:.2f}x eager ({timing.speedup_low:.2f}-{timing.speedup_high:.2f})"
