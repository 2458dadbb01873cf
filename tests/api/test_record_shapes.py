"""`kernelwright.record_shapes()`: calls are counted by shape, files add up, and the program runs as before."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import kernelwright
from kernelwright.core.errors import ConfigError
from kernelwright.core.task.shape_counts import parse_shapes


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        made: torch.Tensor = self.first(x)
        return made if scale is None else made * scale


def recorded(path: Path) -> dict[tuple[str, tuple[tuple[int, ...], ...]], int]:
    return {(one.module.rpartition(".")[2], one.shapes): one.count for one in parse_shapes(path.read_text())}


def test_all_modules_are_counted_and_files_add_up(tmp_path: Path) -> None:
    path, model = tmp_path / "shapes.json", Pair()
    for _ in range(2):
        with kernelwright.record_shapes(path) as calls:
            for rows in (2, 2, 7):
                assert model(torch.randn(rows, 4)).shape == (rows, 3)
            model(torch.randn(2, 4), scale=torch.ones(3))
        assert sum(calls.values()) == 8
    assert recorded(path) == {
        ("Pair", ((2, 4),)): 4,
        ("Pair", ((7, 4),)): 2,
        ("Pair", ((2, 4), (3,))): 2,
        ("Linear", ((2, 4),)): 6,
        ("Linear", ((7, 4),)): 2,
    }
    model(torch.randn(9, 4))
    assert ("Pair", ((9, 4),)) not in recorded(path), "nothing is recorded after the block"


def test_one_module_alone_and_an_error_in_the_program(tmp_path: Path) -> None:
    path, model = tmp_path / "shapes.json", Pair()

    def program() -> None:
        with kernelwright.record_shapes(path, model.first):
            model(torch.randn(2, 4))
            model(torch.randn(2, 5))

    before = nn.Module.__call__
    with pytest.raises(RuntimeError):
        program()
    assert nn.Module.__call__ is before
    assert recorded(path) == {("Linear", ((2, 4),)): 1, ("Linear", ((2, 5),)): 1}


def test_another_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    path.write_text('{"mine": 1}')
    with pytest.raises(ConfigError), kernelwright.record_shapes(path):
        pass
    assert path.read_text() == '{"mine": 1}'
