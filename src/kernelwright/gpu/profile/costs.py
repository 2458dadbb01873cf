"""What an instruction of PTX costs on a device: instructions issued, the pipe that takes them, cycles until the result.

Rules of thumb about what the assembler makes of an instruction; where it makes many (divisions) their usual number. Products on matrix
units are told by their operations, accesses to memory by what was counted of them (`sampling`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelwright.gpu.profile.hardware import Latencies
from kernelwright.gpu.ptx import TYPE_BYTES, Instruction, Register, Vector


@dataclass(frozen=True)
class Cost:
    """`issued` instructions of the machine for one of PTX; `pipe` takes them; the result comes after `latency` cycles."""

    issued: float
    pipe: str
    latency: float
    flops: float = 0.0
    """Of a product on matrix units, by a warp."""
    kind: str = ""
    """The type of its factors."""


_FREE = {
    "cvta",
    "ret",
    "exit",
    "membar",
    "fence",
    "discard",
    "prefetch",
    "activemask",
    "griddepcontrol",
    "pragma",
    "setmaxnreg",
}
_SPECIAL = {"ex2", "lg2", "sin", "cos", "tanh", "rsqrt"}
_EXCHANGE = {"shfl", "vote", "match", "redux", "elect"}
_MEMORY = {"ld", "st", "atom", "red", "ldmatrix", "stmatrix", "cp"}
_SPACES = ("global", "shared", "local", "param", "const")


def space(i: Instruction) -> str:
    """The state space of an access; global where it is not said."""
    return next((m.split("::")[0] for m in i.modifiers if m.split("::")[0] in _SPACES), "global")


def is_access(i: Instruction) -> bool:
    """Whether it goes to memory of the device or of the block."""
    return i.opcode in _MEMORY and space(i) not in ("param", "const") and not (i.opcode == "cp" and not i.has("shared"))


def cost(i: Instruction, t: Latencies) -> Cost:
    """What an instruction costs."""
    op = i.opcode
    wide = any(TYPE_BYTES.get(x, 4) == 8 for x in i.types)
    if op in _FREE or (op in ("ld", "st") and space(i) in ("param", "const")):
        return Cost(0.0, "", 0.0)
    if op in ("mma", "wgmma"):
        return _product(i, t)
    if op in _MEMORY:
        if not is_access(i):
            return Cost(1.0, "", 0.0)
        return Cost(1.0, "memory", t.shared if space(i) == "shared" else t.second_level)
    if op in ("bar", "barrier"):
        return Cost(1.0, "", t.barrier)
    if op in _EXCHANGE:
        return Cost(1.0, "memory" if op == "shfl" else "integer", t.exchange)
    if op == "mov":
        return Cost(0.25, "integer", 0.0)
    if op in ("div", "rcp", "sqrt", "rem"):
        return _division(i, t)
    if op in _SPECIAL:
        return Cost(1.0, "special", t.special)
    if op == "cvt":
        floats = [x for x in i.types if x[0] in "fbe" and x not in ("b32", "b64", "b16")]
        if floats:
            return Cost(1.0, "convert" if any(x[0] in "su" for x in i.types) or wide else "float", t.arithmetic + 2)
        return Cost(0.5, "integer", t.arithmetic)
    if any(x in ("f64",) for x in i.types):
        return Cost(1.0, "double", t.double)
    if any(x in ("f32", "f16", "f16x2", "bf16", "bf16x2", "f32x2") for x in i.types) and op not in (
        "setp",
        "selp",
        "min",
        "max",
    ):
        return Cost(1.0, "float", t.arithmetic)
    if op in ("bra", "brx"):
        return Cost(1.0, "", 0.0)
    if op in ("mul", "mad") and wide and not i.has("wide"):
        return Cost(4.0, "integer", 3 * t.arithmetic)
    return Cost(2.0 if wide and not i.has("wide") else 1.0, "integer", t.arithmetic)


def operations(i: Instruction) -> float:
    """Floating-point operations of an instruction: of a lane; of a product on matrix units for a lane's share."""
    if i.opcode in ("mma", "wgmma"):
        return _product(i, Latencies()).flops / 32
    wide = 2.0 if any(x.endswith("x2") for x in i.types) else 1.0
    if not any(x in ("f64", "f32", "f16", "bf16") or x.endswith("16x2") or x == "f32x2" for x in i.types):
        return 0.0
    return {"fma": 2.0, "mad": 2.0, "add": 1.0, "sub": 1.0, "mul": 1.0, "div": 1.0, "sqrt": 1.0, "rcp": 1.0}.get(
        i.opcode, 0.0
    ) * wide


def _division(i: Instruction, t: Latencies) -> Cost:
    kind = i.types[-1] if i.types else "f32"
    if kind[0] in "sub":
        many = 90.0 if TYPE_BYTES[kind] == 8 else 22.0
        return Cost(many, "integer", many * t.arithmetic / 2)
    if kind == "f64":
        return Cost(20.0, "double", 20 * t.double / 2)
    if any(i.has(x) for x in ("approx", "full")):
        return Cost(2.0 if i.opcode == "div" else 1.0, "special", t.special + t.arithmetic)
    return Cost(9.0, "float", t.special + 6 * t.arithmetic)


def _product(i: Instruction, t: Latencies) -> Cost:
    shape = next((re.findall(r"\d+", m) for m in i.modifiers if re.fullmatch(r"m\d+n\d+k\d+", m)), None)
    if shape is None:
        return Cost(1.0, "", 0.0)
    kinds = [m for m in i.modifiers if re.fullmatch(r"f16|bf16|tf32|f64|[su]8|e4m3|e5m2|f32|s32", m)]
    kind = kinds[1] if len(kinds) > 1 else "f16"
    flops = 2.0 * int(shape[0]) * int(shape[1]) * int(shape[2])
    if i.opcode == "wgmma":
        flops /= 4  # four warps make one
    return Cost(1.0, "matrix", t.matrix, flops, kind)


def registers_of(o: object) -> list[str]:
    """Names of the registers of an operand."""
    if isinstance(o, Register):
        return [o.name]
    if isinstance(o, Vector):
        return [name for e in o.elements for name in registers_of(e)]
    base = getattr(o, "base", None)
    return registers_of(base) if base is not None else []
