"""The command that does what the page does: a job as it is stored in, one line for a shell out. File names stand for pasted texts."""

from __future__ import annotations

import re
import shlex
from typing import Any


def command(job: dict[str, Any]) -> str:
    """The line for a job. What has its default is left out."""
    migrating = job.get("command") == "migrate"
    tuning = float(job.get("tune_seconds") or 0)
    task = str(
        job.get("path")
        if "/" in str(job.get("path", "")) and _suite(str(job["path"]))
        else f"{_word(str(job.get('task', '')))}.py"
    )
    if str(job.get("class_name", "Model")) != "Model" and not migrating:
        task = f"{_word(str(job['task']).partition(':')[0])}.py:{job['class_name']}"
    line = ["kernelwright"]
    if migrating:
        line += ["migrate", f"{_word(str(job.get('task', 'kernel')))}.py", "--to", str(job["to"])]
        line += ["--task", "task.py"] if job.get("task_source") else []
        line += ["--inputs", str(job["inputs"])] if job.get("inputs") else []
    elif tuning:
        line += ["tune", *(["kernel.py", "--task", task] if job.get("kernel") else [task]), "--dsl", str(job["dsl"])]
        line += ["--budget", f"{tuning:g}s"]
    else:
        line += ["generate", task, "--dsl", str(job["dsl"])]
        line += ["--effort", str(job["effort"])] if job.get("effort", "quick") != "quick" else []
        line += ["--budget", f"{float(job['budget']):g}s"] if job.get("budget") else []
    line += ["--target", str(job["target"])] if job.get("target", "auto") != "auto" and not tuning else []
    line += ["--track", str(job["track"])] if job.get("track", "pure") != "pure" else []
    for name, flag in (("model", "--model"), ("designer_model", "--designer-model"), ("coder_model", "--coder-model")):
        if job.get(name) not in (None, "", "builtin"):
            line += [flag, str(job[name])]
    line += ["--max-cost", f"{job['max_cost']:g}"] if job.get("max_cost") else []
    line += ["--max-tokens", str(job["max_tokens"])] if job.get("max_tokens") else []
    line += ["--no-timing"] if job.get("timing") is False and not tuning else []
    line += ["--no-compile"] if job.get("compile_contender") is False else []
    return shlex.join(line)


def _suite(path: str) -> bool:
    return re.fullmatch(r"[a-z_0-9]+/[A-Za-z_0-9]+", path) is not None


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name.rpartition("/")[2]).removesuffix(".py") or "task"
