"""Modules of several families with inputs: name → task source in the form that the judge reads."""

from __future__ import annotations

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"


def task(forward: str, inputs: str, layers: str = "") -> str:
    """A task file: `x`, `y` … are the inputs, `self.…` the layers."""
    names = ", ".join("xyz"[: inputs.count(";") + 1])
    made = ", ".join(part.strip() for part in inputs.split(";"))
    init = f"    def __init__(self):\n        super().__init__()\n        {layers}\n\n" if layers else ""
    return (
        f"{HEAD}class Model(nn.Module):\n{init}    def forward(self, {names}):\n        return {forward}\n\n\n"
        f"def get_inputs():\n    return [{made}]\n\n\ndef get_init_inputs():\n    return []\n"
    )


JUDGED = {
    "pointwise": task("F.gelu(x) * 2", "torch.randn(37, 301)"),
    "reduction": task("x.sum(1)", "torch.randn(19, 1031)"),
    "softmax": task("x.softmax(-1)", "torch.randn(23, 517)"),
    "gemm": task("x @ y", "torch.randn(65, 47); torch.randn(47, 90)"),
    "convolution": task("F.relu(self.conv(x))", "torch.randn(2, 3, 13, 17)", "self.conv = nn.Conv2d(3, 8, 3, padding=1)"),
    "pooling": task("F.max_pool2d(x, 3, 2, 1)", "torch.randn(2, 5, 13, 17)"),
}
"""Judged in the sandbox."""

COMPARED = JUDGED | {
    "mean over rows": task("x.mean(0)", "torch.randn(133, 70)"),
    "long rows": task("F.relu(x).sum(-1).softmax(-1)", "torch.randn(4, 64, 5000)"),
    "average pooling": task("F.avg_pool2d(x, 2)", "torch.randn(2, 3, 12, 16)"),
    "layer norm": task("self.norm(x)", "torch.randn(9, 100)", "self.norm = nn.LayerNorm(100)"),
    "batch norm": task("self.norm(x)", "torch.randn(3, 5, 8, 8)", "self.norm = nn.BatchNorm2d(5).eval()"),
    "linear": task("F.silu(self.layer(x))", "torch.randn(70, 64)", "self.layer = nn.Linear(64, 48)"),
    "attention": task("F.scaled_dot_product_attention(x, y, z)", "; ".join(["torch.randn(2, 2, 32, 16)"] * 3)),
    "argmax": task("x.argmax(1)", "torch.randn(9, 100)"),
    "cumsum": task("x.cumsum(1)", "torch.randn(9, 1000)"),
    "two scans": task("x.cumsum(1) + x.double().cumsum(1).float()", "torch.randn(3, 500)"),
    "sort": task("x.sort(1)", "torch.randn(4, 50)"),
    "gather": task("x.gather(1, y)", "torch.randn(9, 100); torch.randint(0, 100, (9, 7))"),
    "scatter": task("x.scatter_add(1, y, z)", "torch.randn(9, 100); torch.randint(0, 100, (9, 70)); torch.randn(9, 70)"),
    "scatter in half": task(  # whole numbers, so that the order of the sums does not matter
        "x.scatter_add(1, y, z)",
        "torch.randn(3, 9).round().half(); torch.randint(0, 9, (3, 20)); torch.randint(-3, 4, (3, 20)).half()",
    ),
    "largest of": task(
        "x.scatter_reduce(1, y, z, 'amax')", "torch.randn(3, 9); torch.randint(0, 9, (3, 20)); torch.randn(3, 20)"
    ),
    "embedding": task("self.table(x)", "torch.randint(0, 20, (3, 4))", "self.table = nn.Embedding(20, 8)"),
    "half": task("F.silu(x) * 2", "torch.randn(9, 100).half()"),
    "bfloat16": task("x @ y", "torch.randn(33, 20).bfloat16(); torch.randn(20, 40).bfloat16()"),
    "double": task("x.exp().sum(1)", "torch.randn(9, 100).double()"),
    "whole numbers": task("(x // 3) % 5 + x.clamp(-4, 9)", "torch.randint(-50, 50, (9, 10))"),
    "booleans": task("(x > 0) & (x < 1)", "torch.randn(9, 100)"),
    "any": task("(x > 1).any(1)", "torch.randn(9, 300)"),
    "logsumexp": task("x.logsumexp(1)", "torch.randn(9, 100)"),
    "cross entropy": task("F.cross_entropy(x, y)", "torch.randn(20, 30); torch.randint(0, 30, (20,))"),
    "gelu by tanh": task("F.gelu(x, approximate='tanh')", "torch.randn(20, 30)"),
    "special functions": task("torch.lgamma(x) + torch.erfinv(torch.tanh(x))", "torch.randn(20, 30)"),
    "recurrence": task("self.cell(x)", "torch.randn(2, 5, 8)", "self.cell = nn.GRU(8, 16, batch_first=True)"),
    "names that OpenCL has": task(
        "self.kernel(x).tanh() + self.local + self.step", "torch.randn(7, 8)",
        "self.kernel = nn.Linear(8, 8); self.local = nn.Parameter(torch.randn(8)); self.step = nn.Parameter(torch.randn(8))",
    ),
}  # fmt: skip
"""Compared with torch in this process."""
