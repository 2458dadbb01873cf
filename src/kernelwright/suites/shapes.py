"""Suite `shapes`: operators and chains of language, recommendation and vision models, each at four to eight sizes, some of them prime,
some large: what a serving program calls with another batch or length every time.

In: nothing. Out: `ROWS`. Each task lists its sizes in `get_inputs_dyn_list` and says in `get_dynamic` that all which differs in them
varies: one kernel has to serve every size.
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.suites.row import Row, at
from kernelwright.suites.shapes_images import IMAGES

TOKENS = at(T=(1, 7, 64, 257, 1021))
BATCH_TOKENS = at(B=(1, 2, 3, 5), T=(1, 31, 128, 509))
ROWS_COLUMNS = at(M=(1, 13, 64, 521, 2048), N=(1, 100, 1000, 769, 31))
BATCH = at(B=(1, 3, 17, 64, 499))

NORMS = (
    Row("rms_norm", "norm", "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight",
        {"x": "randn(B, T, N)"}, {"B": 2, "T": 100, "N": 256}, "self.weight = nn.Parameter(torch.randn(N))", BATCH_TOKENS),
    Row("rms_norm_any_width", "norm", "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w",
        {"x": "randn(M, N)", "w": "randn(N)"}, {"M": 64, "N": 512}, "", ROWS_COLUMNS),
    Row("layer_norm", "norm", "self.norm(x)", {"x": "randn(B, T, N)"}, {"B": 2, "T": 96, "N": 320}, "self.norm = nn.LayerNorm(N)",
        BATCH_TOKENS),
    Row("residual_layer_norm", "norm", "self.norm(x + residual)", {"x": "randn(T, N)", "residual": "randn(T, N)"},
        {"T": 300, "N": 256}, "self.norm = nn.LayerNorm(N)", TOKENS),
    Row("layer_norm_any_width", "norm", "(x - x.mean(-1, keepdim=True)) * torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5)",
        {"x": "randn(M, N)"}, {"M": 50, "N": 300}, "", at(M=(1, 11, 128, 509), N=(2, 64, 1000, 1537))),
    Row("l2_normalize", "norm", "x / x.norm(dim=-1, keepdim=True).clamp_min(1e-6)", {"x": "randn(M, N)"}, {"M": 200, "N": 128}, "",
        ROWS_COLUMNS),
    Row("adaptive_layer_norm", "norm", "F.layer_norm(x, (N,)) * (1.0 + scale.unsqueeze(1)) + shift.unsqueeze(1)",
        {"x": "randn(B, T, N)", "scale": "randn(B, N)", "shift": "randn(B, N)"}, {"B": 2, "T": 64, "N": 192}, "", BATCH_TOKENS),
)  # fmt: skip

MAPS = (
    Row("silu_gate", "activation", "F.silu(x) * gate", {"x": "randn(T, N)", "gate": "randn(T, N)"}, {"T": 128, "N": 688}, "", TOKENS),
    Row("swiglu_packed", "activation", "x, gate = packed.chunk(2, -1)\nreturn F.silu(gate) * x", {"packed": "randn(T, 512)"},
        {"T": 200}, "", TOKENS),
    Row("gelu_tanh", "activation", "F.gelu(x, approximate='tanh')", {"x": "randn(M, N)"}, {"M": 100, "N": 400}, "", ROWS_COLUMNS),
    Row("relu_squared", "activation", "F.relu(x).square()", {"x": "randn(M, N)"}, {"M": 64, "N": 1000}, "", ROWS_COLUMNS),
    Row("bias_gelu_residual", "activation", "F.gelu(x + self.bias) + residual", {"x": "randn(T, N)", "residual": "randn(T, N)"},
        {"T": 90, "N": 384}, "self.bias = nn.Parameter(torch.randn(N))", TOKENS),
    Row("scale_shift_clamp", "activation", "torch.clamp(x * scale + shift, -1.0, 1.0)",
        {"x": "randn(M, N)", "scale": "randn(N)", "shift": "randn(N)"}, {"M": 64, "N": 300}, "", ROWS_COLUMNS),
    Row("soft_cap", "activation", "30.0 * torch.tanh(x / 30.0)", {"x": "10 * randn(B, T, N)"}, {"B": 2, "T": 50, "N": 100}, "",
        at(B=(1, 3, 2), T=(1, 61, 128), N=(7, 250, 1024))),
    Row("outer_difference", "activation", "(x.unsqueeze(1) - y.unsqueeze(0)).abs()", {"x": "randn(M)", "y": "randn(N)"},
        {"M": 200, "N": 300}, "", ROWS_COLUMNS),
    Row("quantize_rows", "quantisation", "s = x.abs().amax(-1, keepdim=True).clamp_min(1e-8) / 127.0\nreturn torch.round(x / s) * s",
        {"x": "randn(M, N)"}, {"M": 100, "N": 256}, "", ROWS_COLUMNS),
    Row("dequantize_groups", "quantisation", "(codes.float().view(-1, 4, 32) * scales.unsqueeze(-1)).flatten(1)",
        {"codes": "randint(-8, 8, (T, 128), dtype=torch.int8)", "scales": "rand(T, 4) + 0.1"}, {"T": 60}, "", TOKENS),
)  # fmt: skip

ROTARY = (
    Row("rope_half", "position", """
