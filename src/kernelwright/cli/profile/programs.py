"""Profiles of whole programs: they run once, unmodified, and each kind of launch is counted when it comes first.

In: a Triton program or a `.cu` file. Out: `Told`. The way in which programs run is `kernelwright run`'s.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelwright.cli.profile.told import Told
from kernelwright.cli.run import run_cuda, run_triton
from kernelwright.core.errors import ConfigError, KernelFileError
from kernelwright.core.launch_figures import LaunchFigures
from kernelwright.target import Target
from kernelwright.target.predict import predicted_ms


def profiled(file: Path, target: Target, arguments: Sequence[str]) -> Told:
    """Run a program and profile what it launched."""
    if file.suffix not in (".py", ".cu"):
        raise KernelFileError(file, "only Python programs (.py) and CUDA programs (.cu) are profiled")
    if target.kind != "cuda":
        raise ConfigError(
            f"{target.name} is no CUDA target: PTX is what is counted; give --task for the compiler's figures of others"
        )
    reply: dict[str, Any]
    if file.suffix == ".cu":
        with tempfile.TemporaryDirectory(prefix="kernelwright-profile-") as work:
            out = Path(work) / "profile.json"
            code = run_cuda(file, target.name, False, list(arguments), profile=out)
            reply = json.loads(out.read_text()) if out.is_file() else {}
    else:
        from kernelwright.compiler.offdevice import profiling
        from kernelwright.gpu.profile import Recorder

        recorder = Recorder()
        code = run_triton(file, target.name, False, list(arguments), recorder=recorder)
        reply = profiling.reply(recorder, vars(target))
    launches = tuple(LaunchFigures.model_validate(each) for each in reply.get("launches", ()))
    notes = [f"the program ended with exit code {code}"] if code else []
    notes += [] if launches else ["it launched no kernel that could be profiled"]
    return Told(
        kernel=str(file),
        target=target,
        launches=launches,
        predicted_ms=predicted_ms(launches) if launches else None,
        error=max((each.predicted.error for each in launches), default=None),
        notes=(*notes, *reply.get("not_profiled", ())),
    )
