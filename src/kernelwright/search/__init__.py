"""Search: from a correct kernel to the fastest one, within a budget.

1. `space.py`    what may be changed in a sketch without changing what it computes; `ways.py` how else its coder can write it
2. `worker.py`   the worker that holds a task's designs and writes kernels for points (`point.py`) of their spaces
3. `propose.py`  which points to try next: the designs themselves, neighbours of the best, children of a population (`islands.py`),
                 an optimiser's guesses; led by a cost model (`model.py` over `features.py`) that learnt from the `past.py`
4. `tune.py`     races (judge/timing/race.py) by `races.py`; `finish_race.py`: a last race, and a verdict before a winner is named
5. `t4.py`       a search's measurements in the exchange format of the field
"""
