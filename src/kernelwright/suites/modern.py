"""Suite `modern`: pieces of language, multimodal and recommendation models, of quantisation and of sparsity.

In: nothing. Out: `ROWS`. Integer codes, scales, caches and index lists are inputs of the task, so that a kernel meets them as a
serving engine would hand them over. Sizes suit a CPU.
"""

from __future__ import annotations

from kernelwright.suites.modern_systems import QUANTISED, RECOMMENDATION, SPARSE, VISION
from kernelwright.suites.row import Row

NORMS = (
    Row(
        "rms_norm",
        "norm",
        "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight",
        {"x": "randn(B, S, N)"},
        {"B": 4, "S": 512, "N": 1024},
        "self.weight = nn.Parameter(torch.randn(N))",
        ({"B": 1, "S": 1}, {"B": 2, "S": 33}),
    ),
    Row(
        "rms_norm_residual",
        "norm",
        """
h = x + residual
return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight, h
""",
        {"x": "randn(M, N)", "residual": "randn(M, N)"},
        {"M": 1024, "N": 1024},
        "self.weight = nn.Parameter(torch.randn(N))",
    ),
    Row(
        "rms_norm_bf16",
        "norm",
        "(x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.weight.to(x.dtype)",
        {"x": "randn(M, N).bfloat16()"},
        {"M": 1024, "N": 2048},
        "self.weight = nn.Parameter(torch.randn(N))",
    ),
    Row(
        "adaptive_layer_norm",
        "norm",
        "F.layer_norm(x, (N,)) * (1.0 + scale.unsqueeze(1)) + shift.unsqueeze(1)",
        {"x": "randn(B, S, N)", "scale": "randn(B, N)", "shift": "randn(B, N)"},
        {"B": 8, "S": 256, "N": 768},
    ),
    Row(
        "query_key_norm",
        "norm",
        "F.normalize(q, dim=-1) * self.gain, F.normalize(k, dim=-1)",
        {"q": "randn(B, H, S, D)", "k": "randn(B, H, S, D)"},
        {"B": 4, "H": 16, "S": 768, "D": 64},
        "self.gain = nn.Parameter(torch.randn(D))",
    ),
)

POSITIONS = (
    Row(
        "rope_half",
        "rope",
        """
first, second = x.chunk(2, dim=-1)
return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
""",
        {"x": "randn(B, H, S, D)", "cos": "randn(S, D // 2).cos()", "sin": "randn(S, D // 2).sin()"},
        {"B": 4, "H": 16, "S": 768, "D": 64},
        dyn=({"S": 1}, {"S": 100}),
    ),
    Row(
        "rope_interleaved",
        "rope",
        """
even, odd = x[..., 0::2], x[..., 1::2]
return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
""",
        {"x": "randn(B, S, H, D)", "cos": "randn(S, 1, D // 2).cos()", "sin": "randn(S, 1, D // 2).sin()"},
        {"B": 2, "S": 384, "H": 16, "D": 64},
    ),
    Row(
        "alibi_scores",
        "rope",
        "torch.softmax(scores - self.slope * (self.place[:, None] - self.place[None, :]).abs(), dim=-1)",
        {"scores": "randn(B, H, S, S)"},
        {"B": 2, "H": 8, "S": 256},
        """
self.register_buffer("slope", 2.0 ** (-torch.arange(1.0, H + 1.0)).view(H, 1, 1))
self.register_buffer("place", torch.arange(0.0, S))
""",
    ),
)

