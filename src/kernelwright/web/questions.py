"""Short work that is no run: a question in, an id out at once, the answer when it is there.

Each runs on one of a few threads; whatever executes a stranger's file does so in the sandbox of a confined judge or drafter, which are
started with the first question and ended after a while without any. Answers are kept until newer ones push them out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from kernelwright.core.errors import ConfigError, KernelwrightError, TaskError
from kernelwright.core.job import JobSpec
from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.web.forms import DesignForm, JudgeForm, SketchForm, TaskForm
from kernelwright.web.privacy import Veil
from kernelwright.workers.channel import ChannelError

if TYPE_CHECKING:
    from kernelwright.judge import Judge
    from kernelwright.run.drafts import Drafter

ABREAST = 2
MOST_WAITING = 16
KEPT = 64
IDLE_SECONDS = 600.0
CHECK_SECONDS = 30.0
PROVE_SECONDS = 60.0
DOCTOR_SECONDS = 120.0


@dataclass
class Question:
    state: Literal["waiting", "done", "failed"] = "waiting"
    answer: dict[str, Any] | None = None
    error: str = ""
    line: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {"state": self.state, "answer": self.answer, "error": self.error, "line": self.line}


class Questions:
    """Use `stop` at the end: it ends the workers."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(ABREAST, thread_name_prefix="question")
        self._asked: OrderedDict[str, Question] = OrderedDict()
        self._lock = threading.Lock()
        self._judge: Judge | None = None
        self._drafter: Drafter | None = None
        self._working = 0
        self._last = time.monotonic()

    def find(self, name: str) -> Question | None:
        return self._asked.get(name)

    def describe(self, form: TaskForm) -> str:
        return self._ask(lambda: self._described(form))

    def design(self, form: DesignForm) -> str:
        return self._ask(lambda: self._designed(form))

    def judge(self, form: JudgeForm) -> str:
        return self._ask(lambda: self._judged(form))

    def sketch(self, form: SketchForm) -> str:
        return self._ask(lambda: self._sketched(form))

    def doctor(self) -> str:
        return self._ask(_doctor)

    def rest(self) -> None:
        """End the workers when nobody has asked for a while."""
        with self._lock:
            if not self._working and time.monotonic() - self._last > IDLE_SECONDS:
                self._close()

    def stop(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._close()

    def _ask(self, work: Callable[[], dict[str, Any]]) -> str:
        with self._lock:
            if sum(one.state == "waiting" for one in self._asked.values()) >= MOST_WAITING:
                raise ConfigError("too many questions at once; wait until some are answered")
            name = os.urandom(12).hex()
            question = self._asked[name] = Question()
            while len(self._asked) > KEPT:
                self._asked.popitem(last=False)
        self._pool.submit(self._answer, question, work)
        return name

    def _answer(self, question: Question, work: Callable[[], dict[str, Any]]) -> None:
        veil = Veil()
        with self._lock:
            self._working += 1
        try:
            question.answer = veil.data(work())
            question.state = "done"
        except KernelwrightError as error:
            question.error, question.line = veil.text(str(error)), getattr(error, "line", None)
            question.state = "failed"
        except ChannelError as error:
            question.error, question.state = veil.text(f"it did not finish: {error}"), "failed"
        except Exception as error:  # a thread that ends in silence would leave the browser waiting
            question.error, question.state = f"internal error: {type(error).__name__}", "failed"
        finally:
            with self._lock:
                self._working -= 1
                self._last = time.monotonic()

    def _described(self, form: TaskForm) -> dict[str, Any]:
        from kernelwright.agents.task_writer import describe_in_sandbox

        task = form.task()
        description = describe_in_sandbox(self._the_judge().server, task)
        return {"task": task.name, "source": task.source, **description.as_json()}

    def _designed(self, form: DesignForm) -> dict[str, Any]:
        draft = self._the_drafter().drafts(JobSpec(form.task.task(), form.dsl, target=form.target), 1)[0]
        return {"sketch": draft.sketch, "kernel": draft.kernel.source, "notes": list(draft.notes)}

    def _judged(self, form: JudgeForm) -> dict[str, Any]:
        kernel = Kernel.from_source(form.kernel, dsl=form.dsl)
        judge = self._the_judge()
        verdict = judge.verify(form.task.task(), kernel, target=form.target, track=form.track, timing=form.timing)
        return verdict.model_dump(mode="json")

    def _sketched(self, form: SketchForm) -> dict[str, Any]:
        from kernelwright.run.proof import prove

        started = time.monotonic()
        drafter = self._the_drafter()
        reply = drafter.ask("web.sketch_worker:serve", {"sketch": form.sketch}, timeout=CHECK_SECONDS)
        found = {"faults": reply["faults"], "sketch": reply["sketch"], "run": None}
        if form.task is not None and not reply["faults"]:
            job = JobSpec(_whole(form.task), form.dsl, target=form.target, track=form.track)
            proof = prove(drafter, job, form.sketch, timeout=PROVE_SECONDS)
            found["run"] = proof.as_json()
        return {**found, "seconds": round(time.monotonic() - started, 3)}

    def _the_judge(self) -> Judge:
        from kernelwright.judge import Judge

        with self._lock:
            if self._judge is None:
                self._judge = Judge(confined=True)
            return self._judge

    def _the_drafter(self) -> Drafter:
        from kernelwright.run.drafts import Drafter

        with self._lock:
            if self._drafter is None:
                self._drafter = Drafter(confined=True).__enter__()
            return self._drafter

    def _close(self) -> None:
        if self._judge is not None:
            self._judge.close()
        if self._drafter is not None:
            self._drafter.__exit__()
        self._judge = self._drafter = None


def _whole(form: TaskForm) -> Task:
    if not form.source and not form.suite:
        raise TaskError(f"{form.name}.py", "there is no task to run the sketch against")
    return form.task()


def _doctor() -> dict[str, Any]:
    """What the command says, without where the store is."""
    command = [sys.executable, "-m", "kernelwright", "doctor", "--json"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=DOCTOR_SECONDS, check=False, stdin=subprocess.DEVNULL)
        found: dict[str, Any] = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise ConfigError("kernelwright doctor gave no answer; run it in a terminal") from error
    found.pop("store", None)
    return found
