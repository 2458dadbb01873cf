"""Where triton-ascend and CANN are: settings and the usual places in, an `Environment` and sentences about what is missing out.

Nothing is imported or run to find out, since the judge's parent asks before every verdict on a Triton kernel.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kernelwright.core.config import load
from kernelwright.core.folders import data_folder
from kernelwright.core.tools import Tool

BINARY_COMPILER = "bishengir-compile"
"""CANN's compiler from linalg to a binary, which triton-ascend calls."""
CANN_PLACES = ("/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/latest", "/usr/local/Ascend/cann")


@dataclass(frozen=True)
class Environment:
    """A Python with triton-ascend, its version, and CANN's compiler with the folder it belongs to where there is one."""

    python: Path
    version: str
    compiler: Path | None = None
    cann: Path | None = None

    def tools(self) -> dict[str, str]:
        """What the candidate's process is told of it."""
        return {
            "triton_ascend": str(self.python),
            "triton_ascend_version": self.version,
            "bishengir": str(self.compiler or ""),
            "cann": str(self.cann or ""),
        }


def default_python() -> Path:
    """Where the environment is looked for when the setting `triton_ascend` says nothing."""
    return data_folder("triton-ascend", "bin", "python")


def how_to_add() -> str:
    """The commands that make the environment."""
    folder = default_python().parent.parent
    return f"python3 -m venv {folder} && {folder}/bin/pip install triton-ascend pybind11"


def find() -> Environment | None:
    """The environment, or None where there is none or triton-ascend is not in it."""
    said = load().settings.triton_ascend
    python = Path(said).expanduser() if said else default_python()
    if python.is_dir():
        python = python / "bin" / "python"
    found = _installed(python) if python.exists() else ""
    if not found:
        return None
    compiler, cann = find_cann()
    return Environment(python.absolute(), found, compiler, cann)


def find_cann() -> tuple[Path | None, Path | None]:
    """CANN's compiler and CANN's folder: by the variables of its own set_env.sh, in the search path, at the usual places."""
    named = [os.environ[name] for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME") if os.environ.get(name)]
    for root in (Path(place) for place in (*named, *CANN_PLACES)):
        for folder in ("bin", "compiler/bin", "tools/bishengir/bin"):
            if (root / folder / BINARY_COMPILER).exists():
                return root / folder / BINARY_COMPILER, root.resolve()
    program = shutil.which(BINARY_COMPILER)
    return (Path(program), Path(program).resolve().parent.parent) if program else (None, None)


def reads() -> tuple[str, ...]:
    """What triton-ascend and kernels on an NPU read: the environment, the Python that it was made of, CANN, where its driver is."""
    found = find()
    places = [found.python.parent.parent, *_base(found.python)] if found else []
    cann = find_cann()[1]
    places += [cann, Path("/etc/ascend_install.info")] if cann else []
    return tuple(str(place) for place in dict.fromkeys(places) if place.exists())


def torch_npu() -> str:
    """The version of torch_npu beside our own torch, or nothing."""
    try:
        return version("torch_npu")
    except PackageNotFoundError:
        return ""


def needs() -> tuple[Tool, ...]:
    """What lowers kernels for Ascend, what makes binaries of them, and what runs those."""
    found, npu = find(), torch_npu()
    cann = "CANN, to make binaries of them: install Ascend's CANN toolkit and source its set_env.sh"
    return (
        Tool(
            "triton-ascend",
            f"triton-ascend {found.version}" if found else "",
            f"triton-ascend, to lower kernels: {how_to_add()}",
        ),
        Tool("CANN", "CANN, so to a binary" if find_cann()[0] else "", cann, without="to linalg only"),
        Tool(
            "torch_npu",
            f"torch_npu {npu}" if npu else "",
            "torch_npu, to run them on an NPU: pip install torch_npu",
            without="nothing runs on an NPU",
        ),
    )


def missing() -> list[str]:
    """What is not there for Ascend, each with what it is for and how to get it."""
    return [tool.add for tool in needs() if not tool.found]


def _installed(python: Path) -> str:
    """triton-ascend's version by the metadata beside a Python, or nothing."""
    for folder in sorted(python.parent.parent.glob("lib/python3*/site-packages")):
        for found in sorted(folder.glob("triton_ascend-*.dist-info")):
            return found.name.removesuffix(".dist-info").partition("-")[2]
    return ""


def _base(python: Path) -> list[Path]:
    """The installation that a virtual environment was made of, by its pyvenv.cfg."""
    try:
        lines = (python.parent.parent / "pyvenv.cfg").read_text().splitlines()
    except OSError:
        return []
    home = [line.partition("=")[2].strip() for line in lines if line.partition("=")[0].strip() == "home"]
    return [Path(place).resolve().parent for place in home if Path(place).resolve().parent != Path("/")]
