"""The family of a task, by the operators that its text names: for files that do not say theirs, as KernelBench's.

In: a task's source. Out: one word of the suites' own vocabulary, with `_chain` where several kinds of operators follow each other.
Only a grouping for reports; nothing is decided by it.
"""

from __future__ import annotations

import ast
import re

FAMILIES = (
    ("deconv", r"conv_?transpose\dd"),
    ("conv", r"conv\dd"),
    ("attention", r"scaled_dot_product|attention|multiheadattention"),
    ("recurrent", r"^(lstm|gru|rnn)(cell)?$"),
    ("gemm", r"^(linear|matmul|mm|bmm|addmm|baddbmm|einsum|bilinear)$|@"),
    ("norm", r"(batch|layer|group|instance|rms|local_?response)_?norm|^normalize$|^norm$|rsqrt"),
    ("pooling", r"pool\dd"),
    ("loss", r"loss$|cross_entropy|kl_div|cosine_similarity"),
    ("scan", r"^cum(sum|prod|max|min)$|logcumsumexp"),
    ("arg_reduction", r"^arg(max|min)$"),
    ("sorting", r"^(sort|topk|argsort|kthvalue|median)$"),
    ("reduction", r"^(sum|mean|amax|amin|max|min|prod|var|std|logsumexp)$"),
    ("movement", r"^(gather|scatter|embedding|interpolate|upsample|pixel_?shuffle|cat|index_select|unfold|fold|roll|flip)"),
    (
        "activation",
        r"^(leaky_?)?relu6?$|sigmoid|tanh|silu|swish|gelu|selu|celu|elu$|softplus|softsign|mish|softmax|glu$|^(clamp|exp|abs)$",
    ),
)
"""In order of weight: a chain is named after its heaviest member."""


def family_of(source: str) -> str:
    """`conv_chain`, `gemm`, `activation` …; `other` where no operator is recognised."""
    try:
        words = _operators(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError):
        return "other"
    found = [name for name, pattern in FAMILIES if any(re.search(pattern, word) for word in words)]
    if not found:
        return "other"
    heavy = found[0] in ("deconv", "conv", "gemm") and len(found) > 1
    return f"{found[0]}_chain" if heavy else found[0]


def _operators(tree: ast.Module) -> set[str]:
    """Names of what is called inside classes, in lower case, and `@` for a product written as such."""
    words: set[str] = set()
    for holder in (node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)):
        if isinstance(holder, ast.FunctionDef) and holder.name.startswith("get_"):
            continue
        for node in ast.walk(holder):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                words.add("@")
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                words.add(name.lower())
    return words
