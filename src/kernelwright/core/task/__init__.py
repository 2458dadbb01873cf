"""What to compute.

1. `task.py` the Task noun: a file's text, the class asked for, a content hash. Imports no torch.
2. `load.py` runs that text and gives the reference module, its arguments and inputs. Imports torch; for trusted workers.
3. `dynamic.py` which sizes vary, as somebody wrote it and as a noun; `dynamic_probe.py` what the module lets vary.
4. `initialisation.py` how the constructor draws the state, as statements that a kernel file can repeat.
5. `footprint.py` counts the memory a task would take before anything is allocated.
"""

from kernelwright.core.task.task import Task

__all__ = ["Task"]
