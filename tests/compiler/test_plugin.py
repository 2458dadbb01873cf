"""A language in a package of its own: the plug-in of examples/plugins, installed into a folder and found by its entry point there."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[2] / "examples" / "plugins" / "kernelwright-opencl"

SIGNED = """
from kernelwright.cli.doctor import ways_of
from kernelwright.core.kernel import guess_dsl
from kernelwright.compiler.language import installed, language, readable

assert "small" in installed()
assert guess_dsl("import smallness\\nimport triton") == "small"
assert guess_dsl("import triton") == "triton"
assert readable("small") == ("/etc/small",)
(row,) = ways_of(language("small"), [])
assert (row.way, row.state, row.add) == ("native", "missing", "pip install smallness")
assert row.detail == "compiler 3; library missing"
assert readable("cpp") == readable("nobody") == ()
"""


def run(words: list[str], site: Path, seconds: int) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, timeout=seconds, check=False
    )


def test_what_an_outside_language_may_say_of_itself(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(
        "from kernelwright.compiler.language import Language\nfrom kernelwright.core.tools import Tool\n\n\n"
        "class Small(Language):\n    name = 'small'\n    reads = ('/etc/small',)\n    sign = r'^import smallness'\n"
        "    def needs(self):\n        return [Tool('cc', 'compiler 3'), Tool('library', add='pip install smallness')]\n"
        "LANGUAGE = Small()\n"
    )
    known = tmp_path / "small-1.dist-info"
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: small\nVersion: 1\n")
    (known / "entry_points.txt").write_text("[kernelwright.dsl]\nsmall = small:LANGUAGE\n")
    done = run(["-c", SIGNED], tmp_path, 60)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_opencl_from_outside(tmp_path: Path) -> None:
    """The plug-in's own tests: families compared with torch, judged in the sandbox on track pure, seeded bugs."""
    for package in ("pyopencl", "pip", "setuptools"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install {package}")
    if not list(Path("/etc/OpenCL/vendors").glob("*.icd")):
        pytest.skip("there is no OpenCL driver: apt install pocl-opencl-icd")
    source = shutil.copytree(PLUGIN, tmp_path / "plugin", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    site = tmp_path / "site"
    install = ["-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", str(site), str(source)]
    done = run(install, tmp_path, 120)
    assert done.returncode == 0, done.stderr
    done = run(["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={source}", str(source / "tests")], site, 800)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "skipped" not in done.stdout.splitlines()[-1]
