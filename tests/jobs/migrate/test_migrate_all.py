"""All kernels of a folder: what is found by reading, and that a run goes on where it was left."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.core.errors import CannotLift, KernelFileError
from kernelwright.jobs.migrate import everything

MODULE = """
import triton, torch

@triton.jit
def _scale(x, out): ...

def scale(x):
    out = torch.empty_like(x)
    _scale[(1,)](x, out)
    return out

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        _scale[(1,)](x, x)

def helper(x):
    return x

def test_scale():
    _scale[(1,)](1, 2)
"""
PROGRAM = "__global__ void k(float* x) { x[0] = 1; }\nvoid run(float* x) { k<<<1, 1>>>(x); }\nint main() { k<<<1, 1>>>(0); }\n"


def test_what_launches_kernels_is_found_by_reading(tmp_path: Path) -> None:
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops" / "scale.py").write_text(MODULE)
    (tmp_path / "fill.cu").write_text(PROGRAM)
    (tmp_path / "broken.py").write_text("def (")
    titles = [c.title for c in everything.candidates(str(tmp_path))]
    assert titles == ["fill.cu:run", "ops/scale.py:scale", "ops/scale.py:Scale"]
    with pytest.raises(KernelFileError, match="no such file, folder or installed package"):
        everything.candidates(str(tmp_path / "nothing"))


def test_a_run_goes_on_where_it_was_left(tmp_path: Path) -> None:
    asked: list[tuple[str, str | None]] = []
    found = [everything.Candidate(name, name) for name in ("a.py:one", "a.py:two", "a.py:three")]

    def one(candidate: everything.Candidate, inputs: str | None, folder: Path) -> everything.Row:
        asked.append((candidate.title, inputs))
        if candidate.title.endswith("two"):
            raise CannotLift("a sort of its own", path="a.py", line=7)
        return everything.Row(candidate.title, "correct", "right in 30 trials")

    inputs = {"one": "f32[4]", "a.py:three": "f32[8]"}
    everything.migrate_all(found[:2], inputs, tmp_path, one, lambda row: None)
    rows = everything.migrate_all(found, inputs, tmp_path, one, lambda row: None)
    assert asked == [("a.py:one", "f32[4]"), ("a.py:two", None), ("a.py:three", "f32[8]")]
    assert [row.status for row in rows] == ["correct", "refused", "correct"]
    text = (tmp_path / everything.TABLE).read_text()
    assert text.startswith("2 of 3 kernels migrated and correct.")
    assert "| a.py:two | refused | a.py:7: a sort of its own |" in text
