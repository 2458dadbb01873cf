"""Whose code lies at an address: known by ranges, content and symbols, not by what a process's maps say today."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

import numpy
import pytest
import torch

from kernelwright.workers.code_owners import CodeOwners, Region, exports_blas, regions

TORCH = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
readable = pytest.mark.skipif(not os.access("/proc/self/mem", os.R_OK), reason="this machine does not show a process's memory")


@pytest.fixture(scope="module")
def owners() -> CodeOwners:
    torch.ones(2)
    return CodeOwners(os.getpid())


def address(name: str) -> int:
    found = ctypes.cast(getattr(ctypes.CDLL(str(TORCH)), name), ctypes.c_void_p).value
    assert found is not None
    return found


@readable
def test_a_function_of_the_blas_in_libtorch_is_told_from_the_rest(owners: CodeOwners) -> None:
    now = regions(os.getpid())
    assert owners.label(os.getpid(), address("sgemm_") + 4, now).endswith("libtorch_cpu.so!mkl")


@readable
def test_copied_code_is_still_the_library_s(owners: CodeOwners) -> None:
    start, count = address("sgemm_"), 1024
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(ctypes.string_at(start, count))
    here = ctypes.addressof(ctypes.c_char.from_buffer(page))
    now = regions(os.getpid())
    labels = [owners.label(os.getpid(), here + step, now) for step in range(64, 900, 101)]
    assert "libtorch" not in labels[0], "one window proves nothing"
    assert labels[-1].startswith(str(TORCH.resolve())) or labels[-1].partition("!")[0].endswith("libtorch_cpu.so")


def test_a_blas_is_known_by_what_it_exports() -> None:
    (blas,) = (Path(numpy.__file__).parents[1] / "numpy.libs").glob("*openblas*")
    loaded = ctypes.CDLL(str(blas))
    assert loaded is not None
    region = next(one for one in regions(os.getpid()) if one.path == str(blas.resolve()) or one.path == str(blas))
    assert exports_blas(os.getpid(), region)
    own = next(one for one in regions(os.getpid()) if "python" in one.path or "libc" in one.path)
    assert not exports_blas(os.getpid(), own)
    assert not exports_blas(os.getpid(), Region(0, 1, 0, "/no/such/file"))
