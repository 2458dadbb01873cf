"""Contractions: matrix products, convolutions and attention as schedules over tiles.

  gemm.py       tiled, streamed, dot-product and split-k matrix products
  conv.py       convolutions: plain.py, transposed.py, winograd.py, depthwise.py (taps.py: strides and phases)
  attention.py  softmax(q k^T) v with a running softmax
  blocks.py     index arithmetic and block sizes

Each `lower_*` takes a problem, loaders of the (lazily fused) operands and an epilogue (compiler/schedule/candidate.py), and returns
ScheduleCandidates, best first.
"""

from kernelwright.compiler.graph.problems import AttentionProblem, ConvProblem, GemmProblem
from kernelwright.compiler.schedule.contraction.attention import lower_attention
from kernelwright.compiler.schedule.contraction.conv import lower_conv
from kernelwright.compiler.schedule.contraction.gemm import lower_gemm

__all__ = [
    "AttentionProblem",
    "ConvProblem",
    "GemmProblem",
    "lower_attention",
    "lower_conv",
    "lower_gemm",
]