FEED_FORWARD = (
    Row("silu_and_multiply", "gated", "F.silu(x[..., :N]) * x[..., N:]", {"x": "randn(M, 2 * N)"}, {"M": 512, "N": 2816}),
    Row(
        "swiglu",
        "gated",
        "self.down(F.silu(self.gate(x)) * self.up(x))",
        {"x": "randn(M, K)"},
        {"M": 128, "K": 512, "N": 1376},
        """
self.gate = nn.Linear(K, N, bias=False)
self.up = nn.Linear(K, N, bias=False)
self.down = nn.Linear(N, K, bias=False)
""",
    ),
    Row(
        "geglu",
        "gated",
        """
value, gate = self.inner(x).chunk(2, dim=-1)
return value * F.gelu(gate, approximate="tanh")
""",
        {"x": "randn(M, K)"},
        {"M": 192, "K": 512, "N": 2048},
        "self.inner = nn.Linear(K, N)",
    ),
    Row("relu_squared", "gated", "torch.relu(x).square() * 0.5", {"x": "randn(M, N)"}, {"M": 1024, "N": 4096}),
    Row(
        "low_rank_adapter",
        "gemm",
        "self.base(x) + self.up(self.down(x)) * 0.25",
        {"x": "randn(M, K)"},
        {"M": 128, "K": 1024, "N": 1024, "R": 16},
        """
self.base = nn.Linear(K, N)
self.down = nn.Linear(K, R, bias=False)
self.up = nn.Linear(R, N, bias=False)
""",
    ),
)

ATTENTION = (
    Row(
        "attention_grouped_query",
        "attention",
        """
k = k.repeat_interleave(G, dim=1)
v = v.repeat_interleave(G, dim=1)
return F.scaled_dot_product_attention(q, k, v, is_causal=True)
""",
        {"q": "randn(B, H * G, S, D)", "k": "randn(B, H, S, D)", "v": "randn(B, H, S, D)"},
        {"B": 1, "H": 4, "G": 4, "S": 320, "D": 64},
    ),
    Row(
        "attention_decode",
        "attention",
        """
scores = torch.einsum("bhd,bhsd->bhs", q, k) * D**-0.5
places = torch.arange(S)
scores = scores.masked_fill(places[None, None, :] >= lengths[:, None, None], float("-inf"))
return torch.einsum("bhs,bhsd->bhd", torch.softmax(scores, dim=-1), v)
""",
        {"q": "randn(B, H, D)", "k": "randn(B, H, S, D)", "v": "randn(B, H, S, D)", "lengths": "randint(1, S + 1, (B,))"},
        {"B": 4, "H": 8, "S": 1024, "D": 64},
    ),
    Row(
        "attention_paged_decode",
        "attention",
        """
k = keys[table].flatten(1, 2)
v = values[table].flatten(1, 2)
scores = torch.einsum("bhd,bshd->bhs", q, k) * D**-0.5
return torch.einsum("bhs,bshd->bhd", torch.softmax(scores, dim=-1), v)
""",
        {
            "q": "randn(B, H, D)",
            "keys": "randn(P, L, H, D)",
            "values": "randn(P, L, H, D)",
            "table": "randint(0, P, (B, T))",
        },
        {"B": 4, "H": 8, "D": 64, "P": 256, "L": 16, "T": 32},
    ),
    Row(
        "attention_sliding_window",
        "attention",
        """
place = torch.arange(S)
gap = place[:, None] - place[None, :]
seen = (gap >= 0) & (gap < WINDOW)
scores = (q @ k.transpose(-1, -2)) * D**-0.5
return torch.softmax(scores.masked_fill(~seen, float("-inf")), dim=-1) @ v
""",
        {"q": "randn(B, H, S, D)", "k": "randn(B, H, S, D)", "v": "randn(B, H, S, D)"},
        {"B": 1, "H": 8, "S": 384, "D": 64, "WINDOW": 96},
    ),
    Row(
        "attention_latent_cross",
        "attention",
        "F.scaled_dot_product_attention(self.latent.expand(B, -1, -1), x, x)",
        {"x": "randn(B, S, D)"},
        {"B": 8, "S": 1024, "D": 96, "Q": 64},
        "self.latent = nn.Parameter(torch.randn(1, Q, D))",
    ),
    Row(
        "kv_cache_append",
        "attention",
        """
cache = cache.clone()
cache[torch.arange(B), :, places] = fresh
return cache
""",
        {"cache": "randn(B, H, S, D)", "fresh": "randn(B, H, D)", "places": "randint(0, S, (B,))"},
        {"B": 16, "H": 16, "S": 512, "D": 64},
    ),
    Row(
        "linear_attention",
        "attention",
        """
q = F.elu(q) + 1.0
k = F.elu(k) + 1.0
weight = q @ k.sum(dim=-2).unsqueeze(-1)
return (q @ (k.transpose(-1, -2) @ v)) / weight
""",
        {"q": "randn(B, H, S, D)", "k": "randn(B, H, S, D)", "v": "randn(B, H, S, D)"},
        {"B": 2, "H": 8, "S": 1024, "D": 48},
    ),
)

