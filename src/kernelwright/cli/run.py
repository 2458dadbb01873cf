"""`kernelwright run`: anybody's Triton or CUDA program on this processor, as compiled for a GPU, with a GPU's errors where asked.

In: a program and its arguments. Out: what the program prints; with --check errors on stderr and exit code 1.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.core.errors import GpuError, KernelFileError, KernelwrightError, ToolMissing

if TYPE_CHECKING:
    from kernelwright.gpu import Fault
    from kernelwright.gpu.profile import Recorder


def run_command(
    file: Annotated[
        Path, typer.Argument(help="A Python program with Triton kernels, or a CUDA program (.cu).", show_default=False)
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments of the program, after --.", show_default=False)
    ] = None,
    target: Annotated[str, typer.Option(help="The CUDA device to compile for; newer than sm_90 means sm_90.")] = "a100",
    check: Annotated[
        bool, typer.Option("--check", help="Look for accesses out of bounds, races and the like; exit code 1 if there are any.")
    ] = False,
) -> int:
    """Run a Triton or CUDA program on the CPU, unmodified, as compiled for a CUDA device.

    Triton kernels take CPU tensors, and device="cuda" means the CPU; a .cu file is compiled whole by nvcc. The program runs with your
    rights: it is trusted and not sandboxed. Without --check a wrong address may crash it."""
    if file.suffix not in (".py", ".cu"):
        raise KernelFileError(file, "only Python programs (.py) and CUDA programs (.cu) are run")
    if not file.is_file():
        raise KernelFileError(file, "there is no such file")
    if file.suffix == ".cu":
        return run_cuda(file, target, check, arguments or [])
    return run_triton(file, target, check, arguments or [])


def run_triton(file: Path, target: str, check: bool, arguments: list[str], recorder: Recorder | None = None) -> int:
    """Run a Python program in this process; a `recorder` sees its launches."""
    os.environ.pop("TRITON_INTERPRET", None)  # the compiler's output is what runs here
    try:
        from kernelwright.compiler.backends.triton.simulated import simulated
    except ImportError as error:
        raise ToolMissing("Triton", "running Triton programs", "pip install 'kernelwright[triton]'") from error
    from kernelwright.compiler.offdevice import cuda_api

    with simulated(target, check=check, told=_tell) as simulation:
        simulation.recorder = recorder
        cuda_api.install(asdict(simulation.target))
        code = _run(file.resolve(), arguments)
    if check:
        count = len(simulation.faults)
        print(
            f"kernelwright: {count or 'no'} {'error' if count == 1 else 'errors'}, {simulation.launches} launches",
            file=sys.stderr,
        )
    return code or (1 if simulation.faults else 0)


def run_cuda(file: Path, target: str, check: bool, arguments: list[str], profile: Path | None = None) -> int:
    """Compile a CUDA program and run it in a process of its own, where it may exit and crash as it likes; the profile of its launches
    is written to a file where asked."""
    from kernelwright.compiler.offdevice import cuda_build
    from kernelwright.target.sheet import Target

    sheet = Target.load(target)
    if sheet.kind != "cuda":
        raise GpuError(f"{target} is no CUDA target: PTX is what is executed; name one such as a100 or h100")
    with tempfile.TemporaryDirectory(prefix="kernelwright-cuda-") as work:
        described = asdict(sheet)
        arch = cuda_build.architecture(described)
        try:
            program = cuda_build.build([file], Path(work) / file.stem, arch=arch, flags=[f"-I{file.parent}"])
        except GpuError as error:
            raise KernelFileError(file, str(error)) from None
        asked = {"target": described, "check": check, "cudart": str(cuda_build.cudart()), "profile": str(profile or "")}
        module = "kernelwright.compiler.offdevice.cuda_program"
        words = [sys.executable, "-m", module, json.dumps(asked), str(program), *arguments]
        # A profile in JSON is alone on our stdout: what the program prints goes beside it.
        done = subprocess.run(words, check=False, stdout=sys.stderr if profile else None)
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        print(f"kernelwright: {file} was stopped by {name}; --check says where kernels go wrong", file=sys.stderr)
        return 1
    return done.returncode


def _run(file: Path, arguments: list[str]) -> int:
    """The exit code of the program, run as `python FILE` would."""
    sys.argv = [str(file), *arguments]
    sys.path.insert(0, str(file.parent))
    try:
        runpy.run_path(str(file), run_name="__main__")
    except SystemExit as left:
        if isinstance(left.code, str):
            print(left.code, file=sys.stderr)
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except KernelwrightError:
        raise
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename != str(file):
            trace = trace.tb_next
        traceback.print_exception(error.with_traceback(trace))
        return 1
    finally:
        sys.stdout.flush()
    return 0


def _tell(fault: Fault) -> None:
    sys.stdout.flush()
    print(f"kernelwright: {fault.kind}: {fault}", file=sys.stderr, flush=True)
