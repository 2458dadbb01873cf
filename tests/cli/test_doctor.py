"""doctor: what it finds is what is there, and what is missing comes with the command that adds it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kernelwright.cli import doctor
from kernelwright.core import tools


def there(monkeypatch: pytest.MonkeyPatch, programs: dict[str, str], packages: dict[str, str]) -> None:
    """A machine that has these and nothing else."""
    monkeypatch.setattr(tools, "program_version", programs.get)
    monkeypatch.setattr(tools, "package_version", packages.get)


def test_without_a_compiler_cpp_is_missing_and_the_exit_code_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there(monkeypatch, {}, {})
    assert doctor.doctor_command(sandbox=False, as_json=True) == 1
    way = json.loads(capsys.readouterr().out)["ways"][0]
    assert (way["language"], way["state"], way["add"]) == ("cpp", "missing", "apt-get install g++")


def test_clang_alone_is_enough_for_cpp(monkeypatch: pytest.MonkeyPatch) -> None:
    there(monkeypatch, {"clang++": "clang++ 19.1"}, {})
    assert doctor.ways([])[0].state == "ready"


def test_a_device_that_torch_cannot_reach_is_never_called_ready() -> None:
    states = {(row.language, row.way): row.state for row in doctor.ways(["a GPU"])}
    assert states["cpp", "native"] == states["python", "native"] == "ready"
    assert states["triton", "interpreter"] == "ready"
    assert {states[name, "device"] for name in ("triton", "tilelang", "cuda_c")} == {"missing"}


def test_a_missing_package_comes_with_the_command_that_adds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    there(monkeypatch, {}, {"tilelang": "0.1"})
    adds = {(row.language, row.way): row.add for row in doctor.ways([])}
    assert adds["triton", "interpreter"] == "pip install triton"
    assert adds["tilelang", "interpreter"] == ""


def test_what_is_executed_as_compiled_needs_its_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    there(monkeypatch, {"g++": "g++ 12.2.0"}, {"triton": "3.9", "tilelang": "0.1"})
    rows = {row.language: row for row in doctor.ways([]) if row.way == "emulator"}
    assert rows["triton"].state == "ready"
    for name in ("cuda_c", "tilelang"):
        assert rows[name].state == "missing"
        assert "pip install 'kernelwright[cuda]'" in rows[name].add


def test_what_ascend_lacks_is_told_with_what_it_is_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELWRIGHT_TRITON_ASCEND", str(tmp_path))
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    way = next(row for row in doctor.ways([]) if row.way == "lowered for Ascend")
    assert (way.language, way.state) == ("triton", "missing")
    for words in ("pip install triton-ascend", "CANN, to make binaries", "torch_npu, to run them on an NPU"):
        assert words in way.add


def test_an_npu_is_named_and_needs_torch_npu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "npu-smi"
    tool.write_text(
        "#!/bin/sh\necho '| 0     910B3               | OK            | 93.6        40                0    / 0 |'\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    assert doctor.find_gpus() == ["Ascend 910B3"]
    way = doctor.on_device("triton", True, "triton", "")
    assert (way.state, way.add) == ("missing", "pip install torch_npu")


def test_a_compilers_version_is_read_and_a_broken_one_counts_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, script in (
        ("g++", "echo 'g++ (Debian) 12.2.0'"),
        ("nvcc", "echo 'Copyright (c) 2005-2025'; echo 'release 13.0, V13'"),
        ("ninja", "exit 3"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    assert tools.program_version("g++") == "g++ 12.2.0"
    assert tools.program_version("nvcc") == "nvcc 13.0"
    assert tools.program_version("ninja") is None
    assert tools.program_version("clang++") is None


def test_a_gpu_is_named_by_its_drivers_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA H100'\necho 'NVIDIA H100'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    assert doctor.find_gpus() == ["NVIDIA H100", "NVIDIA H100"]


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    doctor.doctor_command(sandbox=False)
    text = capsys.readouterr().out
    for words in ("cpp", "roofline", "GB/s", "sandbox", "targets"):
        assert words in text


def test_models_and_store_are_told_and_no_key_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setattr(doctor, "package_version", lambda name: None)
    doctor.doctor_command(sandbox=False, as_json=True)
    report = capsys.readouterr().out
    assert "pip install 'kernelwright[llm]'" in report
    assert "pip install 'kernelwright[store]'" in report
    assert "keys set: OPENAI_API_KEY" in report
    assert "sk-very-secret" not in report


def test_lifting_is_told_with_the_command_that_adds_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cuda_c (nvcc" in doctor.lifting()
    there(monkeypatch, {"g++": "g++ 12.2.0"}, {})
    assert "cuda_c (to add it: install the CUDA toolkit" in doctor.lifting()
