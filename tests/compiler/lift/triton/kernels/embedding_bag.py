"""Sum of embeddings: positions read one by one in a loop."""

import torch
import triton
import triton.language as tl


@triton.jit
def bag_kernel(ids, table, out, n_ids, dim, BLOCK_D: tl.constexpr):
    row = tl.program_id(0)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    mask = d < dim
    acc = tl.zeros((BLOCK_D,), tl.float32)
    for i in range(n_ids):
        idx = tl.load(ids + row * n_ids + i)
        acc += tl.load(table + idx * dim + d, mask=mask, other=0.0)
    tl.store(out + row * dim + d, acc, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.emb = torch.nn.Embedding(n, d)

    def forward(self, ids):
        b, n = ids.shape
        d = self.emb.weight.shape[1]
        out = torch.empty(b, d, dtype=self.emb.weight.dtype, device=ids.device)
        bag_kernel[(b, triton.cdiv(d, 64))](ids, self.emb.weight, out, n, d, BLOCK_D=64)
        return out
