"""A function or class of a program becomes one kernel file: its package travels with it, its benchmarks do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.core.errors import KernelFileError
from kernelwright.core.kernel import Kernel


@pytest.fixture
def program(tmp_path: Path) -> Path:
    package = tmp_path / "workshop" / "ops"
    package.mkdir(parents=True)
    (tmp_path / "workshop" / "__init__.py").write_text("from .ops.scale import scaled\n")
    (package / "__init__.py").write_text("")
    (package / "factors.py").write_text("TWICE = 2.0\n")
    (package / "scale.py").write_text(
        "import torch\nfrom .factors import TWICE\n\n\ndef scaled(x):\n    return x * TWICE\n\n\n"
        "class Scale(torch.nn.Module):\n    def forward(self, x):\n        return scaled(x)\n"
    )
    (tmp_path / "tutorial.py").write_text(
        "import torch\nimport triton\n\nHALF = 0.5\n\n\ndef halved(x):\n    return x * HALF\n\n\n"
        "print('a benchmark runs')\nresult = halved(torch.ones(3))\nraise SystemExit('no device')\n"
    )
    return tmp_path


def run(kernel: Kernel, tmp_path: Path) -> str:
    file = tmp_path / "elsewhere" / "kernel.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(kernel.source)
    code = "import runpy, sys, torch; m = runpy.run_path(sys.argv[1]); print(m['ModelNew']()(torch.ones(2)).tolist())"
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, cwd=file.parent, check=False)
    return done.stdout.strip() + done.stderr[-300:]


@pytest.mark.parametrize("name", ["scaled", "Scale"])
def test_a_package_travels_with_what_is_named(program: Path, name: str) -> None:
    kernel = Kernel.from_path(f"{program}/workshop/ops/scale.py:{name}")
    assert kernel.name == name
    assert run(kernel, program) == "[2.0, 2.0]"


def test_a_module_is_found_by_its_dotted_name(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(program)
    assert run(Kernel.from_path("workshop.ops.scale:scaled"), program) == "[2.0, 2.0]"


def test_what_the_name_does_not_need_is_left_out(program: Path) -> None:
    kernel = Kernel.from_path(f"{program}/tutorial.py:halved")
    assert kernel.dsl == "triton"  # by what people wrote, though the name alone needs no triton
    assert run(kernel, program) == "[0.5, 0.5]"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("tutorial.py:none", "it defines no none; it has halved"),
        ("nowhere.py:x", "no such file"),
        ("no.such.module:x", "no such module"),
    ],
)
def test_what_is_not_there_is_one_sentence(program: Path, monkeypatch: pytest.MonkeyPatch, spec: str, said: str) -> None:
    monkeypatch.chdir(program)
    with pytest.raises(KernelFileError, match=said):
        Kernel.from_path(spec)
