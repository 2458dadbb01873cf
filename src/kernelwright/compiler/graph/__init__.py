"""The graph between ATen and schedules: lazy values, and algebra on them.

1. `values`        what an element is made of;   `build` constructors in the vocabulary of tensors
2. `rewrites/`     the same result with less work or memory
3. `problems`      what contractions are asked to compute;   `captured` the whole graph of one forward
4. `memory_budget` whether rearranged copies of weights may be held
"""
