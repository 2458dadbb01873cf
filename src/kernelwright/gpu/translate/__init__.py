"""A module of PTX in, C++ for `runtime/` out.

1. `calls` puts device functions where they are called, so that a kernel is one flat list; parameters of calls become registers.
2. `flow` cuts the list into basic blocks and orders them so that all of a divergent region comes before the block in which its
   lanes meet again (the machine runs the lowest waiting block first), and finds which blocks lanes may reach apart.
3. `values` says what each instruction reads and writes, which registers are equal in all lanes (they stay scalars), and which
   live across blocks (they sit in the warp's memory; the others are locals).
4. `emit` writes a function; `arithmetic`, `comparisons`, `conversions`, `memory`, `warps` and `matrices` each know their instructions. What
   none of them knows is refused by its name and line.
5. `module` lays out global memory, numbers the sites and joins the functions of all kernels to one source.
"""

from kernelwright.gpu.translate.module import Layout, Site, Translation, translate

__all__ = ["Layout", "Site", "Translation", "translate"]
