"""The vision rows of suite `shapes`: batches and pictures of any size."""

from __future__ import annotations

from kernelwright.suites.row import Row, at

PICTURES = at(B=(1, 3, 1, 2, 1), H=(8, 17, 64, 31, 97), W=(8, 16, 33, 61, 53))
BATCH = at(B=(1, 3, 8, 17, 31))

IMAGES = (
    Row("conv_3x3", "convolution", "self.conv(x)", {"x": "randn(B, 8, H, W)"}, {"B": 2, "H": 28, "W": 30},
        "self.conv = nn.Conv2d(8, 16, 3, padding=1)", PICTURES),
    Row("conv_3x3_stride_2_relu", "convolution", "F.relu(self.conv(x))", {"x": "randn(B, 8, H, W)"}, {"B": 2, "H": 32, "W": 28},
        "self.conv = nn.Conv2d(8, 16, 3, stride=2, padding=1)", PICTURES),
    Row("conv_1x1_bias", "convolution", "self.conv(x)", {"x": "randn(B, 16, H, W)"}, {"B": 2, "H": 20, "W": 24},
        "self.conv = nn.Conv2d(16, 32, 1)", PICTURES),
    Row("depthwise_conv", "convolution", "self.conv(x)", {"x": "randn(B, 16, H, W)"}, {"B": 2, "H": 24, "W": 24},
        "self.conv = nn.Conv2d(16, 16, 3, padding=1, groups=16)", PICTURES),
    Row("conv_of_a_batch", "convolution", "F.relu(self.conv(x))", {"x": "randn(B, 3, 32, 32)"}, {"B": 4},
        "self.conv = nn.Conv2d(3, 16, 3)", BATCH),
    Row("patch_embedding", "convolution", "self.conv(x).flatten(2).transpose(1, 2)", {"x": "randn(B, 3, 32, 32)"}, {"B": 4},
        "self.conv = nn.Conv2d(3, 48, 8, stride=8)", BATCH),
    Row("conv_1d", "convolution", "self.conv(x)", {"x": "randn(B, 8, T)"}, {"B": 2, "T": 100},
        "self.conv = nn.Conv1d(8, 16, 5, padding=2)", at(B=(1, 3, 2, 1), T=(1, 64, 257, 1021))),
    Row("causal_conv_silu", "convolution", "F.silu(self.conv(F.pad(x, (3, 0))))", {"x": "randn(B, 32, T)"}, {"B": 2, "T": 64},
        "self.conv = nn.Conv1d(32, 32, 4, groups=32)", at(B=(1, 3, 2, 1), T=(1, 31, 128, 509))),
    Row("max_pool", "pooling", "F.max_pool2d(x, 2)", {"x": "randn(B, 8, H, W)"}, {"B": 2, "H": 28, "W": 30}, "", PICTURES),
    Row("average_pool", "pooling", "F.avg_pool2d(x, 3, stride=2, padding=1)", {"x": "randn(B, 8, H, W)"}, {"B": 2, "H": 28, "W": 30},
        "", PICTURES),
    Row("global_average_pool", "pooling", "x.mean((2, 3))", {"x": "randn(B, 32, H, W)"}, {"B": 4, "H": 14, "W": 15}, "", PICTURES),
    Row("batch_norm_relu", "norm", "F.relu(self.norm(x))", {"x": "randn(B, 16, H, W)"}, {"B": 2, "H": 20, "W": 24},
        "self.norm = nn.BatchNorm2d(16)", PICTURES),
    Row("group_norm_silu", "norm", "F.silu(self.norm(x))", {"x": "randn(B, 16, H, W)"}, {"B": 2, "H": 20, "W": 24},
        "self.norm = nn.GroupNorm(4, 16)", PICTURES),
    Row("channel_attention", "vision", "x * torch.sigmoid(self.up(F.relu(self.down(x.mean((2, 3))))))[:, :, None, None]",
        {"x": "randn(B, 16, H, W)"}, {"B": 2, "H": 20, "W": 24}, "self.down = nn.Linear(16, 4)\nself.up = nn.Linear(4, 16)", PICTURES),
    Row("pixel_shuffle", "vision", "F.pixel_shuffle(x, 2)", {"x": "randn(B, 16, H, W)"}, {"B": 2, "H": 15, "W": 16}, "", PICTURES),
    Row("space_to_depth", "vision", "F.pixel_unshuffle(x, 2)", {"x": "randn(B, 8, 2 * H, 2 * W)"}, {"B": 2, "H": 15, "W": 16}, "",
        PICTURES),
    Row("normalise_pictures", "vision", "(x - self.mean[:, None, None]) / self.deviation[:, None, None]", {"x": "rand(B, 3, H, W)"},
        {"B": 2, "H": 32, "W": 30}, "self.mean = nn.Parameter(torch.rand(3))\nself.deviation = nn.Parameter(torch.rand(3) + 0.5)",
        PICTURES),
    Row("residual_block", "vision", "F.relu(self.norm(self.conv(x)) + x)", {"x": "randn(B, 8, H, W)"}, {"B": 2, "H": 20, "W": 20},
        "self.conv = nn.Conv2d(8, 8, 3, padding=1)\nself.norm = nn.BatchNorm2d(8)", PICTURES),
    Row("nearest_upsample", "vision", "x.repeat_interleave(2, -1).repeat_interleave(2, -2)", {"x": "randn(B, 8, H, W)"},
        {"B": 2, "H": 20, "W": 24}, "", PICTURES),
    Row("intersection_over_union", "vision", """
low, high = torch.maximum(a[:, None, :2], b[None, :, :2]), torch.minimum(a[:, None, 2:], b[None, :, 2:])
shared = (high - low).clamp_min(0).prod(-1)
area = lambda box: (box[:, 2:] - box[:, :2]).clamp_min(0).prod(-1)
return shared / (area(a)[:, None] + area(b)[None] - shared + 1e-6)
""", {"a": "rand(M, 4)", "b": "rand(N, 4)"}, {"M": 60, "N": 40}, "", at(M=(1, 7, 100, 211), N=(3, 1, 64, 97))),
)  # fmt: skip