half = x.shape[-1] // 2
rotated = torch.cat([-x[..., half:], x[..., :half]], -1)
return x * cos + rotated * sin
""", {"x": "randn(B, 4, T, 64)", "cos": "randn(T, 64)", "sin": "randn(T, 64)"}, {"B": 2, "T": 60}, "", BATCH_TOKENS),
    Row("rope_interleaved", "position", """
even, odd = x[..., 0::2], x[..., 1::2]
return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)
""", {"x": "randn(B, T, 4, 32)", "cos": "randn(T, 1, 16)", "sin": "randn(T, 1, 16)"}, {"B": 2, "T": 70}, "", BATCH_TOKENS),
    Row("alibi_scores", "position", """
places = torch.arange(scores.shape[-1])
return scores - slopes[:, None, None] * (places - places[:, None]).abs()
""", {"scores": "randn(8, T, T)", "slopes": "rand(8)"}, {"T": 40}, "", at(T=(1, 7, 64, 127))),
    Row("learned_positions", "position", "x + self.table[: x.shape[1]]", {"x": "randn(B, T, 96)"}, {"B": 2, "T": 100},
        "self.table = nn.Parameter(torch.randn(1024, 96))", BATCH_TOKENS),
)  # fmt: skip

SOFTMAXES = (
    Row("softmax_rows", "softmax", "torch.softmax(x, -1)", {"x": "randn(M, N)"}, {"M": 64, "N": 500}, "", ROWS_COLUMNS),
    Row("softmax_columns", "softmax", "torch.softmax(x, 0)", {"x": "randn(M, N)"}, {"M": 200, "N": 100}, "", ROWS_COLUMNS),
    Row("log_softmax", "softmax", "torch.log_softmax(x, -1)", {"x": "randn(M, N)"}, {"M": 30, "N": 999}, "", ROWS_COLUMNS),
    Row("masked_softmax", "softmax", "torch.softmax(scores.masked_fill(~mask, -1e9), -1)",
        {"scores": "randn(B, T, T)", "mask": "torch.ones(T, T, dtype=torch.bool).tril()"}, {"B": 4, "T": 60}, "",
        at(B=(1, 3, 8, 2), T=(1, 17, 64, 251))),
    Row("temperature_softmax", "softmax", "torch.softmax(logits / 0.7, -1)", {"logits": "randn(B, V)"}, {"B": 8, "V": 2000}, "",
        at(B=(1, 3, 16, 5), V=(100, 1021, 5000, 32003))),
    Row("router_top_weights", "softmax", """
