"""A kernel as a package: what others install or include, with no Kernelwright and no compiler on their machine.

A kernel file of ours (or a run's best) goes in; a folder, a wheel or two C files come out:

1. `contents`    the file's sketches as C libraries with the manifest that says how to call them, built for each instruction set
2. `op_package`  the Python package: `runtime.py` copied as its `__init__`, which registers a `torch.library` operator; as folder or wheel
3. `hub`         the same in the layout of Hugging Face's `kernels`
4. `c_files`     a header, a source and an example in C++, without torch
"""

from __future__ import annotations

from pathlib import Path

from kernelwright.core.errors import ConfigError

FORMS = ("torch-op", "wheel", "hf-kernels", "c")


def export(kernel: str | Path, form: str, out: str | Path = "kernelwright-out", *, name: str | None = None) -> Path:
    """Writes a kernel file, or the best kernel of a run, as a package of this form; gives what was made."""
    from kernelwright.api.packages import c_files, hub, op_package
    from kernelwright.api.packages.contents import Contents

    if form not in FORMS:
        raise ConfigError(f"there is no form {form!r} of a package; there are {', '.join(FORMS)}")
    contents = Contents.of(kernel, name)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    if form == "c":
        return c_files.write(contents, folder)
    if form == "hf-kernels":
        return hub.write(contents, folder)
    return op_package.write_wheel(contents, folder) if form == "wheel" else op_package.write_folder(contents, folder)
