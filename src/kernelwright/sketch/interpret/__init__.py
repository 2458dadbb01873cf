"""A sketch executed on torch tensors, so that a design bug is told apart from a coding bug. The only part of sketch/ that needs torch.

1. `run`         a Sketch and inputs → outputs; `operations` each operation on tiles, `library` calls into torch
2. `storage`     tensors and tiles in memory, with their bounds
3. `strict`      what a program must not count on: reads before writes, two iterations storing one place
4. `witness`     one element of an output, and what went into it;  `compare` a sketch beside a module
"""
