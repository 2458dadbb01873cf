"""What systems around models compute, the second half of suite `modern`: quantisation, recommendation, sparsity, vision.

In: nothing. Out: tables of rows, one for each subject, which `modern.py` puts behind its own.
"""

from __future__ import annotations

from kernelwright.suites.row import Row

QUANTISED = (
    Row(
        "int8_weight_gemm",
        "quantised",
        "x @ (codes.float() * scale[:, None]).t()",
        {"x": "randn(M, K)", "codes": "randint(-127, 128, (N, K)).to(torch.int8)", "scale": "rand(N) * 0.02 + 0.001"},
        {"M": 64, "K": 1024, "N": 1536},
        dyn=({"M": 1}, {"M": 5}),
    ),
    Row(
        "int4_weight_gemm",
        "quantised",
        """
low = (packed & 15).to(torch.int32) - 8
high = (packed >> 4).to(torch.int32) - 8
codes = torch.stack([low, high], dim=-1).flatten(1).float()
weight = (codes.view(N, K // G, G) * scale[:, :, None]).view(N, K)
return x @ weight.t()
""",
        {
            "x": "randn(M, K)",
            "packed": "randint(0, 256, (N, K // 2)).to(torch.uint8)",
            "scale": "rand(N, K // G) * 0.1 + 0.01",
        },
        {"M": 32, "K": 1024, "N": 1024, "G": 64},
    ),
    Row(
        "int8_gemm",
        "quantised",
        "((a.int() @ b.int().t()).float() * row[:, None]) * column[None, :]",
        {
            "a": "randint(-127, 128, (M, K)).to(torch.int8)",
            "b": "randint(-127, 128, (N, K)).to(torch.int8)",
            "row": "rand(M) * 0.02 + 0.001",
            "column": "rand(N) * 0.02 + 0.001",
        },
        {"M": 96, "K": 512, "N": 384},
    ),
    Row(
        "quantise_rows_int8",
        "quantised",
        """
scale = x.abs().amax(dim=1, keepdim=True) / 127.0
return torch.clamp(torch.floor(x / scale + 0.5), -127, 127).to(torch.int8), scale
""",
        {"x": "randn(M, N)"},
        {"M": 1024, "N": 2048},
    ),
    Row(
        "dequantise_groups_add",
        "quantised",
        """
value = (codes.view(M, N // G, G).float() - zero[:, :, None]) * scale[:, :, None]
return value.view(M, N) + y
""",
        {
            "codes": "randint(0, 256, (M, N)).to(torch.uint8)",
            "zero": "rand(M, N // G) * 255.0",
            "scale": "rand(M, N // G) * 0.1 + 0.01",
            "y": "randn(M, N)",
        },
        {"M": 1024, "N": 2048, "G": 128},
    ),
    Row(
        "convert_bf16",
        "quantised",
        "(x * 0.5 + y).bfloat16()",
        {"x": "randn(M, N)", "y": "randn(M, N)"},
        {"M": 1024, "N": 2048},
    ),
    Row(
        "fp8_round_trip",
        "quantised",
        "(torch.clamp(x * s, -448.0, 448.0)).to(torch.float8_e4m3fn).float() / s",
        {"x": "randn(M, N)", "s": "rand(M, 1) * 8.0 + 1.0"},
        {"M": 512, "N": 1024},
    ),
    Row(
        "fake_quantise",
        "quantised",
        "(torch.clamp(torch.floor(x / s + 0.5), -128.0, 127.0)) * s",
        {"x": "randn(B, C, N)", "s": "rand(1, C, 1) * 0.03 + 0.01"},
        {"B": 16, "C": 64, "N": 2048},
    ),
)

RECOMMENDATION = (
    Row(
        "embedding_bag_sum",
        "recommendation",
        "self.table.weight[ids].sum(dim=1)",
        {"ids": "randint(0, V, (B, L))"},
        {"V": 50000, "E": 64, "B": 2048, "L": 20},
        "self.table = nn.Embedding(V, E)",
    ),
    Row(
        "embedding_bag_weighted_mean",
        "recommendation",
        "(self.table.weight[ids] * w.unsqueeze(-1)).sum(dim=1) / w.sum(dim=1, keepdim=True)",
        {"ids": "randint(0, V, (B, L))", "w": "rand(B, L) + 0.1"},
        {"V": 30000, "E": 64, "B": 1024, "L": 24},
        "self.table = nn.Embedding(V, E)",
    ),
    Row(
        "dot_interaction",
        "recommendation",
        """
pairs = torch.bmm(x, x.transpose(1, 2))
rows, columns = torch.tril_indices(T, T, offset=-1)
return pairs[:, rows, columns]
""",
        {"x": "randn(B, T, E)"},
        {"B": 1024, "T": 27, "E": 64},
    ),
    Row(
        "factorisation_machine",
        "recommendation",
        "0.5 * (x.sum(dim=1).square() - x.square().sum(dim=1)).sum(dim=1)",
        {"x": "randn(B, T, E)"},
        {"B": 8192, "T": 39, "E": 32},
    ),
    Row(
        "cross_network",
        "recommendation",
        """
y = x
for weight, bias in zip(self.weights, self.biases):
    y = x * (y @ weight.t() + bias) + y
return y
""",
        {"x": "randn(B, N)"},
        {"B": 512, "N": 416},
        """
self.weights = nn.ParameterList([nn.Parameter(torch.randn(N, N) * 0.05) for _ in range(3)])
self.biases = nn.ParameterList([nn.Parameter(torch.randn(N) * 0.1) for _ in range(3)])
""",
    ),
)

