"""A live module in, a graph of lazy values out.

1. `capture`       torch.export, and the walk over its graph;   `constants` tensors that follow a rule
2. `operators/`    ATen → values, one file a family;   `rewrites/` algebra on them
3. `library_calls` track hybrid: what has no rule is left to torch;   `complex_pairs` complex numbers between such calls
"""
