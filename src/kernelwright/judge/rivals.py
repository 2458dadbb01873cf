"""The contenders that a kernel is timed against: workers that run the reference in eager mode and under torch.compile.

In: a task. Out: workers, loaded and idle. They are trusted, kept between verdicts on the same task (constructing and compiling
costs seconds), and stopped in between. torch.compile failing is a warning, never a failed verdict.
"""

from __future__ import annotations

import os
from pathlib import Path

from kernelwright.errors import JudgeError
from kernelwright.judge.channel import ChannelError, close_all
from kernelwright.judge.limits import Limits
from kernelwright.judge.session import Session
from kernelwright.judge.template import Template
from kernelwright.judge.worker import Worker
from kernelwright.task import Task

COMPILE_SECONDS = 240.0
OPEN_SECONDS = 600.0
KEPT_TASKS = 2
ROOMY = Limits(memory=1 << 46, file_bytes=1 << 46)


class Rivals:
    """Keeps the contenders of the last tasks. Used under the judge's timing lock."""

    def __init__(self, template: Template, threads: int) -> None:
        self._template = template
        self._threads = threads
        self._kept: dict[tuple[str, str], Worker | str] = {}

    def eager(self, task: Task) -> Worker:
        """The reference as it is."""
        found = self._kept.get((task.hash, "eager"))
        if isinstance(found, Worker) and not found.stopped:
            return found
        worker = self._open(task, "eager")
        self._keep(task, "eager", worker)
        return worker

    def compiled(self, session: Session) -> tuple[Worker | None, str]:
        """The reference under torch.compile, or None and why not."""
        key = (session.task.hash, "compile")
        found = self._kept.get(key)
        if isinstance(found, str):
            return None, found
        if isinstance(found, Worker) and not found.stopped:
            return found, ""
        try:
            worker = self._open(session.task, "compile")
        except JudgeError as error:
            return None, str(error)
        drawn, fds = session.ask_referee({"op": "draw_timed", "calls": 1, "seed": 1})
        warning = ""
        try:
            header = {"size": drawn["header"]["size"], "tree": drawn["header"]["tree"]["l"][0]}
            reply, _ = worker.request({"op": "compile", "header": header}, fds, timeout=COMPILE_SECONDS)
            if not reply.get("ok"):
                warning = f"torch.compile cannot run this task: {str(reply.get('error'))[:200]}"
        except ChannelError as error:
            warning = f"torch.compile did not finish: {error}"
        finally:
            close_all(fds)
        if warning:
            worker.stop()
            self._keep(session.task, "compile", warning)
            return None, warning
        self._keep(session.task, "compile", worker)
        return worker, ""

    def rest(self) -> None:
        """Stop all that are kept until they are needed again."""
        for worker in self._kept.values():
            if isinstance(worker, Worker) and not worker.stopped:
                worker.pause()

    def _open(self, task: Task, mode: str) -> Worker:
        worker = self._template.spawn(
            "contender", sandboxed=False, limits=ROOMY, folder=_cache() if mode == "compile" else None
        )
        message = {"op": "open", "path": task.path, "source": task.source, "class_name": task.class_name, "mode": mode}
        try:
            reply, _ = worker.request({**message, "init_seed": 0, "threads": self._threads}, timeout=OPEN_SECONDS)
        except ChannelError as error:
            worker.stop()
            raise JudgeError(f"{task.path}: the {mode} contender did not start: {error}") from error
        if not reply.get("ok"):
            worker.stop()
            raise JudgeError(f"{task.path}: the {mode} contender did not start: {reply.get('error')}")
        return worker

    def _keep(self, task: Task, mode: str, worker: Worker | str) -> None:
        self._kept[(task.hash, mode)] = worker
        tasks = list(dict.fromkeys(key[0] for key in self._kept))
        for old in tasks[:-KEPT_TASKS]:
            for key in [key for key in self._kept if key[0] == old]:
                gone = self._kept.pop(key)
                if isinstance(gone, Worker):
                    gone.stop()


def _cache() -> Path:
    """Where compiled graphs are kept between runs; only trusted contenders ever write there."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "kernelwright" / "compiled"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