weights, experts = torch.topk(torch.softmax(logits, -1), 2, -1)
return weights / weights.sum(-1, keepdim=True), experts
""", {"logits": "randn(T, 16)"}, {"T": 200}, "", TOKENS),
    Row("sigmoid_router", "softmax", "s = torch.sigmoid(logits)\nreturn s / s.sum(-1, keepdim=True)", {"logits": "randn(T, 32)"},
        {"T": 200}, "", TOKENS),
)  # fmt: skip

ATTENTION = (
    Row("attention", "attention", "F.scaled_dot_product_attention(q, k, v)",
        {"q": "randn(B, 4, T, 32)", "k": "randn(B, 4, T, 32)", "v": "randn(B, 4, T, 32)"}, {"B": 2, "T": 64}, "",
        at(B=(1, 3, 2, 1), T=(1, 17, 127, 256))),
    Row("causal_attention", "attention", "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
        {"q": "randn(B, 4, T, 32)", "k": "randn(B, 4, T, 32)", "v": "randn(B, 4, T, 32)"}, {"B": 2, "T": 60}, "",
        at(B=(1, 3, 2, 1), T=(1, 17, 127, 256))),
    Row("grouped_attention", "attention", """
k, v = k.repeat_interleave(4, 1), v.repeat_interleave(4, 1)
return F.scaled_dot_product_attention(q, k, v, is_causal=True)
""", {"q": "randn(B, 8, T, 32)", "k": "randn(B, 2, T, 32)", "v": "randn(B, 2, T, 32)"}, {"B": 1, "T": 70}, "",
        at(B=(1, 2, 3, 1), T=(1, 13, 128, 193))),
    Row("decode_attention", "attention", "torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1) @ v",
        {"q": "randn(B, 8, 1, 64)", "k": "randn(B, 8, S, 64)", "v": "randn(B, 8, S, 64)"}, {"B": 2, "S": 128}, "",
        at(B=(1, 3, 1, 2), S=(1, 37, 511, 1024))),
    Row("cross_attention", "attention", "torch.softmax(q @ k.transpose(-1, -2) / 8.0, -1) @ v",
        {"q": "randn(T, 64)", "k": "randn(S, 64)", "v": "randn(S, 48)"}, {"T": 50, "S": 77}, "",
        at(T=(1, 7, 128, 257), S=(1, 64, 77, 509))),
    Row("linear_attention", "attention", "F.elu(q) @ (F.elu(k).transpose(-1, -2) @ v)",
        {"q": "randn(B, T, 32)", "k": "randn(B, T, 32)", "v": "randn(B, T, 32)"}, {"B": 2, "T": 100}, "", BATCH_TOKENS),
    Row("attention_scores", "attention", "torch.softmax(torch.einsum('bqhd,bkhd->bhqk', q, k) * 0.2, -1)",
        {"q": "randn(B, T, 4, 24)", "k": "randn(B, S, 4, 24)"}, {"B": 2, "T": 30, "S": 40}, "",
        at(B=(1, 3, 2, 1), T=(1, 31, 64, 97), S=(5, 1, 96, 101))),
)  # fmt: skip

PRODUCTS = (
    Row("linear_tokens", "product", "self.proj(x)", {"x": "randn(T, N)"}, {"T": 100, "N": 256}, "self.proj = nn.Linear(N, 192)", TOKENS),
    Row("matmul_any", "product", "a @ b", {"a": "randn(M, K)", "b": "randn(K, N)"}, {"M": 96, "K": 64, "N": 80}, "",
        at(M=(1, 7, 128, 251), K=(1, 31, 256, 127), N=(5, 1, 96, 509))),
    Row("matmul_transposed", "product", "a @ b.t()", {"a": "randn(M, K)", "b": "randn(N, K)"}, {"M": 64, "K": 100, "N": 60}, "",
        at(M=(1, 13, 200, 131), K=(3, 64, 129, 256), N=(17, 1, 64, 307))),
    Row("batched_matmul", "product", "torch.bmm(a, b)", {"a": "randn(B, M, 32)", "b": "randn(B, 32, N)"}, {"B": 4, "M": 50, "N": 40},
        "", at(B=(1, 3, 7, 2), M=(1, 64, 33, 127), N=(9, 1, 64, 101))),
    Row("linear_gelu", "product", "F.gelu(self.proj(x))", {"x": "randn(B, T, 128)"}, {"B": 2, "T": 40}, "self.proj = nn.Linear(128, 256)",
        BATCH_TOKENS),
    Row("mlp", "product", "self.down(F.silu(self.up(x)))", {"x": "randn(T, 96)"}, {"T": 70},
        "self.up = nn.Linear(96, 256)\nself.down = nn.Linear(256, 96)", TOKENS),
    Row("gated_mlp", "product", "self.down(F.silu(self.gate(x)) * self.up(x))", {"x": "randn(T, 64)"}, {"T": 70},
        "self.gate = nn.Linear(64, 160, bias=False)\nself.up = nn.Linear(64, 160, bias=False)\nself.down = nn.Linear(160, 64, bias=False)",
        TOKENS),
    Row("qkv_split_heads", "product", """
