"""What the compilers' results say: AMD's assembly, and files that are no cubins."""

from __future__ import annotations

import pytest

from kernelwright.compiler.offdevice import amdgcn, cubin


def test_amd_metadata_is_read() -> None:
    text = "    .vgpr_count:     97\n    .vgpr_spill_count: 3\n    .sgpr_spill_count: 1\n"
    assert amdgcn.usage(text) == {"registers": 97, "spills": 16}


def test_without_metadata_nothing_is_claimed() -> None:
    assert amdgcn.usage("; nothing")["registers"] is None


def test_anything_else_is_no_cubin() -> None:
    with pytest.raises(ValueError, match="not a cubin"):
        cubin.usage(b"#!/bin/sh\n" + bytes(64))
