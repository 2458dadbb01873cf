"""The hardware a kernel is for: a name in, a `Target` with its spec sheet out.

- `sheet.py`    the Target noun, and sheets read from TOML (data with its source, never an allow-list);
- `cpu.py`      the machine at hand, described by what its kernel says (flags, cores, caches);
- `attached.py` the GPU or NPU of this machine, described by what its vendor's tool says;
- `capabilities.py`  what a schedule may count on: a sheet, as a language uses it;
- `measure.py`  bandwidth and peak of this CPU by a small C program, once, cached by CPU model;
- `sheets/`     one TOML file a GPU or NPU, with public figures.
"""

from kernelwright.target.capabilities import Capabilities
from kernelwright.target.sheet import Target, known_targets

__all__ = ["Capabilities", "Target", "known_targets"]
