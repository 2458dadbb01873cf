"""Rows of a table by index."""

import torch
import triton
import triton.language as tl


@triton.jit
def gather(ids_ptr, table_ptr, out_ptr, n, D: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    offs = tl.program_id(0) * BN + tl.arange(0, BN)
    cols = tl.arange(0, BD)
    ids = tl.load(ids_ptr + offs, mask=offs < n, other=0)
    mask = (offs[:, None] < n) & (cols[None, :] < D)
    rows = tl.load(table_ptr + ids[:, None] * D + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + offs[:, None] * D + cols[None, :], rows, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.table = torch.nn.Embedding(n, d)

    def forward(self, ids):
        d = self.table.weight.shape[1]
        out = torch.empty(*ids.shape, d, device=ids.device)
        gather[(triton.cdiv(ids.numel(), 16),)](ids, self.table.weight, out, ids.numel(), D=d, BN=16, BD=32)
        return out
