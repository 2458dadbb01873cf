"""Exported kernels: a torch operator that opcheck accepts, a wheel that runs without a compiler, the hub's layout, and C."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import kernelwright
from kernelwright.api.packages.contents import Contents
from kernelwright.cli.main import run
from kernelwright.compiler.backends.cpp import LANGUAGE
from kernelwright.compiler.designer import design_module
from kernelwright.core.errors import ConfigError, KernelFileError


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(24)
        self.register_buffer("table", torch.arange(24).float(), persistent=False)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.norm(x) + self.table
        return y, y.argmax(-1)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel file for two sets of shapes."""
    model = Normed()
    first, second = (design_module(model, [torch.randn(rows, 24)], limit=1)[0].sketch for rows in (6, 3))
    file = tmp_path_factory.mktemp("kernel") / "kernel.py"
    file.write_text(LANGUAGE.lower(first, shapes=[second]))
    return file


def loaded(folder: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, folder / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arguments(model: Normed, rows: int, contents: Contents) -> list[torch.Tensor]:
    """The operator's tensors in the manifest's order."""
    x, state = torch.randn(rows, 24), dict(model.named_parameters())
    given = contents.libraries[0].inputs
    return [x if a.role == "input" else state[a.source].detach() for a in given]


def test_a_torch_operator_passes_opcheck_and_compiles(kernel: Path, tmp_path: Path) -> None:
    folder = kernelwright.export(kernel, "torch-op", tmp_path, name="normed")
    module = loaded(folder, "exported_normed")
    model, contents = Normed(), Contents.of(kernel, "normed")
    with torch.no_grad():
        model.norm.weight.normal_()
        for rows in (6, 3):
            given = arguments(model, rows, contents)
            x = next(t for t in given if t.dim() == 2)
            want = model(x)
            got = module.operator(*given)
            torch.testing.assert_close(got[0], want[0], rtol=1e-5, atol=1e-5)
            assert torch.equal(got[1], want[1])
            torch.library.opcheck(module.operator, tuple(given))
        whole = torch.compile(lambda *t: module.operator(*t)[0] * 2, backend="eager", fullgraph=True)
        torch.testing.assert_close(whole(*given), want[0] * 2, rtol=1e-5, atol=1e-5)
        with pytest.raises(ValueError, match="made for inputs of the shapes"):
            module.operator(*(t[:1] if t.dim() == 2 else t for t in given))


BARE = """
import sys, time
sys.path.insert(0, sys.argv[1])
import torch
started = time.perf_counter()
import kernelwright_normed as package
assert "kernelwright" not in sys.modules
import json, pathlib
about = json.loads(pathlib.Path(package.__file__).with_name("kernel.json").read_text())
given = [torch.randn(*a["shape"]) for a in about["variants"][0]["inputs"]]
result = package.normed(*given)
x = next(t for t in given if t.dim() == 2)
w, b = [t for t in given if t.dim() == 1]
want = torch.nn.functional.layer_norm(x, (24,), w, b) + torch.arange(24)
assert torch.allclose(result[0], want, atol=1e-4), (result[0] - want).abs().max()
assert "torch._dynamo" not in sys.modules, "the first call imports what takes a second"
"""


def test_a_wheel_runs_with_no_compiler_and_no_kernelwright(kernel: Path, tmp_path: Path) -> None:
    wheel = kernelwright.export(kernel, "wheel", tmp_path, name="normed")
    assert "manylinux" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    record = next(n for n in names if n.endswith("RECORD"))
    listed = {line.split(",")[0] for line in (tmp_path / "site" / record).read_text().splitlines()}
    assert listed == set(names)
    assert {n.split(".")[-2] for n in names if n.endswith(".so")} >= {"avx2", "avx512"}
    empty = tmp_path / "empty"
    empty.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", BARE, str(tmp_path / "site")],
        env={"PATH": str(empty), "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.skipif(shutil.which("aarch64-linux-gnu-g++") is None, reason="needs aarch64-linux-gnu-g++")
def test_a_wheel_serves_arm_where_the_cross_compiler_is(kernel: Path, tmp_path: Path) -> None:
    wheel = kernelwright.export(kernel, "wheel", tmp_path, name="normed")
    assert "aarch64" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        built = [archive.read(n) for n in archive.namelist() if n.endswith(".neon.so")]
    assert built
    assert all(data[:4] == b"\x7fELF" and data[18] == 183 for data in built)  # the machine: AArch64


def test_the_hubs_layout_is_loaded_by_its_library(kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = pytest.importorskip("kernels")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = kernelwright.export(kernel, "hf-kernels", tmp_path, name="hub_normed")
    module = kernels.get_local_kernel(folder)
    contents = Contents.of(kernel, "hub_normed")
    given = arguments(Normed(), 6, contents)
    x = next(t for t in given if t.dim() == 2)
    torch.testing.assert_close(module.hub_normed(*given)[0], Normed()(x)[0], rtol=1e-5, atol=1e-5)


def test_c_files_build_and_compute(kernel: Path, tmp_path: Path) -> None:
    folder = kernelwright.export(kernel, "c", tmp_path, name="normed")
    done = subprocess.run(["./build.sh"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    model, contents = Normed(), Contents.of(kernel, "normed")
    given = arguments(model, 6, contents)
    (folder / "in").write_bytes(b"".join(t.numpy().tobytes() for t in given))
    subprocess.run(["./example", "in", "out"], cwd=folder, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    made: dict[str, Any] = {}
    data = (folder / "out").read_bytes()
    for a in contents.libraries[0].outputs:
        made[a.name] = np.frombuffer(data[: a.bytes], dtype=a.dtype.torch_name).reshape(a.shape)
        data = data[a.bytes :]
    want = model(next(t for t in given if t.dim() == 2))
    first, second = contents.libraries[0].returns
    np.testing.assert_allclose(made[first], want[0].detach().numpy(), rtol=1e-4, atol=1e-5)
    assert (made[second] == want[1].numpy()).all()


def test_the_command_and_what_it_refuses(kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", str(kernel), "--as", "c", "--out", str(tmp_path), "--json"]) == 0
    assert Path(json.loads(capsys.readouterr().out)["package"]).is_dir()
    plain = tmp_path / "plain.py"
    plain.write_text("class ModelNew: pass\n")
    with pytest.raises(KernelFileError, match="carries no sketch"):
        kernelwright.export(plain, "c", tmp_path)
    with pytest.raises(ConfigError, match="no form"):
        kernelwright.export(kernel, "zip", tmp_path)
