"""What a browser is not shown: keys, and where things lie on this machine. Text in, the same text without them out.

Steps and verdicts quote compilers and other people's programs, so folders of this machine stand in them. What is below one of these
folders keeps its last part: `/home/ada/tasks/softmax.py:3` becomes `…/softmax.py:3`.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from kernelwright.agents.models.secrets import Redactor
from kernelwright.core.folders import cache_folder, data_folder

JOB_FIELDS = (
    "command", "task", "dsl", "to", "target", "track", "effort", "budget", "tune_seconds", "model", "designer_model", "coder_model",
    "timing", "compile_contender", "class_name", "max_cost", "max_tokens", "inputs", "init", "knowledge",
)  # fmt: skip
"""What is told of a job; the others are paths, addresses, or texts that have a place of their own."""
KNOWN_SCHEMES = ("openai", "anthropic")


def shown_job(job: dict[str, Any]) -> dict[str, Any]:
    """A job as the page has it."""
    told = {name: job[name] for name in JOB_FIELDS if job.get(name) not in (None, "")}
    for name in ("model", "designer_model", "coder_model"):
        if name in told:
            told[name] = shown_model(str(told[name]))
    return told


def shown_model(spec: str) -> str:
    """A model without the folder, file or address behind it."""
    scheme, colon, name = spec.partition(":")
    if not colon or scheme in KNOWN_SCHEMES:
        return spec
    return f"server:{name.rpartition(':')[2]}" if scheme in ("http", "https") else scheme


class Veil:
    """Made for each answer, since the environment may change."""

    def __init__(self) -> None:
        folders = {
            str(Path.home()),
            os.getcwd(),
            tempfile.gettempdir(),
            sys.prefix,
            sys.base_prefix,
            str(Path(__file__).parents[2]),
        }
        folders |= {
            str(data_folder()),
            str(cache_folder()),
            "/home",
            "/root",
            "/tmp",
            "/var",
            "/opt",
            "/usr",
            "/etc",
            "/work",
            "/mnt",
        }
        known = sorted((folder for folder in folders if len(folder) > 1), key=len, reverse=True)
        self._path = re.compile(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, known))})/(?:[^\s:'\"`,;()\[\]<>|/]+/)*")
        self._secrets = Redactor()

    def text(self, text: str) -> str:
        return self._path.sub("…/", self._secrets.clean(text))

    def data(self, value: Any) -> Any:
        """The same for every string in plain data."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.data(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(item) for item in value]
        return value
