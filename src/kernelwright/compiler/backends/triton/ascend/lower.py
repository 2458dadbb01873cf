"""Runs triton-ascend's Python on what was launched: launches and a target's sheet in, stages reached out.

This happens in the candidate's sandboxed process, because the kernels' text is foreign; the program is read before the sandbox closes.
Where the environment is missing nothing is lowered, and the verdict says what to do, as it does for a missing nvcc.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kernelwright.compiler.backends.triton.ascend.text import work
from kernelwright.compiler.backends.triton.interpreter.patches import Launched
from kernelwright.compiler.language import CompileFailed

CHILD = Path(__file__).with_name("child.py").read_text(encoding="utf-8")
SECONDS = 240.0
MOST_PROGRAMS = 65_535
"""Programs of one launch that triton-ascend's runtime takes, unless TRITON_ALL_BLOCKS_PARALLEL=1 is set."""
ORDER = ("ttir", "linalg", "binary")
REMARKS: list[str] = []
"""What the reader of the verdict should know of the last lowering."""
_Popen = subprocess.Popen


def lower_launches(target: Mapping[str, Any], launches: Sequence[Launched]) -> dict[str, Any]:
    """How far every launch goes; CompileFailed with the first error."""
    tools = dict(target.get("tools") or {})
    if not tools.get("triton_ascend"):
        return {
            "compiler": f"triton-ascend is missing; to add it: {tools.get('add', 'see docs/add-a-target.md')}",
            "kernels": [],
        }
    asked = {"arch": target["arch"], "kernels": [asdict(work(launch)) for launch in launches]}
    said = _run(tools, asked)
    if said["error"]:
        raise CompileFailed(first_error(said["error"], str(tools.get("triton_ascend_version") or said["version"])))
    REMARKS[:] = [remark for launch in launches if (remark := _too_many(launch))]
    kernels = [_kernel(launch, told) for launch, told in zip(launches, said["kernels"], strict=True)]
    version = tools.get("triton_ascend_version") or said["version"]
    stage = min((told["stage"] for told in said["kernels"]), key=ORDER.index, default="")
    without = "" if tools.get("bishengir") else "; no CANN: no binary"
    return {"compiler": f"triton-ascend {version}{without}", "kernels": kernels, "stage": stage}


def _kernel(launch: Launched, told: Mapping[str, Any]) -> dict[str, Any]:
    """A launch's figures. There are no registers, and what a core's buffers hold is decided by CANN: not known here."""
    return {"name": told["function"], "blocks": _programs(launch)}


def _programs(launch: Launched) -> int:
    count = 1
    for extent in launch.grid:
        count *= extent
    return count


def _too_many(launch: Launched) -> str:
    count = _programs(launch)
    if count <= MOST_PROGRAMS:
        return ""
    name = launch.function.fn.__name__
    return (
        f"{name} is launched with {count:,} programs; triton-ascend takes {MOST_PROGRAMS:,} unless TRITON_ALL_BLOCKS_PARALLEL=1"
    )


def _run(tools: Mapping[str, str], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The program's answer. It gets an environment of its own: ours has the other Triton's variables."""
    path = [os.path.dirname(tools[name]) for name in ("triton_ascend", "bishengir") if tools.get(name)]
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder) / "request.json", Path(folder) / "answer.json"
        request.write_text(json.dumps(asked), encoding="utf-8")
        surroundings = {
            "PATH": os.pathsep.join([*path, "/usr/local/bin", "/usr/bin", "/bin"]),
            "HOME": folder,
            "TMPDIR": folder,
            "TRITON_CACHE_DIR": f"{folder}/cache",
            "LANG": "C.UTF-8",
            **({"LD_LIBRARY_PATH": os.environ["LD_LIBRARY_PATH"]} if os.environ.get("LD_LIBRARY_PATH") else {}),
            **({"ASCEND_HOME_PATH": tools["cann"]} if tools.get("cann") else {}),
        }
        command = [tools["triton_ascend"], "-I", "-c", CHILD, str(request), str(answer)]
        try:
            process = _Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=surroundings, cwd=folder)
        except OSError as error:
            raise CompileFailed(f"the Python of triton-ascend cannot be started: {error}") from None
        with process:
            try:
                printed, _ = process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise CompileFailed(f"triton-ascend did not finish within {SECONDS:.0f} s") from None
        try:
            said: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            last = (printed.strip().splitlines() or ["it printed nothing"])[-1]
            raise CompileFailed(f"triton-ascend ended with code {process.returncode}: {last[:400]}") from None
    return said


def first_error(error: Mapping[str, str], version: str) -> str:
    """The first error in one line, with the kernel's name and the place, then all that was said."""
    name, text, printed = error["function"], error["text"], error["printed"]
    where = re.search(r"^at (\d+):(\d+):", text, re.MULTILINE)
    place = f" at line {where[1]} of the function" if where else ""
    complaints = [line for line in printed.splitlines() if re.search(r"\berror:|Assertion .* failed", line)]
    if complaints:
        short = re.sub(r"^.*?(\berror:\s*|(?=Assertion ))", "", complaints[0])
    else:
        lines = (error["cause"].strip() or text.strip() or error["kind"]).splitlines()
        short = lines[-1] if error["kind"] == "CompilationError" else lines[0]
    stage = "" if error["stage"] == "ttir" else f" (lowering to {error['stage']})"
    return f"error: {name}{place}: {short.strip()[:400]}{stage} [triton-ascend {version}]\n{printed or text}"
