"""One kernel as a C++ function: registers, blocks, jumps. What instructions mean is asked of the tables beside this file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from kernelwright.core.errors import PtxError
from kernelwright.gpu.ptx import TYPE_BYTES, Immediate, Instruction, Operand, Register, Special, Symbol
from kernelwright.gpu.translate.calls import FlatKernel
from kernelwright.gpu.translate.flow import BasicBlock
from kernelwright.gpu.translate.values import Values, reads, writes

_CONTAINER = {1: 16, 2: 16, 4: 32, 8: 64}
PARTS = {16: 1, 32: 2, 64: 4}
_SPECIAL = {
    **{f"%{name}.{axis}": f"w->{name}[{k}]" for name in ("ctaid", "nctaid", "ntid") for k, axis in enumerate("xyz")},
    "%warpid": "w->index",
    "%nwarpid": "((w->ntid[0] * w->ntid[1] * w->ntid[2] + 31) / 32)",
    "%smid": "0u",
    "%nsmid": "1u",
    "%gridid": "0u",
    "%dynamic_smem_size": "kw_dynamic_shared(w)",
    "%total_smem_size": "kw_total_shared(w)",
    "%clock": "(uint32_t)kw_clock()",
    "%clock_hi": "(uint32_t)(kw_clock() >> 32)",
    "%clock64": "kw_clock()",
    "%globaltimer": "kw_globaltimer()",
    "%globaltimer_lo": "(uint32_t)kw_globaltimer()",
    "%globaltimer_hi": "(uint32_t)(kw_globaltimer() >> 32)",
    "%is_explicit_cluster": "(w->cluster_size > 1 ? ~0u : 0u)",
    "%cluster_ctarank": "w->rank",
    "%cluster_nctarank": "w->cluster_size",
    **{f"%cluster_ctaid.{axis}": f"w->cluster_at[{k}]" for k, axis in enumerate("xyz")},
    **{f"%cluster_nctaid.{axis}": f"w->cluster_dim[{k}]" for k, axis in enumerate("xyz")},
    **{f"%clusterid.{axis}": f"(w->ctaid[{k}] / w->cluster_dim[{k}])" for k, axis in enumerate("xyz")},
    **{f"%nclusterid.{axis}": f"(w->nctaid[{k}] / w->cluster_dim[{k}])" for k, axis in enumerate("xyz")},
    # of cooperative launches: a handle that nothing else reads, and a flag
    "%envreg1": "kw_grid_workspace(w, 1)",
    "%envreg2": "kw_grid_workspace(w, 2)",
}

Handler = Callable[["Emitter", Instruction], bool]


def container(kind: str) -> int:
    """Bits of the vectors that hold a type."""
    return 1 if kind == "pred" else _CONTAINER[TYPE_BYTES[kind]]


class Emitter:
    """Writes one kernel. `handlers` are asked in turn for each instruction; the first that knows it emits it."""

    def __init__(
        self,
        flat: FlatKernel,
        blocks: list[BasicBlock],
        values: Values,
        handlers: Sequence[Handler],
        symbols: Callable[[str], tuple[str, int] | None],
        site: Callable[[Instruction], int],
        name: str,
        early: AbstractSet[int] = frozenset(),
    ) -> None:
        self.flat, self.blocks, self.values, self.early = flat, blocks, values, early
        self.handlers, self.symbols, self.site, self.name = handlers, symbols, site, name
        self.lines: list[str] = []
        self.names: dict[str, str] = {}
        self.stored: set[str] = set()  # registers that sit in the warp's memory
        for live in values.live_in:
            self.stored |= live
        self.local: set[str] = set()
        self.block = blocks[0]
        self.number = 0
        self.last: dict[str, int] = {}
        self.at = 0
        self.temporaries = 0

    # -- names and operands

    def identifier(self, register: str) -> str:
        """A register's name in C++."""
        found = self.names.get(register)
        if found is None:
            stem = re.sub(r"\W", "_", register.lstrip("%"))
            found = f"{stem}_{len(self.names)}"
            self.names[register] = found
        return found

    def width(self, r: Register) -> int:
        """Bits of a register's container; 1 for a predicate."""
        return container(r.type)

    def is_uniform(self, o: Operand | None) -> bool:
        """Whether an operand is one scalar for all lanes."""
        if isinstance(o, Register):
            return o.name in self.values.uniform
        if isinstance(o, Special):
            return not self.values._differs(o.name)
        return True

    def refuse(self, i: Instruction, why: str = "is not known to this machine") -> PtxError:
        """An instruction that nobody executes."""
        where = f" ({i.location})" if i.location else ""
        return PtxError(f"{i.name} {why}{where}", path=self.name, line=i.line)

    def src(self, o: Operand | None, width: int, part: int | None, *, signed: bool = False) -> str:
        """The C++ expression of an operand's vector, or of the scalar where `part` is None."""
        if isinstance(o, Immediate):
            bits = o.value
            if o.type == "f64" and width == 32:
                import struct

                bits = struct.unpack("<I", struct.pack("<f", struct.unpack("<d", struct.pack("<Q", bits))[0]))[0]
            return self._constant(f"{hex(bits & ((1 << width) - 1))}{'ull' if width == 64 else 'u'}", width, part)
        if isinstance(o, Special):
            return self._special(o, width, part)
        if isinstance(o, Symbol):
            return self._constant(self.address_of(o, width), width, part)
        if not isinstance(o, Register):
            raise PtxError("an operand of a kind that this instruction does not take", path=self.name)
        have = self.width(o)
        name = self.identifier(o.name)
        if o.name in self.values.uniform:
            text = name if have == width else self._convert_scalar(name, have, width, signed)
            return self._constant(text, width, part)
        if part is None:
            raise PtxError(f"{o.name} differs between lanes where one value is needed", path=self.name)
        return self.resized(lambda k: f"{name}_{k}", have, width, part, signed)

    def _constant(self, text: str, width: int, part: int | None) -> str:
        return f"(uint{width}_t)({text})" if part is None else f"b{width}({text})"

    @staticmethod
    def _convert_scalar(name: str, have: int, width: int, signed: bool) -> str:
        if width > have and signed:
            return f"(uint{width}_t)(int{width}_t)(int{have}_t){name}"
        return f"(uint{width}_t){name}"

    @staticmethod
    def resized(part_of: Callable[[int], str], have: int, width: int, part: int, signed: bool = False) -> str:
        """A vector of another width, made of those of a register of `have` bits."""
        s = "sx" if signed else "zx"
        if have == width:
            return part_of(part)
        if (have, width) == (32, 64):
            return f"{s}64{'lh'[part & 1]}({part_of(part >> 1)})"
        if (have, width) == (16, 32):
            return f"{s}32{'lh'[part]}({part_of(0)})"
        if (have, width) == (16, 64):
            return f"{s}64{'lh'[part & 1]}({s}32{'lh'[part >> 1]}({part_of(0)}))"
        if (have, width) == (64, 32):
            return f"tr32({part_of(2 * part)}, {part_of(2 * part + 1)})"
        if (have, width) == (32, 16):
            return f"tr16({part_of(0)}, {part_of(1)})"
        return f"tr16(tr32({part_of(0)}, {part_of(1)}), tr32({part_of(2)}, {part_of(3)}))"

    def _special(self, o: Special, width: int, part: int | None) -> str:
        if o.name in _SPECIAL and (part is None or not o.name.startswith("%tid")):
            return self._constant(_SPECIAL[o.name], width, part)
        if part is None:
            if o.name.startswith("%tid"):
                return f"(uint{width}_t)0"
            raise PtxError(f"{o.name} is not known to this machine", path=self.name)
        if o.name.startswith("%tid."):
            base = f"w->tid[{'xyz'.index(o.name[-1])}]"
        elif o.name == "%laneid" or o.name.startswith("%lanemask"):
            base = {"%laneid": "kw_lane", "%lanemask_lt": "kw_lane_lt", "%lanemask_le": "kw_lane_le", "%lanemask_gt": "kw_lane_gt",
                    "%lanemask_ge": "kw_lane_ge", "%lanemask_eq": "kw_lane_eq"}[o.name]  # fmt: skip
        else:
            raise PtxError(f"{o.name} is not known to this machine", path=self.name)
        return self.resized(lambda k: f"{base}[{k}]", 32, width, part)

    def address_of(self, symbol: Symbol, width: int = 64) -> str:
        """The address of a variable: an offset in shared and local space, a host address in global and parameter space. In 32 bits
        a parameter's is its offset, of which `cvta.param` makes a host address."""
        found = self.symbols(symbol.name)
        if found is None:
            raise PtxError(f"the name {symbol.name} is not declared", path=self.name)
        space, offset = found
        offset += symbol.offset
        if space == "global":
            return f"(uint64_t)w->globals + {offset}"
        if space == "param" and width == 64:
            return f"(uint64_t)w->params + {offset}"
        return f"{offset}ull"

    def pred(self, o: Operand | None) -> str:
        """A predicate as a mask of lanes."""
        if isinstance(o, Immediate):
            return "~0u" if o.value else "0u"
        assert isinstance(o, Register)
        name = self.identifier(o.name)
        return f"~{name}" if o.negated else name

    def guarded(self, i: Instruction, mask: str = "m") -> str:
        """The active lanes of an instruction."""
        return mask if i.guard is None else f"({mask} & {self.pred(i.guard)})"

    # -- assignments

    def put(self, text: str) -> None:
        """A line of C++."""
        self.lines.append(f"    {text}")

    def temporary(self) -> str:
        """A fresh name."""
        self.temporaries += 1
        return f"t{self.temporaries}"

    def assign(self, i: Instruction, o: Operand | None, expression: Callable[[int | None], str]) -> None:
        """Give a register its new value: `expression(part)` for each vector, `expression(None)` for a scalar or a predicate."""
        if o is None:
            return
        assert isinstance(o, Register)
        name, width = self.identifier(o.name), self.width(o)
        if width == 1:
            value = expression(None)
            self.put(f"{name} = {value if i.guard is None else f'kw_mix({self.pred(i.guard)}, {value}, {name})'};")
        elif o.name in self.values.uniform:
            value = expression(None)
            self.put(f"{name} = {value if i.guard is None else f'{self.pred(i.guard)} ? {value} : {name}'};")
        else:
            parts = PARTS[width]
            lanes = 32 // parts
            found = [expression(k) for k in range(parts)]
            sources = {r.name for r in reads(i)}
            # Vectors of one width go lane by lane; where widths differ, no part may be overwritten before all are read.
            together = parts == 1 or o.name not in sources or all(self.width(r) == width for r in reads(i) if r.name == o.name)
            if i.guard is not None:
                p = self.pred(i.guard)
                found = [f"sel({p}{f' >> {lanes * k}' if k else ''}, {f}, {name}_{k})" for k, f in enumerate(found)]
            if together:
                for k, f in enumerate(found):
                    self.put(f"{name}_{k} = {f};")
            else:
                temporaries = [self.temporary() for _ in found]
                for t, f in zip(temporaries, found, strict=True):
                    self.put(f"const u{width} {t} = {f};")
                for k, t in enumerate(temporaries):
                    self.put(f"{name}_{k} = {t};")

    def assign_from_array(self, i: Instruction, o: Operand | None, array: str, at: int) -> None:
        """Take a register's vectors out of an array that a call of the runtime filled."""
        self.assign(i, o, lambda part: f"{array}[{at + (part or 0)}]")

    def map(
        self, i: Instruction, function: str, operands: Sequence[Operand | None], width: int, wrap: str = "{}", inner: str = "{}"
    ) -> None:
        """`function(operands…)` in every vector; `wrap` goes around the result, `inner` around each operand."""
        self.assign(
            i,
            i.operands[0],
            lambda part: wrap.format(f"{function}({', '.join(inner.format(self.src(o, width, part)) for o in operands)})"),
        )

    # -- the function

    def declare(self, i: Instruction) -> None:
        """Locals for the registers of an instruction; those that live across blocks begin with their stored value."""
        for r in [*reads(i), *writes(i)]:
            if r.name in self.local:
                continue
            self.local.add(r.name)
            name, width = self.identifier(r.name), self.width(r)
            known = r.name in self.values.live_in[self.number]
            if width == 1 or r.name in self.values.uniform:
                kind = "uint32_t" if width == 1 else f"uint{width}_t"
                self.put(f"{kind} {name} = {f'R.{name}' if known else '0'};")
            else:
                parts = ", ".join(f"{name}_{k}{f' = R.{name}_{k}' if known else '{}'}" for k in range(PARTS[width]))
                self.put(f"u{width} {parts};")

    def store(self, r: Register) -> None:
        """Write a register back to the warp's memory; where lanes may be apart only those of the active ones."""
        name, width = self.identifier(r.name), self.width(r)
        if r.name in self.values.uniform:
            self.put(f"R.{name} = {name};")
        elif width == 1:
            self.put(f"R.{name} = {f'kw_mix(m, {name}, R.{name})' if self.block.divergent else name};")
        else:
            parts = PARTS[width]
            for k in range(parts):
                shift = f" >> {k * (32 // parts)}" if k else ""
                value = f"sel(m{shift}, {name}_{k}, R.{name}_{k})" if self.block.divergent else f"{name}_{k}"
                self.put(f"R.{name}_{k} = {value};")

    def instruction(self, i: Instruction) -> None:
        """One instruction, by the first table that knows it."""
        self.declare(i)
        if id(i) in self.early:
            self.put(f"kw_in_flight(w, {self.guarded(i)}, {self.site(i)});")
        for handler in self.handlers:
            if handler(self, i):
                return
        raise self.refuse(i)

    def function(self, index: int) -> str:
        """The whole function, with the struct of its registers."""
        for n, block in enumerate(self.blocks):
            self._block(n, block)
        count = len(self.blocks)
        fields = [f"    Flow<{count}> flow;"]
        for name in self.names:
            if name not in self.stored:
                continue
            kind = "pred" if name == "%cc" else self.flat.registers[name]
            width, c = container(kind), self.names[name]
            if width == 1:
                fields.append(f"    uint32_t {c};")
            elif name in self.values.uniform:
                fields.append(f"    uint{width}_t {c};")
            else:
                fields.append("    u" + f"{width} " + ", ".join(f"{c}_{k}" for k in range(PARTS[width])) + ";")
        cases = "\n".join(f"    case {n}: goto B{n};" for n in range(count))
        struct = "\n".join(fields)
        body = "\n".join(self.lines)
        return (
            f"struct alignas(64) Registers{index} {{\n{struct}\n}};\n"
            f"static int run{index}(Warp* w) {{\n    Registers{index}& R = *(Registers{index}*)w->registers;\n    uint32_t m = 0;\n"
            f"    kw_resume(w, R.flow);\nnext:\n    switch (kw_next(w, R.flow, m)) {{\n{cases}\n"
            f"    default: return kw_stop(R.flow);\n    }}\n"
            f"{body}\n}}\n"
        )

    def _block(self, n: int, block: BasicBlock) -> None:
        self.block, self.number, self.local = block, n, set()
        out = self.values.live_out(n)
        everything = [*block.instructions, *([block.terminator] if block.terminator else [])]
        last = {r.name: k for k, i in enumerate(everything) for r in writes(i)}
        self.lines.append(f"B{n}: {{")
        if block.held:
            self._hold(block.instructions[0])
        self.put(f"kw_count(w, kw_counter + {n}, m);")
        for k, i in enumerate(block.instructions):
            if i.opcode in ("exit", "ret"):
                self.declare(i)
                self.put(f"w->alive &= ~{self.guarded(i)}; m &= w->alive; if (!m) goto next;")
                continue
            self.instruction(i)
            for r in writes(i):
                if last[r.name] == k and r.name in out:
                    self.store(r)
        self._end(n, block)
        self.lines.append("}")

    def _hold(self, i: Instruction) -> None:
        self.declare(i)
        members = i.operands[-1]
        text = (
            self.src(members, 32, None)
            if self.is_uniform(members)
            else f"kw_any_lane({self.src(members, 32, 0)}, {self.src(members, 32, 1)}, m)"
        )
        # Lanes that leave the kernel while others wait for them here were named and did not come.
        self.put(f"if (~m & {text} & (w->alive | w->waited)) {{")
        self.put(f"    if (kw_others(R.flow)) {{ w->waited |= w->alive; kw_hold(R.flow, {self.number}, m); goto next; }}")
        self.put(f"    kw_missing_lanes(w, m, {self.site(i)}, {text});")
        self.put("}")
        self.put("w->waited = 0;")

    def _end(self, n: int, block: BasicBlock) -> None:
        i = block.terminator
        if i is not None:
            self.declare(i)
        if block.kind == "exit":
            self.put("w->alive &= ~m; goto next;")
        elif block.kind == "barrier":
            assert i is not None
            self._barrier(n, block, i)
        elif block.kind == "jump":
            self._jump(n, block, block.successors[0], "")
        elif block.kind == "table":
            assert i is not None
            self._table(n, block, i)
        else:
            assert i is not None
            taken, other = block.successors
            p = self.pred(i.guard)
            if self.is_uniform(i.guard):
                self._jump(n, block, taken, f"if ({p}) ")
                self._jump(n, block, other, "")
            else:
                self._back(n, taken, f"m & {p}")
                self.put(f"kw_go(R.flow, {taken}, m & {p}); kw_go(R.flow, {other}, m & ~({p})); goto next;")

    def _jump(self, n: int, block: BasicBlock, target: int, condition: str) -> None:
        if block.divergent or self.blocks[target].divergent:
            back = (
                f"if (--w->fuel < 0) {{ {self._here(block)}w->spun = {target + 1}; return STOP_YIELD; }} "
                if target <= n
                else ""
            )
            self.put(f"{condition}{{ kw_go(R.flow, {target}, m); {back}goto next; }}")
        else:
            back = (
                f"if (--w->fuel < 0) {{ {self._here(block)}kw_go(R.flow, {target}, m); return STOP_YIELD; }} "
                if target <= n
                else ""
            )
            self.put(f"{condition}{{ {back}goto B{target}; }}")

    def _here(self, block: BasicBlock) -> str:
        """Where a warp is that has spun for long: what a wait without end is told by."""
        i = block.terminator or next((i for i in reversed(block.instructions) if i.location), None)
        return f"w->site = {self.site(i)}; " if i is not None else ""

    def _back(self, n: int, target: int, mask: str) -> None:
        if target <= n:
            self.put(
                f"if (--w->fuel < 0) {{ {self._here(self.blocks[n])}w->spun = {target + 1}; kw_go(R.flow, {target}, {mask}); "
                f"kw_go(R.flow, {self.blocks[n].successors[1]}, m & ~({mask})); return STOP_YIELD; }}"
            )

    def _table(self, n: int, block: BasicBlock, i: Instruction) -> None:
        targets = list(dict.fromkeys(block.successors))
        by_target = {t: [k for k, s in enumerate(block.successors) if s == t] for t in targets}
        t = self.temporary()
        if self.is_uniform(i.operands[0]):
            self.put(f"const uint32_t {t} = {self.src(i.operands[0], 32, None)};")
            for target in targets:
                test = " || ".join(f"{t} == {k}" for k in by_target[target])
                self._jump(n, block, target, f"if ({test}) ")
            self.put("goto next;")
        else:
            a, b = self.src(i.operands[0], 32, 0), self.src(i.operands[0], 32, 1)
            for target in targets:
                test = " | ".join(f"eq_u32({a}, {b}, b32({k}), b32({k}))" for k in by_target[target])
                self.put(f"kw_go(R.flow, {target}, m & ({test}));")
            self.put("goto next;")

    def _barrier(self, n: int, block: BasicBlock, i: Instruction) -> None:
        operands = i.operands
        site = self.site(i)
        if i.has("cluster"):
            operands = (Immediate(16),)
        if i.has("red"):
            value = operands[-1]
            operands = operands[:-1]
            kind = "popc" if i.has("popc") else "and" if i.has("and") else "or"
            self.put(f"kw_barrier_value(w, m, {self.pred(value)}, {('popc', 'and', 'or').index(kind)});")
        for k, field in ((0, "barrier"), (1, "barrier_threads")):
            value = operands[k] if k < len(operands) else Immediate(0)
            if not self.is_uniform(value):
                t = self.temporary()
                self.put(f"const u32 {t} = {self.src(value, 32, 0)}; w->{field} = {t}[0];")
            else:
                self.put(f"w->{field} = {self.src(value, 32, None)};")
        self.put(f"w->barrier_site = {site};")
        if block.divergent and (i.opcode == "bar" or i.has("aligned")):
            self.put(f"if (m != w->alive) kw_divergent_barrier(w, m, {site});")
        self.put(f"kw_park(R.flow, {block.successors[0]}, m); goto next;")