q, k, v = self.qkv(x).view(x.shape[0], x.shape[1], 3, 4, 24).unbind(2)
return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
""", {"x": "randn(B, T, 96)"}, {"B": 2, "T": 30}, "self.qkv = nn.Linear(96, 288)", BATCH_TOKENS),
    Row("low_rank_update", "product", "self.base(x) + self.b(self.a(x)) * 0.5", {"x": "randn(T, 128)"}, {"T": 60},
        "self.base = nn.Linear(128, 128)\nself.a = nn.Linear(128, 8, bias=False)\nself.b = nn.Linear(8, 128, bias=False)", TOKENS),
    Row("logits_of_last", "product", "self.head(hidden[:, -1])", {"hidden": "randn(B, T, 64)"}, {"B": 4, "T": 20},
        "self.head = nn.Linear(64, 1000, bias=False)", BATCH_TOKENS),
)  # fmt: skip

TABLES = (
    Row("embedding", "gather", "self.table(ids)", {"ids": "randint(0, 500, (B, T))"}, {"B": 2, "T": 64},
        "self.table = nn.Embedding(500, 64)", BATCH_TOKENS),
    Row("embedding_mean", "gather", "self.table(ids).mean(1)", {"ids": "randint(0, 500, (B, T))"}, {"B": 8, "T": 20},
        "self.table = nn.Embedding(500, 48)", BATCH_TOKENS),
    Row("gather_rows", "gather", "x[ids]", {"x": "randn(100, N)", "ids": "randint(0, 100, (T,))"}, {"T": 150, "N": 64}, "",
        at(T=(1, 7, 256, 1021), N=(1, 65, 128, 31))),
    Row("cross_entropy", "loss", "F.cross_entropy(logits, labels)", {"logits": "randn(T, 1000)", "labels": "randint(0, 1000, (T,))"},
        {"T": 64}, "", at(T=(1, 7, 128, 251))),
    Row("log_probabilities", "loss", "torch.log_softmax(logits, -1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)",
        {"logits": "randn(B, T, 200)", "labels": "randint(0, 200, (B, T))"}, {"B": 2, "T": 32}, "", BATCH_TOKENS),
    Row("greedy_token", "reduction", "logits.argmax(-1)", {"logits": "randn(B, V)"}, {"B": 8, "V": 3000}, "",
        at(B=(1, 3, 16, 5), V=(100, 1021, 5000, 32003))),
    Row("masked_mean_pool", "reduction", """
