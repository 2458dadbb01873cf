"""The Python package of a kernel: a folder that can be imported, or the same as a wheel."""

from __future__ import annotations

import base64
import hashlib
import shutil
import tempfile
import zipfile
from pathlib import Path

import kernelwright
from kernelwright.api.packages.contents import Contents


def fill(contents: Contents, folder: Path) -> list[str]:
    """The package's files: the module, the manifest, the libraries. Gives the instruction sets."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(Path(__file__).parent / "runtime.py", folder / "__init__.py")
    (folder / "kernel.json").write_text(contents.manifest())
    return contents.build(folder)


def write_folder(contents: Contents, out: Path) -> Path:
    """The package as a folder, with its C++ sources beside the libraries."""
    folder = out / package_name(contents)
    fill(contents, folder)
    for library in contents.libraries:
        (folder / f"{library.name}.cpp").write_text(library.text)
    return folder


def write_wheel(contents: Contents, out: Path) -> Path:
    """The package as a wheel. Its tag names no processor where libraries for both families are inside."""
    name = package_name(contents)
    with tempfile.TemporaryDirectory() as work:
        root = Path(work)
        sets = fill(contents, root / name)
        families = sorted({"aarch64" if s == "neon" else "x86_64" for s in sets})
        platform = ".".join(f"manylinux_2_28_{f}" for f in families)
        tag = f"py3-none-{platform}"
        about = root / f"{name}-{kernelwright.__version__}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {kernelwright.__version__}\nSummary: {contents.about.splitlines()[0]}\n"
            "Requires-Python: >=3.10\nRequires-Dist: torch>=2.6\n"
        )
        tags = "\n".join(f"Tag: py3-none-manylinux_2_28_{f}" for f in families)
        (about / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: kernelwright\nRoot-Is-Purelib: false\n{tags}\n")
        files = sorted(path for path in root.rglob("*") if path.is_file())
        record = [f"{path.relative_to(root)},sha256={_hash(path)},{path.stat().st_size}" for path in files]
        (about / "RECORD").write_text("\n".join([*record, f"{about.name}/RECORD,,"]) + "\n")
        wheel = out / f"{name}-{kernelwright.__version__}-{tag}.whl"
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in [*files, about / "RECORD"]:
                archive.write(path, path.relative_to(root))
    return wheel


def package_name(contents: Contents) -> str:
    """The module that is imported."""
    return f"kernelwright_{contents.name}"


def _hash(path: Path) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
