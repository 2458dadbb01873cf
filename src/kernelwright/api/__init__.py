"""In your program: what `import kernelwright` offers beyond files and commands.

A model goes in, the same model comes out faster or unchanged. `backend` is what `torch.compile(model, backend="kernelwright")` calls
with each graph of Dynamo; AOTAutograd makes it functional, and then:

1. `partition`  which operators are designed and which stay with eager; convex pieces of the graph, views on the side of their users
2. `piece`      one piece: the Designer's sketch as a C library, built or taken from the cache, called with pointers (`libraries`)
3. `bounds`     a piece's results against eager by the judge's numerical bounds, on the inputs that came
4. `race`       a piece against eager, interleaved; who does not win beyond noise is not used; `machine_load` says whether to believe it
5. `program`    the graph as it runs then: pieces and eager operators in order; what was decided is kept for the next process
6. `by_size`    a graph with symbolic sizes: one kernel for any of them (`any_size`), else programs for those that keep coming
7. `explain`    what became of each graph, as a table
8. `optimization` a whole program ahead of time: profiled, tried from its dearest parts on, accepted if faster end to end; `patch`
9. `overlay`    `use`: one operator of torch on a kernel, by shape and dtype
10. `networks/`   `kernelwright bench networks`
11. `packages/`  a kernel for people who have no Kernelwright: torch operator, wheel, hub layout, C
12. `shapes`     which shapes a running program calls with, recorded for `tune --shapes`

Nothing of torch's global state changes, and every refusal ends with eager.
"""

from __future__ import annotations

import importlib
from typing import Any

_OFFERED = {
    "optimize": "optimization",
    "Optimized": "optimization",
    "use": "overlay",
    "Overlay": "overlay",
    "explain": "explanation",
    "Explanation": "explanation",
    "wait": "backend",
    "export": "packages",
    "record_shapes": "shapes",
}
"""name → file of this folder; imported when first asked for, because they need torch."""


def __getattr__(name: str) -> Any:
    if name in _OFFERED:
        return getattr(importlib.import_module(f"kernelwright.api.{_OFFERED[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
