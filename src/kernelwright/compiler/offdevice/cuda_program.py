"""A CUDA program with a `main`, run in this process: `python -m kernelwright.compiler.offdevice.cuda_program SETTING PROGRAM [ARGS]`.

A process of its own, because the program may call `exit`, and may crash. SETTING is JSON: the target's sheet, whether to check. What was
wrong is told on stderr; the exit code is the program's, or 1 where the check found something.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Any

from kernelwright.compiler.offdevice.cuda_build import device_attributes
from kernelwright.gpu.host import Device
from kernelwright.gpu.profile import Recorder

_Left = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p)


def main(words: list[str]) -> None:
    """Does not come back."""
    setting: dict[str, Any] = json.loads(words[0])
    check = bool(setting["check"])
    libc = ctypes.CDLL(None)

    def tell(text: str) -> None:
        libc.fflush(None)
        print(f"kernelwright: {text}", file=sys.stderr, flush=True)

    device = Device(device_attributes(setting["target"]), title=setting["target"]["title"], checks=check, told=tell)
    device.open(Path(setting["cudart"]))

    recorder = Recorder()
    if setting.get("profile"):
        device.watch(lambda launch: recorder.see_launch(launch))

    def left(status: int, _: Any) -> None:
        """After the program's own destructors: libc calls what was registered last first."""
        libc.fflush(None)
        if setting.get("profile"):
            from kernelwright.compiler.offdevice import profiling
            from kernelwright.compiler.offdevice.cuda_names import plain_name

            Path(setting["profile"]).write_text(json.dumps(profiling.reply(recorder, setting["target"], plain_name)))
        found = len(device.faults) + len(device.host_faults)
        if check:
            plural = "error" if found == 1 else "errors"
            print(f"kernelwright: {found or 'no'} {plural}, {device.launches} launches", file=sys.stderr, flush=True)
        os._exit(status or int(bool(found or device.failure)))

    leaving = _Left(left)
    libc.on_exit(leaving, None)
    program = ctypes.CDLL(words[1])
    arguments = (ctypes.c_char_p * (len(words) + 1))(*(w.encode() for w in words[1:]))
    status = program.main(len(words) - 1, ctypes.cast(arguments, ctypes.c_void_p), None)
    libc.exit(status & 0xFF)


if __name__ == "__main__":
    main(sys.argv[1:])