SPARSE = (
    Row(
        "sparse_2_4_gemm",
        "sparse",
        """
weight = torch.zeros(N, K // 4, 4)
weight = weight.scatter(2, places, values).view(N, K)
return x @ weight.t()
""",
        {
            "x": "randn(M, K)",
            "values": "randn(N, K // 4, 2)",
            "places": "rand(N, K // 4, 4).argsort(dim=-1)[..., :2].sort(dim=-1)[0]",
        },
        {"M": 64, "K": 1024, "N": 768},
    ),
    Row(
        "block_sparse_gemm",
        "sparse",
        """
tiles = x.view(M, K // T, T)[:, columns]
return torch.einsum("mnjt,njts->mns", tiles, blocks).flatten(1)
""",
        {"x": "randn(M, K)", "blocks": "randn(N, J, T, T)", "columns": "randint(0, K // T, (N, J))"},
        {"M": 64, "K": 1024, "N": 32, "J": 8, "T": 32},
    ),
    Row(
        "csr_spmm",
        "sparse",
        """
rows = torch.repeat_interleave(torch.arange(M), counts, output_size=Z)
return torch.zeros(M, N).index_add(0, rows, values[:, None] * x[columns])
""",
        {
            "x": "randn(K, N)",
            "values": "randn(Z)",
            "columns": "randint(0, K, (Z,))",
            "counts": "torch.full((M,), Z // M)",
        },
        {"M": 2048, "K": 2048, "N": 64, "Z": 32768},
    ),
    Row(
        "segment_mean",
        "sparse",
        """
total = torch.zeros(S, N).index_add(0, segment, x)
count = torch.zeros(S).index_add(0, segment, torch.ones(M))
return total / count.clamp(min=1.0)[:, None]
""",
        {"x": "randn(M, N)", "segment": "randint(0, S, (M,)).sort()[0]"},
        {"M": 65536, "N": 96, "S": 512},
    ),
)

VISION = (
    Row(
        "patch_embedding",
        "multimodal",
        "self.project(x).flatten(2).transpose(1, 2) + self.place",
        {"x": "randn(B, 3, H, H)"},
        {"B": 8, "H": 224, "T": 196, "E": 192},
        """
self.project = nn.Conv2d(3, E, 16, stride=16)
self.place = nn.Parameter(torch.randn(1, T, E))
""",
    ),
    Row(
        "pixel_shuffle_silu",
        "multimodal",
        "F.silu(F.pixel_shuffle(x, 2))",
        {"x": "randn(B, C, H, W)"},
        {"B": 4, "C": 64, "H": 64, "W": 64},
    ),
    Row(
        "box_overlap",
        "multimodal",
        """
low = torch.maximum(a[:, None, :2], b[None, :, :2])
high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
inter = (high - low).clamp(min=0.0).prod(dim=-1)
area_a = (a[:, 2:] - a[:, :2]).prod(dim=-1)
area_b = (b[:, 2:] - b[:, :2]).prod(dim=-1)
return inter / (area_a[:, None] + area_b[None, :] - inter)
""",
        {
            "a": "torch.cat([rand(M, 2), rand(M, 2) + 1.0], dim=1)",
            "b": "torch.cat([rand(N, 2), rand(N, 2) + 1.0], dim=1)",
        },
        {"M": 900, "N": 1100},
    ),
    Row(
        "depthwise_causal_conv",
        "state_space",
        "F.silu(self.conv(F.pad(x, (3, 0))))",
        {"x": "randn(B, C, L)"},
        {"B": 4, "C": 256, "L": 1024},
        "self.conv = nn.Conv1d(C, C, 4, groups=C)",
    ),
    Row(
        "selective_scan_decay",
        "state_space",
        """
total = torch.cumsum(decay, dim=1)
return torch.exp(total) * torch.cumsum(x * torch.exp(-total), dim=1)
""",
        {"x": "randn(B, L, N)", "decay": "-rand(B, L, N) * 0.02"},
        {"B": 4, "L": 256, "N": 512},
    ),
)
