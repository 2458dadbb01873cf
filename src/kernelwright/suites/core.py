"""Suite `core`: the single operators that this field measures, each as one row, with sizes for a CPU.

Matrix products of all shapes and layouts, activations, norms, pooling, reductions, arg-reductions, convolutions of every kind,
scans, losses, attention and data movement. `dyn` gives a part of them several shapes.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.suites.row import Row

Sizes = Mapping[str, int]


def gemm(name: str, forward: str, a: str, b: str, dyn: tuple[Sizes, ...] = (), **sizes: int) -> Row:
    return Row(name, "gemm", forward, {"a": f"randn({a})", "b": f"randn({b})"}, sizes, dyn=dyn)


def pointwise(name: str, forward: str, dyn: tuple[Sizes, ...] = (), rows: int = 1024, columns: int = 4096) -> Row:
    return matrix(name, "activation", forward, dyn, rows, columns)


def matrix(name: str, family: str, forward: str, dyn: tuple[Sizes, ...] = (), rows: int = 1024, columns: int = 4096) -> Row:
    return Row(name, family, forward, {"x": "randn(M, N)"}, {"M": rows, "N": columns}, dyn=dyn)


def image(name: str, family: str, forward: str, layers: str = "", dyn: tuple[Sizes, ...] = (), **sizes: int) -> Row:
    return Row(name, family, forward, {"x": "randn(B, C, H, W)"}, sizes, layers, dyn)


def volume(name: str, family: str, forward: str, layers: str = "", **sizes: int) -> Row:
    return Row(name, family, forward, {"x": "randn(B, C, D, H, W)"}, sizes, layers)


def signal(name: str, family: str, forward: str, layers: str = "", dyn: tuple[Sizes, ...] = (), **sizes: int) -> Row:
    return Row(name, family, forward, {"x": "randn(B, C, L)"}, sizes, layers, dyn)


def cube(name: str, family: str, forward: str, dyn: tuple[Sizes, ...] = (), b: int = 16, m: int = 512, n: int = 512) -> Row:
    return Row(name, family, forward, {"x": "randn(B, M, N)"}, {"B": b, "M": m, "N": n}, dyn=dyn)


def loss(name: str, forward: str, **inputs: str) -> Row:
    return Row(name, "loss", forward, inputs, {"B": 1024, "N": 2048})


GEMM = (
    gemm("gemm_square", "a @ b", "N, N", "N, N", N=1024),
    gemm("gemm_rectangular", "a @ b", "M, K", "K, N", M=384, K=2048, N=768, dyn=({"M": 1}, {"M": 17}, {"M": 512})),
    gemm("gemm_long_k", "a @ b", "M, K", "K, N", M=96, K=49152, N=80),
    gemm("gemm_short_k", "a @ b", "M, K", "K, N", M=2048, K=24, N=1536),
    gemm("gemm_tall_skinny", "a @ b", "M, K", "K, N", M=24576, K=192, N=20),
    gemm("gemm_odd", "a @ b", "M, K", "K, N", M=491, K=613, N=739, dyn=({"M": 127, "N": 131}, {"M": 3, "N": 1})),
    gemm("gemm_a_transposed", "a.t() @ b", "K, M", "K, N", M=768, K=896, N=640),
    gemm("gemm_b_transposed", "a @ b.t()", "M, K", "N, K", M=640, K=768, N=896),
    gemm("gemm_both_transposed", "a.t() @ b.t()", "K, M", "N, K", M=576, K=704, N=832),
    gemm("gemm_batched", "torch.bmm(a, b)", "B, M, K", "B, K, N", B=48, M=96, K=192, N=128, dyn=({"B": 7}, {"B": 1})),
    gemm("gemm_3d_by_2d", "a @ b", "B, M, K", "K, N", B=12, M=160, K=384, N=448),
    gemm("gemm_4d_by_2d", 'torch.einsum("bijk,kn->bijn", a, b)', "B, H, M, K", "K, N", B=4, H=24, M=48, K=160, N=224),
    gemm("gemv", "a @ b", "M, K", "K", M=2048, K=6144, dyn=({"M": 511},)),
    gemm("outer_product", "torch.outer(a, b)", "M", "N", M=1792, N=2304),
    gemm("diagonal_times_matrix", "torch.diag(a) @ b", "M", "M, N", M=1024, N=1152),
    gemm("gemm_symmetric", "(a + a.t()) @ (b + b.t())", "N, N", "N, N", N=768),
    gemm("gemm_upper_triangular", "torch.triu(torch.triu(a) @ torch.triu(b))", "N, N", "N, N", N=832),
    gemm("gemm_lower_triangular", "torch.tril(torch.tril(a) @ torch.tril(b))", "N, N", "N, N", N=832),
    gemm("batched_dot", "torch.linalg.vecdot(a, b)", "M, K", "M, K", M=2048, K=1536),
    gemm("gemm_bf16", "a.bfloat16() @ b.bfloat16()", "M, K", "K, N", M=256, K=512, N=384),
    Row("matrix_times_scalar", "gemm", "a * s", {"a": "randn(M, N)", "s": "3.75"}, {"M": 2048, "N": 2560}),
    Row(
        "linear",
        "gemm",
        "self.linear(x)",
        {"x": "randn(M, K)"},
        {"M": 256, "K": 1536, "N": 1024},
        "self.linear = nn.Linear(K, N)",
    ),
)

ACTIVATIONS = (
    pointwise("relu", "torch.relu(x)", dyn=({"M": 3, "N": 1001}, {"M": 1, "N": 7})),
    pointwise("leaky_relu", "F.leaky_relu(x, 0.02)"),
    pointwise("sigmoid", "torch.sigmoid(x)"),
    pointwise("tanh", "torch.tanh(x)"),
    pointwise("silu", "x * torch.sigmoid(x)"),
    pointwise("gelu", "F.gelu(x)", dyn=({"M": 64, "N": 3072}, {"M": 5, "N": 333})),
    pointwise("gelu_tanh", 'F.gelu(x, approximate="tanh")'),
    pointwise("selu", "torch.selu(x)"),
    pointwise("elu", "F.elu(x, alpha=1.3)"),
    pointwise("hardsigmoid", "F.hardsigmoid(x)"),
    pointwise("hardswish", "F.hardswish(x * 3.0)"),
    pointwise("hardtanh", "F.hardtanh(x, min_val=-0.7, max_val=0.9)"),
    pointwise("softplus", "F.softplus(x)"),
    pointwise("softsign", "x / (1.0 + x.abs())"),
    pointwise("mish", "F.mish(x)"),
    pointwise("softmax", "torch.softmax(x, dim=1)", dyn=({"M": 37, "N": 1000}, {"M": 8, "N": 50257}), rows=2048),
    pointwise("log_softmax", "torch.log_softmax(x, dim=1)", rows=2048),
    Row("softmax_columns", "activation", "torch.softmax(x, dim=1)", {"x": "randn(B, M, N)"}, {"B": 24, "M": 256, "N": 384}),
    Row("glu", "activation", "F.glu(x, dim=-1)", {"x": "randn(M, N)"}, {"M": 1024, "N": 4096}),
    Row(
        "prelu",
        "activation",
        "self.act(x)",
        {"x": "randn(B, C, N)"},
        {"B": 32, "C": 48, "N": 2304},
        "self.act = nn.PReLU(C, init=0.2)",
    ),
)

NORMS = (
    image("batch_norm", "norm", "self.norm(x)", "self.norm = nn.BatchNorm2d(C)", B=16, C=48, H=56, W=56),
    image("instance_norm", "norm", "self.norm(x)", "self.norm = nn.InstanceNorm2d(C)", B=12, C=40, H=72, W=72),
    image("group_norm", "norm", "self.norm(x)", "self.norm = nn.GroupNorm(G, C)", G=6, B=24, C=48, H=80, W=80),
    image("rms_norm_channels", "norm", "x / torch.sqrt(x.pow(2).mean(dim=1, keepdim=True) + 1e-5)", B=12, C=56, H=72, W=72),
    Row(
        "layer_norm",
        "norm",
        "self.norm(x)",
        {"x": "randn(B, M, N)"},
        {"B": 8, "M": 384, "N": 1024},
        "self.norm = nn.LayerNorm(N)",
        ({"M": 1}, {"B": 3, "M": 77}),
    ),
    image("layer_norm_image", "norm", "self.norm(x)", "self.norm = nn.LayerNorm((C, H, W))", B=12, C=24, H=96, W=96),
    cube("frobenius_norm", "norm", "x / torch.linalg.norm(x)"),
    matrix("l1_norm", "norm", "x / x.abs().sum(dim=1, keepdim=True)", rows=1536),
    matrix("l2_norm", "norm", "x / torch.norm(x, p=2, dim=1, keepdim=True)", rows=1536),
)

POOLING = (
    signal("max_pool_1d", "pooling", "F.max_pool1d(x, 5, stride=2, padding=2)", B=16, C=96, L=2500),
    image(
        "max_pool_2d", "pooling", "F.max_pool2d(x, 3, stride=2, padding=1)", B=8, C=48, H=112, W=112, dyn=({"H": 31, "W": 45},)
    ),
    image("max_pool_2d_dilated", "pooling", "F.max_pool2d(x, 3, stride=1, padding=1, dilation=2)", B=6, C=32, H=64, W=72),
    volume("max_pool_3d", "pooling", "F.max_pool3d(x, 3, stride=2, padding=1)", B=4, C=16, D=24, H=40, W=40),
    signal("avg_pool_1d", "pooling", "F.avg_pool1d(x, 6, stride=3, padding=1)", B=16, C=96, L=3000),
    image("avg_pool_2d", "pooling", "F.avg_pool2d(x, 5)", B=8, C=48, H=120, W=120),
    volume("avg_pool_3d", "pooling", "F.avg_pool3d(x, 3, stride=2, padding=1)", B=4, C=16, D=24, H=40, W=40),
    image("adaptive_avg_pool", "pooling", "F.adaptive_avg_pool2d(x, (7, 7))", B=8, C=96, H=50, W=61),
    image("lp_pool", "pooling", "F.lp_pool2d(x.abs() + 0.1, 2.0, 3, stride=2)", B=8, C=24, H=80, W=80),
)

REDUCTIONS = (
    cube("sum_middle", "reduction", "x.sum(dim=1)", dyn=({"B": 3, "M": 1, "N": 129}, {"B": 1, "M": 4097, "N": 5})),
    cube("sum_last", "reduction", "x.sum(dim=2, keepdim=True)"),
    cube("mean_middle", "reduction", "x.mean(dim=1)"),
    cube("max_middle", "reduction", "x.amax(dim=1)"),
    cube("min_last", "reduction", "x.amin(dim=-1)"),
    cube("product_last", "reduction", "torch.prod(x * 0.05 + 1.0, dim=-1)", n=384),
    cube("variance_middle", "reduction", "x.var(dim=1)"),
    cube("std_last", "reduction", "x.std(dim=-1, unbiased=False)"),
    cube("logsumexp_last", "reduction", "torch.logsumexp(x, dim=-1)"),
    cube("sum_all", "reduction", "x.sum()"),
    cube("mean_two_axes", "reduction", "x.mean(dim=(0, 2))"),
    cube("l2_norm_middle", "reduction", "torch.linalg.vector_norm(x, dim=1)"),
    cube("argmax_middle", "arg_reduction", "torch.argmax(x, dim=1)"),
    cube("argmax_last", "arg_reduction", "torch.argmax(x, dim=2)", dyn=({"B": 1, "M": 3, "N": 32000},)),
    cube("argmin_middle", "arg_reduction", "torch.argmin(x, dim=1)"),
    cube("max_with_indices", "arg_reduction", "x.max(dim=-1)[0], x.max(dim=-1)[1]"),
)

CONVOLUTIONS = (
    signal("conv_1d", "conv", "self.conv(x)", "self.conv = nn.Conv1d(C, O, 3)", B=8, C=48, L=2048, O=64),
    signal(
        "conv_1d_dilated_strided",
        "conv",
        "self.conv(x)",
        "self.conv = nn.Conv1d(C, O, 5, stride=3, dilation=4)",
        B=8,
        C=48,
        L=4099,
        O=64,
    ),
    image("conv_2d", "conv", "self.conv(x)", "self.conv = nn.Conv2d(C, O, 3, padding=1)", B=6, C=32, H=56, W=56, O=64),
    image("conv_2d_no_bias", "conv", "self.conv(x)", "self.conv = nn.Conv2d(C, O, 3, bias=False)", B=6, C=16, H=58, W=58, O=48),
    image("conv_2d_wide_kernel", "conv", "self.conv(x)", "self.conv = nn.Conv2d(C, O, (3, 7))", B=4, C=24, H=48, W=80, O=40),
    image(
        "conv_2d_strided",
        "conv",
        "self.conv(x)",
        "self.conv = nn.Conv2d(C, O, 11, stride=4, padding=2)",
        B=4,
        C=3,
        H=224,
        W=224,
        O=64,
    ),
    image(
        "conv_2d_dilated",
        "conv",
        "self.conv(x)",
        "self.conv = nn.Conv2d(C, O, 3, dilation=(2, 3), padding=(2, 3))",
        B=4,
        C=32,
        H=48,
        W=64,
        O=48,
    ),
    image(
        "conv_2d_grouped",
        "conv",
        "self.conv(x)",
        "self.conv = nn.Conv2d(C, O, 3, groups=4, padding=1)",
        B=6,
        C=64,
        H=40,
        W=40,
        O=96,
    ),
    image("conv_2d_pointwise", "conv", "self.conv(x)", "self.conv = nn.Conv2d(C, O, 1)", B=6, C=96, H=56, W=56, O=128),
    image(
        "conv_2d_depthwise",
        "conv",
        "self.conv(x)",
        "self.conv = nn.Conv2d(C, C, 3, groups=C, padding=1)",
        B=8,
        C=96,
        H=56,
        W=56,
    ),
    image(
        "conv_2d_depthwise_tall",
        "conv",
        "self.conv(x)",
        "self.conv = nn.Conv2d(C, C, (7, 1), groups=C, stride=2)",
        B=8,
        C=64,
        H=96,
        W=96,
    ),
    image(
        "conv_2d_separable",
        "conv",
        "self.pointwise(self.depthwise(x))",
        "self.depthwise = nn.Conv2d(C, C, 3, groups=C, padding=1)\nself.pointwise = nn.Conv2d(C, O, 1)",
        B=6,
        C=48,
        H=56,
        W=56,
        O=96,
    ),
    volume("conv_3d", "conv", "self.conv(x)", "self.conv = nn.Conv3d(C, O, 3, padding=1)", B=2, C=8, D=16, H=28, W=28, O=24),
    volume(
        "conv_3d_asymmetric",
        "conv",
        "self.conv(x)",
        "self.conv = nn.Conv3d(C, O, (3, 5, 1), stride=(1, 2, 1))",
        B=2,
        C=6,
        D=18,
        H=32,
        W=24,
        O=24,
    ),
    signal(
        "deconv_1d",
        "deconv",
        "self.conv(x)",
        "self.conv = nn.ConvTranspose1d(C, O, 4, stride=2, padding=1)",
        B=8,
        C=40,
        L=768,
        O=32,
    ),
    signal(
        "deconv_1d_dilated",
        "deconv",
        "self.conv(x)",
        "self.conv = nn.ConvTranspose1d(C, O, 3, dilation=3)",
        B=8,
        C=32,
        L=900,
        O=40,
    ),
    image("deconv_2d", "deconv", "self.conv(x)", "self.conv = nn.ConvTranspose2d(C, O, 3)", B=4, C=32, H=40, W=40, O=32),
    image(
        "deconv_2d_strided",
        "deconv",
        "self.conv(x)",
        "self.conv = nn.ConvTranspose2d(C, O, 4, stride=2, padding=1, output_padding=1)",
        B=4,
        C=32,
        H=28,
        W=36,
        O=24,
    ),
    image(
        "deconv_2d_grouped",
        "deconv",
        "self.conv(x)",
        "self.conv = nn.ConvTranspose2d(C, O, (3, 5), stride=2, groups=4, bias=False)",
        B=4,
        C=48,
        H=28,
        W=28,
        O=32,
    ),
    volume(
        "deconv_3d",
        "deconv",
        "self.conv(x)",
        "self.conv = nn.ConvTranspose3d(C, O, 3, stride=2, padding=1)",
        B=2,
        C=12,
        D=10,
        H=16,
        W=16,
        O=12,
    ),
)

SCANS = (
    matrix("cumsum", "scan", "torch.cumsum(x, dim=1)", dyn=({"M": 1, "N": 65537}, {"M": 19, "N": 3})),
    matrix("cumsum_columns", "scan", "torch.cumsum(x, dim=0)", rows=2048, columns=1024),
    matrix("cumsum_reverse", "scan", "x.flip(1).cumsum(dim=1).flip(1)", rows=768),
    matrix("cumsum_exclusive", "scan", "torch.cumsum(x, dim=1) - x", rows=768),
    matrix("cumprod", "scan", "torch.cumprod(x * 0.01 + 1.0, dim=1)", rows=512),
    Row(
        "cumsum_masked",
        "scan",
        "torch.cumsum(x * mask, dim=1)",
        {"x": "randn(M, N)", "mask": "randint(0, 2, (M, N)).bool()"},
        {"M": 640, "N": 4096},
    ),
    matrix("cummax", "scan", "torch.cummax(x, dim=1)[0]", rows=512),
)

LOSSES = (
    loss("mse_loss", "F.mse_loss(x, y)", x="randn(B, N)", y="randn(B, N)"),
    loss("smooth_l1_loss", "F.smooth_l1_loss(x, y, beta=0.8)", x="randn(B, N)", y="randn(B, N)"),
    loss("cross_entropy", "F.cross_entropy(x, t)", x="randn(B, N)", t="randint(0, N, (B,))"),
    loss("kl_div", 'F.kl_div(x.log_softmax(1), y, reduction="batchmean")', x="randn(B, N)", y="randn(B, N).softmax(1)"),
    loss("hinge_loss", "torch.clamp(1.0 - x * y, min=0.0).mean()", x="randn(B, N)", y="randint(0, 2, (B, N)) * 2.0 - 1.0"),
    loss("bce_with_logits", "F.binary_cross_entropy_with_logits(x, y)", x="randn(B, N)", y="rand(B, N)"),
    loss("cosine_similarity_loss", "(1.0 - F.cosine_similarity(x, y, dim=1)).mean()", x="randn(B, N)", y="randn(B, N)"),
    loss(
        "triplet_margin_loss", "F.triplet_margin_loss(a, p, n, margin=0.9)", a="randn(B, N)", p="randn(B, N)", n="randn(B, N)"
    ),
)

QKV = dict.fromkeys(("q", "k", "v"), "randn(B, H, S, D)")

ATTENTION = (
    Row("attention", "attention", "F.scaled_dot_product_attention(q, k, v)", QKV, {"B": 2, "H": 8, "S": 384, "D": 64}),
    Row(
        "attention_causal",
        "attention",
        "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
        QKV,
        {"B": 2, "H": 6, "S": 448, "D": 64},
        dyn=({"S": 65},),
    ),
    Row(
        "attention_written_out",
        "attention",
        "s = q @ k.transpose(-1, -2) / D**0.5\nreturn torch.softmax(s, dim=-1) @ v",
        QKV,
        {"B": 2, "H": 4, "S": 320, "D": 48},
    ),
)

MOVEMENT = (
    Row("transpose_copy", "movement", "x.transpose(1, 2).contiguous()", {"x": "randn(B, M, N)"}, {"B": 8, "M": 512, "N": 640}),
    Row(
        "concatenate",
        "movement",
        "torch.cat([x, y], dim=1)",
        {"x": "randn(M, N)", "y": "randn(M, K)"},
        {"M": 1024, "N": 1536, "K": 900},
    ),
    Row(
        "embedding",
        "movement",
        "self.table(ids)",
        {"ids": "randint(0, V, (M, N))"},
        {"V": 20000, "E": 256, "M": 64, "N": 128},
        "self.table = nn.Embedding(V, E)",
    ),
    Row(
        "gather_last",
        "movement",
        "torch.gather(x, 1, i)",
        {"x": "randn(M, N)", "i": "randint(0, N, (M, K))"},
        {"M": 1024, "N": 2048, "K": 1024},
    ),
    Row(
        "upsample_bilinear",
        "movement",
        'F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)',
        {"x": "randn(B, C, H, W)"},
        {"B": 6, "C": 24, "H": 56, "W": 56},
    ),
    Row("top_k", "sorting", "torch.topk(x, 8, dim=1)[0]", {"x": "randn(M, N)"}, {"M": 512, "N": 4096}),
    Row("sort_rows", "sorting", "torch.sort(x, dim=1)[0]", {"x": "randn(M, N)"}, {"M": 256, "N": 1024}),
)

ROWS: tuple[Row, ...] = (
    *GEMM,
    *ACTIVATIONS,
    *NORMS,
    *POOLING,
    *REDUCTIONS,
    *CONVOLUTIONS,
    *SCANS,
    *LOSSES,
    *ATTENTION,
    *MOVEMENT,
)