ROUTING = (
    Row(
        "moe_gate",
        "moe",
        """
weights, experts = torch.topk(torch.softmax(self.gate(x), dim=-1), 2, dim=-1)
return weights / weights.sum(dim=-1, keepdim=True), experts
""",
        {"x": "randn(M, K)"},
        {"M": 2048, "K": 512, "E": 32},
        "self.gate = nn.Linear(K, E, bias=False)",
    ),
    Row(
        "moe_experts",
        "moe",
        """
hidden = torch.einsum("mk,ekn->emn", x, self.up)
result = torch.einsum("emn,enk->emk", F.silu(hidden), self.down)
return torch.einsum("me,emk->mk", share, result)
""",
        {"x": "randn(M, K)", "share": "randn(M, E).softmax(-1)"},
        {"M": 64, "K": 256, "N": 512, "E": 8},
        """
self.up = nn.Parameter(torch.randn(E, K, N) * 0.05)
self.down = nn.Parameter(torch.randn(E, N, K) * 0.05)
""",
    ),
    Row(
        "top_p_weights",
        "sampling",
        """
p = torch.softmax(logits, dim=-1)
ordered, _ = torch.sort(p, dim=-1, descending=True)
kept = (torch.cumsum(ordered, dim=-1) - ordered) < 0.9
floor = torch.where(kept, ordered, torch.ones_like(ordered)).amin(dim=-1, keepdim=True)
p = torch.where(p >= floor, p, torch.zeros_like(p))
return p / p.sum(dim=-1, keepdim=True)
""",
        {"logits": "randn(M, N) * 3.0"},
        {"M": 32, "N": 4096},
    ),
    Row(
        "cross_entropy_vocabulary",
        "loss",
        "F.cross_entropy(self.head(x), target)",
        {"x": "randn(M, K)", "target": "randint(0, V, (M,))"},
        {"M": 128, "K": 256, "V": 16000},
        "self.head = nn.Linear(K, V, bias=False)",
    ),
    Row(
        "cross_entropy_smoothed",
        "loss",
        """
logp = torch.log_softmax(logits, dim=-1)
picked = logp.gather(1, target[:, None]).squeeze(1)
return (-0.9 * picked - 0.1 * logp.mean(dim=-1)).mean()
""",
        {"logits": "randn(M, V)", "target": "randint(0, V, (M,))"},
        {"M": 256, "V": 20000},
    ),
    Row(
        "clip_contrastive_loss",
        "loss",
        """
image = F.normalize(image, dim=-1)
text = F.normalize(text, dim=-1)
logits = image @ text.t() * 14.0
label = torch.arange(M)
return (F.cross_entropy(logits, label) + F.cross_entropy(logits.t(), label)) * 0.5
""",
        {"image": "randn(M, K)", "text": "randn(M, K)"},
        {"M": 512, "K": 384},
    ),
)

ROWS: tuple[Row, ...] = (
    *NORMS,
    *POSITIONS,
    *FEED_FORWARD,
    *ATTENTION,
    *ROUTING,
    *QUANTISED,
    *RECOMMENDATION,
    *SPARSE,
    *VISION,
)
