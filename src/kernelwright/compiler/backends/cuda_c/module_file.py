"""The kernel file: one Python module that builds its CUDA source with nvcc and defines `ModelNew`; here is how it is built."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.compiler.language import State
from kernelwright.compiler.lower.module_file import compiled
from kernelwright.compiler.lower.module_file.compiled import Program

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
    """The text of the kernel file: memory is the GPU's."""
    return compiled.render(programs, state, loader=_LOADER, needs="nvcc", device="cuda")
