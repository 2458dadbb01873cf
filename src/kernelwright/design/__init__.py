"""The built-in Designer: a PyTorch module in, sketches out.

1. capture.py     torch.export records the module; operators/ turns ATen into lazy values (values.py, built by build.py)
2. partial.py     long reductions are cut so that all cores have work
3. assemble.py    decides which values are realised, and collects kernels into a Sketch
4. nest.py        one kernel's iteration space: scalar expressions (scalar.py) over atoms (coords.py), split, identified, merged
5. schedule.py    flat, rows or columns: what is a parallel loop, a tile axis, a sequential loop; emit.py writes tiles
                  (separate.py: windows folded row by row, then column by column)
6. contract.py    contractions are left to the families of contraction/, joined by the hooks of fuse.py (contract: hooks.py)
                  (memory.py: whether they may keep rearranged copies of their weights)
"""

from kernelwright.design.designer import Design, design_module, design_task

__all__ = ["Design", "design_module", "design_task"]
