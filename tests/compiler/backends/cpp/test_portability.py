"""One lowering for every instruction set: kernels built for AVX-512 (compiled only) and for 64-bit Arm (compiled and run in qemu).

A kernel file is taken as it is. `CXX` names a compiler for the other machine, and what it built is called through `Elsewhere`, which
carries the memory behind each pointer over to a process in the emulator and back.
"""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from kernelwright import suites
from kernelwright.compiler.backends.cpp import LANGUAGE
from kernelwright.compiler.designer import design_task
from kernelwright.core.task import Task
from kernelwright.core.task.load import load_task
from kernelwright.core.task.scale import fit
from kernelwright.run.drafts import state_of

ARM, QEMU = shutil.which("aarch64-linux-gnu-g++"), shutil.which("qemu-aarch64")
NAMES = [
    *(
        "core/softmax",
        "core/gelu",
        "core/layer_norm",
        "core/gemm_odd",
        "core/gemm_bf16",
        "core/conv_2d",
        "core/deconv_2d_strided",
    ),
    *(
        "core/max_pool_2d",
        "core/attention_causal",
        "core/cumsum",
        "core/argmax_last",
        "core/cross_entropy",
        "core/variance_middle",
    ),
    *("fused/conv_group_norm_scale_max_pool_clamp", "fused/linear_avg_pool_gelu_scale_max", "modern/rms_norm"),
]
HOST = r"""
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <vector>
int main(int count, char** args) {  // LIBRARY FUNCTION FILE...: maps each file, calls, writes each file back
  void* library = dlopen(args[1], RTLD_NOW);
  if (!library) { std::fprintf(stderr, "%s\n", dlerror()); return 1; }
  void* found = dlsym(library, args[2]);
  void* p[32] = {};
  std::vector<long> sizes;
  for (int i = 3; i < count; ++i) {
    std::FILE* file = std::fopen(args[i], "rb");
    std::fseek(file, 0, SEEK_END);
    const long size = std::ftell(file);
    std::rewind(file);
    p[i - 3] = std::aligned_alloc(64, (size + 127) / 64 * 64);
    if (std::fread(p[i - 3], 1, size, file) != size_t(size)) return 2;
    std::fclose(file);
    sizes.push_back(size);
  }
  using Any = void (*)(void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*);
  ((Any)found)(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13], p[14], p[15]);
  for (int i = 3; i < count; ++i) {
    std::FILE* file = std::fopen(args[i], "wb");
    std::fwrite(p[i - 3], 1, sizes[i - 3], file);
    std::fclose(file);
  }
}
"""


class Elsewhere:
    """Stands for the library of a kernel that was built for another machine."""

    def __init__(self, library: str, host: Path, folder: Path) -> None:
        self._library, self._host, self._folder = library, host, folder

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*pointers: int) -> None:
            sizes = {
                thing.data_ptr(): thing.untyped_storage().nbytes() - thing.storage_offset() * thing.element_size()
                for thing in gc.get_objects()
                if type(thing) in (torch.Tensor, torch.nn.Parameter) and thing.data_ptr() in pointers
            }
            files = [self._folder / f"{index}.bin" for index in range(len(pointers))]
            for file, pointer in zip(files, pointers, strict=True):
                file.write_bytes(ctypes.string_at(pointer, sizes[pointer]))
            command = [QEMU, "-L", "/usr/aarch64-linux-gnu", self._host, self._library, name, *files]
            subprocess.run([str(part) for part in command], check=True, env={"OMP_NUM_THREADS": "2"})
            for file, pointer in zip(files, pointers, strict=True):
                ctypes.memmove(pointer, file.read_bytes(), sizes[pointer])

        setattr(self, name, call)
        return call


def kernel_of(name: str, factor: float) -> tuple[Task, str]:
    """A task of a suite at reduced size, and the kernel file for it."""
    suite, _, wanted = name.partition("/")
    row = next(row for row in suites.load(suite) if row.name == wanted)
    task = fit(Task.from_source(row.source, path=f"{wanted}.py"), factor).task
    design = design_task(task)[0]
    return task, LANGUAGE.lower(design.sketch, state=state_of(load_task(task)), shapes=design.shapes)


def executed(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "kernel"}
    exec(compile(source, "kernel.py", "exec"), names)
    return names


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Makes CXX a compiler for another machine: the same flags, but not this CPU's."""

    def use(program: str, extra: str) -> None:
        script = tmp_path / "compiler"
        script.write_text(
            f"#!{sys.executable}\nimport subprocess, sys\n"
            f"flags = [flag for flag in sys.argv[1:] if flag != '-march=native']\n"
            f"sys.exit(subprocess.run([{program!r}, *{extra.split()!r}, *flags]).returncode)\n"
        )
        script.chmod(0o755)
        monkeypatch.setenv("CXX", str(script))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    return use


@pytest.mark.parametrize(
    "name",
    [
        "core/gemm_square",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("core/softmax", "fused/conv_batch_norm_relu")),
    ],
)
def test_kernels_compile_for_wide_vectors(
    name: str, compiler: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("AVX-512 is a matter of x86-64")
    compiler("g++", "-march=x86-64-v4 -mprefer-vector-width=512")
    built: list[str] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda path: built.append(path) or Elsewhere(path, tmp_path, tmp_path))
    executed(kernel_of(name, 1.0)[1])
    listing = subprocess.run(["objdump", "-d", *built], capture_output=True, text=True, check=True).stdout
    assert "zmm" in listing


@pytest.mark.slow
@pytest.mark.skipif(
    not (ARM and QEMU), reason="needs aarch64-linux-gnu-g++ and qemu-aarch64 (apt: g++-aarch64-linux-gnu qemu-user)"
)
@pytest.mark.parametrize("name", NAMES)
def test_kernels_are_right_on_arm(
    name: str, compiler: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = tmp_path / "host"
    (tmp_path / "host.cpp").write_text(HOST)
    subprocess.run([str(ARM), "-O1", str(tmp_path / "host.cpp"), "-o", str(host), "-ldl"], check=True)
    compiler(str(ARM), "")
    monkeypatch.setattr(ctypes, "CDLL", lambda path: Elsewhere(path, host, tmp_path))
    task, source = kernel_of(name, 0.2)
    loaded = load_task(task)
    model, inputs = loaded.construct(0), loaded.draw(1)[0]
    kernel = executed(source)["ModelNew"]()
    kernel.load_state_dict(model.state_dict())
    with torch.no_grad():
        expected, got = model(*inputs), kernel(*inputs)
    half = expected.dtype in (torch.float16, torch.bfloat16)
    torch.testing.assert_close(got, expected, rtol=2e-2 if half else 1e-4, atol=2e-2 if half else 1e-5)
