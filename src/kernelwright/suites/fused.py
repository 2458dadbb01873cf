"""Suite `fused`: chains of a matrix product or convolution and two to six operations behind it, as one compact table.

A line of `TABLE` is a base and the chains behind it, each a list of steps; `step` says what one adds to the constructor and to
forward, for vectors `[B, C]`, tokens `[B, S, C]`, signals `[B, C, L]`, images `[B, C, H, W]` and volumes `[B, C, D, H, W]`. A
task's name is its base and its steps, so the table stays the only place where a chain is written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelwright.suites.row import Row


@dataclass(frozen=True)
class Base:
    """The first operation of a chain: its layer, the shape of its input, and the rank of what it gives."""

    family: str
    layer: str
    shape: str
    rank: int
    sizes: Mapping[str, int]
    dyn: tuple[Mapping[str, int], ...] = ()


@dataclass(frozen=True)
class Step:
    """One operation behind the base: lines of forward, layers it needs, further inputs."""

    forward: str
    layers: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)


BASES: dict[str, Base] = {
    "linear": Base("gemm", "nn.Linear(K, C)", "B, K", 2, {"B": 256, "K": 1024, "C": 768}),
    "wide": Base("gemm", "nn.Linear(K, C)", "B, K", 2, {"B": 64, "K": 512, "C": 6144}),
    "deep": Base("gemm", "nn.Linear(K, C, bias=False)", "B, K", 2, {"B": 128, "K": 6144, "C": 320}, ({"B": 1}, {"B": 37})),
    "tokens": Base("gemm", "nn.Linear(K, C)", "B, S, K", 3, {"B": 8, "S": 96, "K": 384, "C": 512}),
    "conv1d": Base("conv", "nn.Conv1d(K, C, 5, padding=2)", "B, K, L", 3, {"B": 8, "K": 32, "C": 64, "L": 1024}),
    "conv": Base("conv", "nn.Conv2d(K, C, 3, padding=1)", "B, K, H, W", 4, {"B": 6, "K": 16, "C": 48, "H": 48, "W": 48}),
    "valid": Base("conv", "nn.Conv2d(K, C, 3)", "B, K, H, W", 4, {"B": 8, "K": 8, "C": 32, "H": 66, "W": 66}),
    "stride": Base(
        "conv", "nn.Conv2d(K, C, 5, stride=2, padding=2)", "B, K, H, W", 4, {"B": 8, "K": 12, "C": 48, "H": 80, "W": 80}
    ),
    "point": Base("conv", "nn.Conv2d(K, C, 1, bias=False)", "B, K, H, W", 4, {"B": 6, "K": 64, "C": 96, "H": 40, "W": 40}),
    "depth": Base("conv", "nn.Conv2d(C, C, 3, groups=C, padding=1)", "B, C, H, W", 4, {"B": 8, "C": 64, "H": 56, "W": 56}),
    "conv3d": Base("conv", "nn.Conv3d(K, C, 3)", "B, K, D, H, W", 5, {"B": 2, "K": 4, "C": 24, "D": 14, "H": 30, "W": 30}),
    "deconv": Base(
        "deconv", "nn.ConvTranspose2d(K, C, 3, padding=1)", "B, K, H, W", 4, {"B": 4, "K": 24, "C": 32, "H": 40, "W": 40}
    ),
    "up": Base(
        "deconv",
        "nn.ConvTranspose2d(K, C, 4, stride=2, padding=1)",
        "B, K, H, W",
        4,
        {"B": 4, "K": 24, "C": 32, "H": 24, "W": 24},
    ),
    "up3d": Base(
        "deconv",
        "nn.ConvTranspose3d(K, C, 3, stride=2, padding=1)",
        "B, K, D, H, W",
        5,
        {"B": 2, "K": 12, "C": 16, "D": 8, "H": 16, "W": 16},
    ),
}

SPATIAL = {3: "1", 4: "1, 1", 5: "1, 1, 1"}
"""Trailing axes of a per-channel parameter behind a base of this rank."""


def channels(rank: int, tokens: bool) -> str:
    """Shape of a per-channel parameter: channels are the last axis of vectors and tokens, the second of signals and images."""
    return "C" if rank == 2 or tokens else f"C, {SPATIAL[rank]}"


def step(name: str, rank: int, tokens: bool) -> Step:
    """What a step means behind a tensor of this rank. Raises KeyError for a name that no rank has."""
    last = rank == 2 or tokens
    axis = -1 if last else 1
    each = channels(rank, tokens)
    dims = rank - 2
    spatial = f"dim={tuple(range(2, rank))}" if dims > 1 else "dim=2"
    table: dict[str, Step] = {
        "relu": Step("x = torch.relu(x)"),
        "leaky": Step("x = F.leaky_relu(x, 0.1)"),
        "gelu": Step("x = F.gelu(x)"),
        "silu": Step("x = x * torch.sigmoid(x)"),
        "tanh": Step("x = torch.tanh(x)"),
        "sigmoid": Step("x = torch.sigmoid(x)"),
        "mish": Step("x = F.mish(x)"),
        "softplus": Step("x = F.softplus(x)"),
        "elu": Step("x = F.elu(x)"),
        "hardswish": Step("x = F.hardswish(x)"),
        "hardsigmoid": Step("x = F.hardsigmoid(x)"),
        "hardtanh": Step("x = F.hardtanh(x, -0.6, 0.8)"),
        "clamp": Step("x = torch.clamp(x, min=-0.4, max=0.7)"),
        "scale": Step("x = x * 1.75"),
        "shift": Step("x = x - 0.35"),
        "divide": Step("x = x / 3.0"),
        "square": Step("x = x * x"),
        "abs": Step("x = torch.abs(x)"),
        "floor_at": Step("x = torch.maximum(x, torch.tensor(-0.2))"),
        "dropout": Step("x = self.dropout(x)", "self.dropout = nn.Dropout(0.25)"),
        "bias": Step("x = x + self.bias", f"self.bias = nn.Parameter(torch.randn({each}) * 0.5)"),
        "gain": Step("x = x * self.gain", f"self.gain = nn.Parameter(torch.randn({each}))"),
        "self_add": Step("x = x + torch.sigmoid(x)"),
        "gate": Step("x = x * torch.sigmoid(self.gate) + x", f"self.gate = nn.Parameter(torch.randn({each}))"),
        "batch_norm": Step("x = self.batch_norm(x)", f"self.batch_norm = nn.BatchNorm{max(dims, 1)}d(C)"),
        "softmax": Step(f"x = torch.softmax(x, dim={axis})"),
        "log_softmax": Step(f"x = torch.log_softmax(x, dim={axis})"),
        "logsumexp": Step(f"x = torch.logsumexp(x, dim={axis}, keepdim=True)"),
        "sum": Step(f"x = x.sum(dim={axis}, keepdim=True)"),
        "mean": Step(f"x = x.mean(dim={axis}, keepdim=True)"),
        "max": Step(f"x = x.amax(dim={axis}, keepdim=True)"),
        "min": Step(f"x = x.amin(dim={axis}, keepdim=True)"),
        "l2_norm": Step(f"x = F.normalize(x, dim={axis})"),
        "centre": Step(f"x = x - x.mean(dim={axis}, keepdim=True)"),
        "total": Step(f"x = x.sum(dim={tuple(range(1, rank))})" if rank > 2 else "x = x.sum(dim=1)"),
    }
    if last:
        table["layer_norm"] = Step("x = self.layer_norm(x)", "self.layer_norm = nn.LayerNorm(C)")
        table["add"] = Step("x = x + y", inputs={"y": f"randn({'B, S, C' if rank == 3 else 'B, C'})"})
        table["residual"] = Step("x = x + self.skip(inputs)", "self.skip = nn.Linear(K, C, bias=False)")
        table["max_pool"] = Step("x = F.max_pool1d(x.unsqueeze(1), 4).squeeze(1)")
        table["avg_pool"] = Step("x = F.avg_pool1d(x.unsqueeze(1), 4).squeeze(1)")
        table["project"] = Step("x = self.project(x)", "self.project = nn.Linear(C, 256)")
    else:
        table["instance_norm"] = Step("x = self.instance_norm(x)", f"self.instance_norm = nn.InstanceNorm{dims}d(C)")
        table["max_pool"] = Step(f"x = F.max_pool{dims}d(x, 2)")
        table["avg_pool"] = Step(f"x = F.avg_pool{dims}d(x, 2)")
        table["global_mean"] = Step(f"x = x.mean({spatial})")
        table["global_max"] = Step(f"x = x.amax({spatial})")
        table["spatial_softmax"] = Step("x = torch.softmax(x.flatten(2), dim=-1).view_as(x)")
        table["pointwise_conv"] = Step("x = self.mix(x)", f"self.mix = nn.Conv{dims}d(C, 32, 1)")
    if not tokens:
        table["group_norm"] = Step("x = self.group_norm(x)", "self.group_norm = nn.GroupNorm(8, C)")
    return table[name]


TABLE = """
linear: bias relu | gelu scale | silu scale bias | bias relu divide | shift mish | scale leaky gelu
linear: sigmoid sum logsumexp | batch_norm gelu relu | batch_norm bias divide silu | group_norm hardtanh
linear: group_norm leaky sum | max_pool sum scale | avg_pool gelu scale max | dropout softmax
linear: relu divide dropout layer_norm | scale gelu add layer_norm | residual relu l2_norm | sigmoid project logsumexp
linear: relu project softmax | bias tanh gate clamp | shift relu centre gelu max | hardswish add sum
linear: scale batch_norm | clamp softplus log_softmax | mean gelu | elu gain tanh
wide: softmax | gelu softmax | scale self_add clamp logsumexp mish | centre gelu max | silu divide clamp tanh clamp
wide: log_softmax | sum max mean logsumexp | group_norm silu gain silu | bias hardtanh mish layer_norm | dropout mean
deep: relu | bias gelu | batch_norm scale softmax | scale hardtanh gelu | add relu | layer_norm silu
deep: shift divide sigmoid l2_norm | group_norm min bias
tokens: gelu | silu scale | add layer_norm | layer_norm gelu project | softmax | bias relu add
tokens: dropout add layer_norm relu | tanh gate sum
conv1d: relu | batch_norm gelu | gelu max_pool | bias tanh global_mean | instance_norm leaky avg_pool | softmax scale
conv: relu bias | shift hardswish max_pool mish | shift tanh shift avg_pool | batch_norm relu | batch_norm scale
conv: group_norm tanh hardswish self_add logsumexp | gain leaky gelu | instance_norm divide | min tanh tanh
conv: mish mish | scale min | gelu global_mean softmax | hardswish relu max_pool | relu hardswish
conv: avg_pool sigmoid total | divide leaky | bias scale min softplus | group_norm scale max_pool clamp
valid: group_norm mean | tanh scale bias max_pool | softmax max_pool max_pool | instance_norm gain relu
valid: floor_at bias scale
stride: batch_norm relu max_pool | silu gain | hardsigmoid gate global_max | leaky avg_pool group_norm
point: batch_norm silu | relu gain global_mean | l2_norm gelu | bias softplus sum
depth: batch_norm relu | hardswish pointwise_conv relu | gelu gain bias | batch_norm leaky pointwise_conv clamp
conv3d: min spatial_softmax | relu leaky gelu sigmoid bias | group_norm total | divide max_pool global_mean
conv3d: gain clamp max | softmax max_pool | mish tanh
deconv: bias tanh | softmax bias scale sigmoid | min sum gelu bias | global_mean bias logsumexp | gelu group_norm
deconv: bias clamp scale clamp divide
up: batch_norm tanh max_pool group_norm | mish bias hardtanh scale | scale max_pool hardtanh global_mean tanh
up: shift tanh
up3d: batch_norm avg_pool | softmax sigmoid | sum gelu | scale tanh global_max | leaky gain leaky max_pool
up3d: logsumexp hardswish shift elu
"""


def row(base_name: str, steps: list[str]) -> Row:
    """One chain as a row; a second use of the same layer-owning step would share its weights, so the table has none."""
    base = BASES[base_name]
    tokens = base_name == "tokens"
    rank = base.rank
    layers = [f"self.base = {base.layer}"]
    forward = ["inputs = x"] if "residual" in steps else []
    forward.append("x = self.base(x)")
    inputs = {"x": f"randn({base.shape})"}
    for name in steps:
        one = step(name, rank, tokens)
        layers += [one.layers] if one.layers else []
        forward.append(one.forward)
        inputs.update(one.inputs)
        if name in ("global_mean", "global_max", "total"):
            rank = 2
    forward.append("return x")
    return Row(
        "_".join([base_name, *steps]),
        f"{base.family}_chain",
        "\n".join(forward),
        inputs,
        base.sizes,
        "\n".join(layers),
        base.dyn,
    )


def rows() -> tuple[Row, ...]:
    """The whole table, in its order."""
    made = []
    for line in TABLE.strip().split("\n"):
        base, chains = line.split(":")
        made += [row(base, chain.split()) for chain in chains.split("|")]
    return tuple(made)


ROWS: tuple[Row, ...] = rows()
