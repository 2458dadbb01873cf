"""The layout that Hugging Face's `kernels` loads: build/torch-cpu/ with the package and its metadata."""

from __future__ import annotations

import json
from pathlib import Path

from kernelwright.api.packages.contents import Contents
from kernelwright.api.packages.op_package import fill, package_name


def write(contents: Contents, out: Path) -> Path:
    """The repository's folder; `kernels.get_local_kernel(folder)` imports it."""
    folder = out / package_name(contents).replace("_", "-")
    variant = folder / "build" / "torch-cpu"
    fill(contents, variant)
    about = {
        "id": f"{package_name(contents)}_{contents.hash[:12]}",
        "name": package_name(contents).replace("_", "-"),
        "version": 1,
        "license": "Apache-2.0",
        "python-depends": [],
        "backend": {"type": "cpu"},
    }
    (variant / "metadata.json").write_text(json.dumps(about, indent=1))
    title = contents.about.splitlines()[0]
    (folder / "README.md").write_text(f"---\ntags: [kernel]\nlicense: apache-2.0\n---\n\n# {contents.name}\n\n{title}\n")
    return folder
