# mypy: disable-error-code="misc, no-any-return, arg-type"
"""Networks of images, written here: residual, separable and depthwise convolutions, an encoder with a decoder, patches."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


class _Residual(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(after)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        plain = stride == 1 and before == after
        self.short = (
            nn.Identity() if plain else nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm(self.first(x)))
        return F.relu(self.norm2(self.second(y)) + self.short(x))


class ResNet(nn.Module):
    """ResNet-18: two residual blocks a stage."""

    def __init__(self, widths: tuple[int, ...] = (64, 128, 256, 512), classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, widths[0], 7, 2, 3, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        blocks: list[nn.Module] = []
        before = widths[0]
        for number, width in enumerate(widths):
            blocks += [_Residual(before, width, 1 if number == 0 else 2), _Residual(width, width, 1)]
            before = width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(before, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.head(self.blocks(self.stem(x)).mean((2, 3)))
        return y


class _Inverted(nn.Module):
    def __init__(self, before: int, after: int, stride: int, grow: int) -> None:
        super().__init__()
        inner = before * grow
        self.residual = stride == 1 and before == after
        self.body = nn.Sequential(
            nn.Conv2d(before, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU6(),
            nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU6(),
            nn.Conv2d(inner, after, 1, bias=False),
            nn.BatchNorm2d(after),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.body(x)
        return x + y if self.residual else y


class MobileNet(nn.Module):
    """MobileNetV2 at half depth: inverted residuals around depthwise convolutions."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        plan = ((16, 1, 1), (24, 2, 6), (24, 1, 6), (32, 2, 6), (32, 1, 6), (64, 2, 6), (64, 1, 6), (96, 1, 6), (160, 2, 6))
        layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
        before = 32
        for width, stride, grow in plan:
            layers.append(_Inverted(before, width, stride, grow))
            before = width
        layers += [nn.Conv2d(before, 640, 1, bias=False), nn.BatchNorm2d(640), nn.ReLU6()]
        self.body, self.head = nn.Sequential(*layers), nn.Linear(640, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.head(self.body(x).mean((2, 3)))
        return y


class _ChannelNorm(nn.LayerNorm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class _NextBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.grow, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.mix(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.shrink(F.gelu(self.grow(y)))).permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    """Depthwise 7 x 7, layer norm over channels, an inverted bottleneck."""

    def __init__(self, widths: tuple[int, ...] = (48, 96, 192, 384), depths: tuple[int, ...] = (1, 1, 3, 1)) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 4), _ChannelNorm(widths[0])]
        for number, (width, depth) in enumerate(zip(widths, depths, strict=True)):
            if number:
                layers += [_ChannelNorm(widths[number - 1]), nn.Conv2d(widths[number - 1], width, 2, 2)]
            layers += [_NextBlock(width) for _ in range(depth)]
        self.body, self.norm, self.head = nn.Sequential(*layers), nn.LayerNorm(widths[-1]), nn.Linear(widths[-1], 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.head(self.norm(self.body(x).mean((2, 3))))
        return y


def _twice(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1),
        nn.GroupNorm(8, after),
        nn.SiLU(),
        nn.Conv2d(after, after, 3, padding=1),
        nn.GroupNorm(8, after),
        nn.SiLU(),
    )


class UNet(nn.Module):
    """Three levels down and up with skips, group norm and SiLU as diffusion models have them."""

    def __init__(self, widths: tuple[int, ...] = (32, 64, 128)) -> None:
        super().__init__()
        self.down = nn.ModuleList(_twice(a, b) for a, b in zip((3, *widths[:-1]), widths, strict=True))
        self.up = nn.ModuleList(_twice(a + b, b) for a, b in zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.head = nn.Conv2d(widths[0], 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for number, level in enumerate(self.down):
            x = level(F.max_pool2d(x, 2) if number else x)
            kept.append(x)
        kept.pop()
        for level in self.up:
            x = level(torch.cat([F.interpolate(x, scale_factor=2.0, mode="nearest"), kept.pop()], 1))
        y: torch.Tensor = self.head(x)
        return y


class PatchTransformer(nn.Module):
    """A vision transformer of torch's own encoder layers."""

    def __init__(self, width: int = 192, depth: int = 4, patch: int = 16, side: int = 128) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.place = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 3, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.cut(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        y: torch.Tensor = self.head(self.norm(self.body(x))[:, 0])
        return y


def images(batch: int, side: int) -> tuple[Any, ...]:
    """Inputs of all of these."""
    return (torch.randn(batch, 3, side, side),)
