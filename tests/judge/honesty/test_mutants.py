"""New cheats by rule: files that say what they are, and a share with its interval."""

from __future__ import annotations

import ast
from pathlib import Path

from kernelwright.judge.honesty.gallery import locate, read
from kernelwright.judge.honesty.mutants import Share, mutants


def test_mutants_are_kernels_of_their_own_and_the_same_under_one_seed(tmp_path: Path) -> None:
    made = list(mutants(read(locate()), 20, tmp_path, seed=3))
    assert len({one.path.name for one in made}) == 20
    assert [one.path.name for one in mutants(read(locate()), 20, tmp_path, seed=3)] == [one.path.name for one in made]
    for one in made:
        names = [node.name for node in ast.parse(one.path.read_text()).body if isinstance(node, ast.ClassDef)]
        assert names[-1] == "ModelNew"
        assert names.count("ModelNew") == 2


def test_a_share_of_none_is_not_known_to_be_nothing() -> None:
    low, high = Share(100, 0).interval
    assert low == 0.0
    assert 0.03 < high < 0.04
