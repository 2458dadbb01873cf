# mypy: disable-error-code="misc, no-any-return, arg-type"
"""Networks of sequences and tables, written here: decoding with a cache, routed experts, a selective state, recurrence, embeddings."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


class _RootNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class _DecoderLayer(nn.Module):
    """Grouped queries, rotary positions, a cache that is changed in place, gated SiLU."""

    def __init__(self, width: int, heads: int, shared: int, batch: int, length: int) -> None:
        super().__init__()
        self.heads, self.shared, self.depth = heads, shared, width // heads
        self.norm, self.norm2 = _RootNorm(width), _RootNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * shared * self.depth, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)
        self.register_buffer("keys", torch.randn(batch, shared, length, self.depth) * 0.5)
        self.register_buffer("values", torch.randn(batch, shared, length, self.depth) * 0.5)

    def forward(self, x: torch.Tensor, place: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        batch, steps, width = x.shape
        y = self.norm(x)
        q = self.q(y).view(batch, steps, self.heads, self.depth).transpose(1, 2)
        k, v = self.kv(y).view(batch, steps, 2, self.shared, self.depth).permute(2, 0, 3, 1, 4)
        q, k = _rotated(q, cos, sin), _rotated(k, cos, sin)
        self.keys[:, :, place] = k
        self.values[:, :, place] = v
        known = torch.arange(self.keys.shape[2]) <= place[:, None]
        group = self.heads // self.shared
        keys, values = (t.repeat_interleave(group, 1) for t in (self.keys, self.values))
        seen = F.scaled_dot_product_attention(q, keys, values, attn_mask=known)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, steps, width))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def _rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


class Decoder(nn.Module):
    """One step of a Llama-like decoder: a token a call, against a cache of a fixed length."""

    def __init__(self, batch: int, width: int = 512, depth: int = 4, length: int = 256, words: int = 4096) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layers = nn.ModuleList(_DecoderLayer(width, 8, 2, batch, length) for _ in range(depth))
        self.norm, self.head = _RootNorm(width), nn.Linear(width, words, bias=False)
        self.depth = width // 8

    def forward(self, tokens: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        angle = place[:, None] / 10000 ** (torch.arange(0, self.depth, 2) / self.depth)
        cos, sin = (torch.cat([t, t], -1) for t in (angle.cos(), angle.sin()))
        x = self.words(tokens)
        for layer in self.layers:
            x = layer(x, place, cos, sin)
        y: torch.Tensor = self.head(self.norm(x))
        return y


class Experts(nn.Module):
    """Two layers of eight experts, each of which computes its own tokens: routing by `where`, as reference implementations write it."""

    def __init__(self, width: int = 256, experts: int = 8, depth: int = 2) -> None:
        super().__init__()
        self.routes = nn.ModuleList(nn.Linear(width, experts, bias=False) for _ in range(depth))
        self.layers = nn.ModuleList(
            nn.ModuleList(
                nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(experts)
            )
            for _ in range(depth)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        for route, experts, norm in zip(self.routes, self.layers, self.norms, strict=True):
            y = norm(x)
            weights, chosen = torch.topk(torch.softmax(route(y), -1), 2)
            weights = weights / weights.sum(-1, keepdim=True)
            result = torch.zeros_like(y)
            for number, expert in enumerate(experts):
                rows, slots = torch.where(chosen == number)
                result.index_add_(0, rows, expert(y[rows]) * weights[rows, slots, None])
            x = x + result
        return x.view(shape)


class SelectiveState(nn.Module):
    """Mamba-like: a gated causal convolution and a state whose decay depends on the input, in steps of one."""

    def __init__(self, width: int = 128, state: int = 8, depth: int = 2) -> None:
        super().__init__()
        inner = 2 * width
        self.into = nn.ModuleList(nn.Linear(width, 2 * inner, bias=False) for _ in range(depth))
        self.mix = nn.ModuleList(nn.Conv1d(inner, inner, 4, padding=3, groups=inner) for _ in range(depth))
        self.gates = nn.ModuleList(nn.Linear(inner, inner + 2 * state) for _ in range(depth))
        self.decay = nn.ParameterList(torch.log(torch.arange(1.0, state + 1).repeat(inner, 1)) for _ in range(depth))
        self.out = nn.ModuleList(nn.Linear(inner, width, bias=False) for _ in range(depth))
        self.norms = nn.ModuleList(_RootNorm(width) for _ in range(depth))
        self.inner, self.state = inner, state

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = x.shape[1]
        layers = zip(self.into, self.mix, self.gates, self.decay, self.out, self.norms, strict=True)
        for into, mix, gates, decay, out, norm in layers:
            y, gate = into(norm(x)).chunk(2, -1)
            y = F.silu(mix(y.transpose(1, 2))[..., :steps].transpose(1, 2))
            step, b, c = gates(y).split([self.inner, self.state, self.state], -1)
            step = F.softplus(step)[..., None]
            keep, add = torch.exp(-step * decay.exp()), step * b[:, :, None] * y[..., None]
            held = torch.zeros_like(add[:, 0])
            seen = []
            for t in range(steps):
                held = keep[:, t] * held + add[:, t]
                seen.append((held * c[:, t, None]).sum(-1))
            x = x + out(torch.stack(seen, 1) * F.silu(gate))
        return x


class Recurrent(nn.Module):
    """Words, two layers of LSTM, scores."""

    def __init__(self, width: int = 128, words: int = 2000) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.body = nn.LSTM(width, width, 2, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.head(self.body(self.words(tokens))[0])
        return y


class Recommender(nn.Module):
    """DLRM: bags of embeddings, a perceptron of the dense features, products of all pairs, a perceptron on top."""

    def __init__(self, tables: int = 16, rows: int = 20000, width: int = 64) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.low = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(pairs + width, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1))
        self.register_buffer("below", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        x = self.low(dense)
        all_of = torch.stack([x, *(bag(sparse[:, k]) for k, bag in enumerate(self.bags))], 1)
        products = torch.bmm(all_of, all_of.transpose(1, 2))[:, self.below[0], self.below[1]]
        return torch.sigmoid(self.top(torch.cat([x, products], 1)))


def tokens(batch: int, length: int, words: int) -> Any:
    """Random words."""
    return torch.randint(0, words, (batch, length))
