"""What is computed twice from the same is computed once; 1 and 1.0 are not the same."""

import torch

from kernelwright.compiler.frontend.capture import exported


class Twice(torch.nn.Module):
    """Rotary positions make their tables for the query and for the key."""

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        angle = torch.arange(64)[:, None] / 10000 ** (torch.arange(0, 32, 2) / 32)
        first, second = x.chunk(2, -1)
        return torch.cat([first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()], -1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        whole = torch.arange(4)
        return self.turned(x), self.turned(y), whole * 1, whole * 1.0


def test_equal_tables_are_one() -> None:
    found = [str(n.target) for n in exported(Twice(), [torch.randn(3, 64, 32), torch.randn(3, 64, 32)]).graph.nodes]
    assert found.count("aten.cos.default") == 1
    assert found.count("aten.sin.default") == 1
    assert found.count("aten.cat.default") == 2
