"""Search: from a correct kernel to the fastest one, within a budget.

1. `space.py`    what may be changed in a sketch without changing what it computes
2. `station.py`  the worker that holds a task's designs and writes kernels for points of their spaces
3. `propose.py`  which points to try next: the designs themselves, neighbours of the best, then an optimiser's guesses
4. `tune.py`     heats (judge/heat.py), a verdict for whoever leads, and a last race before a winner is named
"""