mask = (torch.arange(x.shape[1]) < lengths.unsqueeze(1)).to(x.dtype).unsqueeze(-1)
return (x * mask).sum(1) / lengths.unsqueeze(1)
""", {"x": "randn(B, T, 64)", "lengths": "randint(1, T + 1, (B,))"}, {"B": 4, "T": 50}, "", BATCH_TOKENS),
    Row("cumulative_sum", "scan", "torch.cumsum(x, -1)", {"x": "randn(M, N)"}, {"M": 40, "N": 300}, "", ROWS_COLUMNS),
    Row("key_cache_append", "memory", "torch.cat([cache, fresh], 2)", {"cache": "randn(B, 4, S, 32)", "fresh": "randn(B, 4, T, 32)"},
        {"B": 2, "S": 50, "T": 1}, "", at(B=(1, 3, 2, 1), S=(1, 63, 127, 509), T=(1, 5, 2, 16))),
    Row("merge_heads", "memory", "x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)", {"x": "randn(B, 6, T, 32)"},
        {"B": 2, "T": 40}, "", BATCH_TOKENS),
)  # fmt: skip

RECOMMENDATION = (
    Row("feature_interaction", "recommendation", "torch.bmm(x, x.transpose(1, 2)).flatten(1)", {"x": "randn(B, 13, 16)"}, {"B": 100},
        "", BATCH),
    Row("factorisation_machine", "recommendation", "0.5 * (x.sum(1).square() - x.square().sum(1)).sum(-1)", {"x": "randn(B, F1, 16)"},
        {"B": 100, "F1": 26}, "", at(B=(1, 7, 128, 509), F1=(1, 3, 26, 53))),
    Row("cross_layer", "recommendation", "x0 * self.proj(x) + x", {"x0": "randn(B, 96)", "x": "randn(B, 96)"}, {"B": 100},
        "self.proj = nn.Linear(96, 96)", BATCH),
    Row("deep_and_wide", "recommendation", "torch.sigmoid(self.deep(F.relu(self.hidden(x))) + self.wide(x))", {"x": "randn(B, 64)"},
        {"B": 100}, "self.hidden = nn.Linear(64, 128)\nself.deep = nn.Linear(128, 1)\nself.wide = nn.Linear(64, 1)", BATCH),
    Row("cosine_scores", "recommendation", "F.normalize(users, dim=-1) @ F.normalize(items, dim=-1).t()",
        {"users": "randn(B, 32)", "items": "randn(I, 32)"}, {"B": 40, "I": 200}, "", at(B=(1, 7, 64, 101), I=(1, 50, 509, 1000))),
    Row("target_attention", "recommendation", """
scores = (history * item.unsqueeze(1)).sum(-1) / 4.0
return (torch.softmax(scores, -1).unsqueeze(-1) * history).sum(1)
""", {"history": "randn(B, T, 32)", "item": "randn(B, 32)"}, {"B": 16, "T": 40}, "", BATCH_TOKENS),
    Row("pairwise_ranking_loss", "recommendation", "F.softplus(negative - positive).mean()",
        {"positive": "randn(B)", "negative": "randn(B)"}, {"B": 1000}, "", at(B=(1, 7, 512, 10007))),
    Row("binary_cross_entropy", "recommendation", "F.binary_cross_entropy_with_logits(logits, labels)",
        {"logits": "randn(B)", "labels": "randint(0, 2, (B,)).float()"}, {"B": 1000}, "", at(B=(1, 13, 2048, 7919))),
    Row("field_gates", "recommendation", "x * torch.sigmoid(self.gate(x.mean(-1))).unsqueeze(-1)", {"x": "randn(B, 26, 16)"}, {"B": 64},
        "self.gate = nn.Linear(26, 26)", BATCH),
    Row("bucketed_embedding", "recommendation", "self.table(ids % 1000).sum(1)", {"ids": "randint(0, 100000, (B, 8))"}, {"B": 64},
        "self.table = nn.Embedding(1000, 16)", BATCH),
)  # fmt: skip

ROWS = tuple(
    replace(row, dynamic="listed")
    for row in (*NORMS, *MAPS, *ROTARY, *SOFTMAXES, *ATTENTION, *PRODUCTS, *TABLES, *RECOMMENDATION, *IMAGES)
)
