"""The kernel file: one Python module that builds its CUDA source with nvcc and defines `ModelNew`.

In: programs (a Sketch with its CUDA `Source`) and the reference's state_dict entries. Out: Python text that needs torch and nvcc and
nothing else. The class and its forward are those of the C++ coder; the loader is nvcc's, and memory is the GPU's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelwright.compiler.backends.cpp import module_file as plain
from kernelwright.compiler.backends.cpp.module_file import Program
from kernelwright.compiler.language import State

_LOADER = '''
def _build(code):
    """Compiles a source once for each source and GPU; the result is kept in a cache folder."""
    major, minor = torch.cuda.get_device_capability()
    command = ["nvcc", "-O3", "-std=c++17", f"-arch=sm_{major}{minor}", "-shared", "-Xcompiler", "-fPIC"]
    key = hashlib.sha256("\\n".join([code, *command]).encode()).hexdigest()[:24]
    folder = os.path.join(os.environ.get("XDG_CACHE_HOME") or tempfile.gettempdir(), "kernelwright-cuda")
    library = os.path.join(folder, key + ".so")
    if not os.path.exists(library):
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            source, built = os.path.join(work, "kernel.cu"), os.path.join(work, "kernel.so")
            with open(source, "w") as file:
                file.write(code)
            try:
                done = subprocess.run([*command, "-o", built, source], capture_output=True, text=True)
            except FileNotFoundError:
                raise RuntimeError("nvcc was not found; it is needed to build this kernel. Install the CUDA toolkit") from None
            if done.returncode:
                raise RuntimeError("the CUDA source does not compile:\\n" + done.stderr[-4000:])
            os.replace(built, library)
    return ctypes.CDLL(library)
'''


def render(programs: Sequence[Program], state: State) -> str:
    """The text of the kernel file."""
    text = plain.render(programs, state)
    start = text.index("\nFLAGS = [")
    stop = text.index("    return ctypes.CDLL(library)\n", start) + len("    return ctypes.CDLL(library)\n")
    text = text[:start] + _LOADER + text[stop:]
    text = text.replace("needs torch and g++.", "needs torch and nvcc.", 1)
    head, marker, rest = text.rpartition("\ndef _declare(")
    return head + marker + _on_device(rest)


def _on_device(text: str) -> str:
    """New tensors lie on the GPU; parameters go where the module is moved to."""
    text = re.sub(r"(torch\.empty\(.*?, dtype=torch\.\w+)\)", r'\1, device="cuda")', text)
    return re.sub(r"(torch\.tensor\(.*, dtype=torch\.\w+)\)\.reshape", r'\1, device="cuda").reshape', text)
