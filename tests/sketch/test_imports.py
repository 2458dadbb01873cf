"""Reading and checking sketches needs no torch: the doors and the judge's parent rely on that."""

from __future__ import annotations

import subprocess
import sys


def test_language_without_torch() -> None:
    code = "import sys, kernelwright.sketch.parse, kernelwright.sketch.print, kernelwright.sketch.check; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
