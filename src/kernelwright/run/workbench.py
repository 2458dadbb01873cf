"""The tools of a run with their memory: look at the task, draft, prove, judge. Each is done once for a run, whoever asks and however
often the run is killed; `seconds` adds up what the work took, also where it was only recalled.

In: a JobSpec, the judge, the drafter, a Memory. Out: facts, drafts, proofs, verdicts. No model is asked here.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

from kernelwright.core.job import JobSpec
from kernelwright.core.kernel import Kernel
from kernelwright.core.verdict import Mismatch, Verdict
from kernelwright.judge import Judge, offdevice
from kernelwright.run.drafts import Draft, Drafter
from kernelwright.run.memo import Memory
from kernelwright.run.proof import Proof, prove, recount
from kernelwright.target import Target


class Workbench:
    """The tools of one run. Verdicts that came from a recording are remembered as such: they are about another machine."""

    def __init__(self, job: JobSpec, judge: Judge, drafter: Drafter, memory: Memory) -> None:
        assert job.task is not None, "a migration without a task makes one of its sketch first"
        self.task = job.task
        self.job, self.judge, self.drafter, self.memory = job, judge, drafter, memory
        self.seconds = 0.0
        self.replayed: set[str] = set()
        """Hashes of kernels whose verdict came from a recording."""
        self.verdicts: list[Verdict] = []

    def drafts(self) -> list[Draft]:
        """The built-in mind's drafts, best guess first; raises what the built-in designer raised."""
        job = self.job
        key = {"dsl": job.dsl, "track": job.track, "effort": job.effort.name, "count": job.effort.drafts, "target": job.target}

        def make() -> dict[str, Any]:
            return {"drafts": [draft.as_json() for draft in self.drafter.drafts(job)]}

        return [Draft.from_json(item, job.dsl) for item in self._once("drafts", key, make)["drafts"]]

    def prove(self, sketch: str) -> Proof:
        """Whether a sketch is right."""
        job = self.job
        key = {"sketch": sketch, "dsl": job.dsl, "target": job.target, "track": job.track}
        return Proof.from_json(self._once("proof", key, lambda: prove(self.drafter, job, sketch).as_json()))

    def recounted(self, sketch: str, mismatch: Mismatch) -> str:
        """A right sketch's intermediate values at the first element that a kernel gets wrong."""
        key = {"sketch": sketch, "output": mismatch.output, "place": mismatch.place}
        made = self._once(
            "witness",
            key,
            lambda: {"seen": recount(self.drafter, self.task, sketch, mismatch.output, mismatch.place)},
        )
        return str(made["seen"])

    def judged(self, kernel: Kernel) -> Verdict:
        """The judge's verdict on a kernel file."""
        verdict = self._verdict(kernel, timing=self.job.timing)
        self.verdicts.append(verdict)
        return verdict

    def tried(self, kernel: Kernel) -> Verdict:
        """Whether a kernel is right, without the clock."""
        return self._verdict(kernel, timing=False)

    def judged_here(self, kernel: Kernel) -> Verdict:
        """A verdict of this machine, whatever a recording says."""
        return self._verify(kernel, timing=self.job.timing)

    def finding(self, kind: str, key: dict[str, Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Anything else that must be the same when the run is replayed."""
        return self._once(kind, key, make)

    def _verdict(self, kernel: Kernel, *, timing: bool) -> Verdict:
        job = self.job
        key = {"kernel": kernel.hash, "dsl": job.dsl, "track": job.track, "target": job.target, "timing": timing}
        found = self._once("verdict", key, lambda: self._verify(kernel, timing=timing).model_dump(mode="json"), kernel.hash)
        return Verdict.model_validate(found)

    def _verify(self, kernel: Kernel, *, timing: bool) -> Verdict:
        job = self.job
        return self.judge.verify(
            self.task,
            kernel,
            dsl=job.dsl,
            target=job.target,
            track=job.track,
            timing=timing,
            compile_contender=job.compile_contender,
            contenders=job.contenders,
            budget_s=job.effort.judge_seconds,
        )

    def target(self) -> Target:
        """The hardware that the kernel is for, as a sheet."""
        setting = offdevice.setting(self.job.dsl, self.job.target)
        return setting.targets[0] if setting is not None else Target.host()

    def _once(self, kind: str, key: dict[str, Any], make: Callable[[], dict[str, Any]], subject: str = "") -> dict[str, Any]:
        def timed() -> dict[str, Any]:
            started = time.monotonic()
            found = make()
            return {"found": found, "seconds": round(time.monotonic() - started, 3)}

        entry, origin = self.memory.once(kind, {"task": self.task.hash, **key}, timed)
        self.seconds += entry["seconds"]
        if origin == "recording" and subject:
            self.replayed.add(subject)
        found: dict[str, Any] = entry["found"]
        return found


def digest(text: str) -> str:
    """The hash under which a text goes into the journal."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
