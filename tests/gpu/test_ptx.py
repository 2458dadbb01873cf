"""The parser: what a module says, by the kinds of text that compilers write."""

from __future__ import annotations

import pytest

from kernelwright.core.errors import PtxError
from kernelwright.gpu.ptx import Address, Immediate, Instruction, Label, Register, Special, Symbol, Vector, parse

HEAD = ".version 8.8\n.target sm_80\n.address_size 64\n"


def entry(body: str, *, registers: str = ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<4>;") -> str:
    return f"{HEAD}.visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1)\n.reqntid 128\n{{\n{registers}\n{body}\nret;\n}}\n"


def first(text: str) -> Instruction:
    return parse(entry(text)).entries[0].instructions[0]


def test_entry_with_parameters_and_directives() -> None:
    k = parse(entry("")).entries[0]
    assert [(p.name, p.size, p.offset) for p in k.parameters] == [("k_param_0", 8, 0), ("k_param_1", 4, 8)]
    assert k.directives["reqntid"] == (128,)
    assert k.registers["%r8"] == "b32"
    assert k.body[-1] == k.instructions[-1]


def test_parameter_of_a_struct_and_of_a_pointer() -> None:
    text = (
        HEAD + ".entry k(.param .u64 .ptr .global .align 1 a, .param .align 4 .b8 s[12], .param .u8 c, .param .f64 d) { ret; }"
    )
    a, s, c, d = parse(text).entries[0].parameters
    assert (a.pointer, a.align, a.size) == ("global", 8, 8)
    assert (s.size, s.align, s.offset) == (12, 4, 8)
    assert (c.offset, d.offset) == (20, 24)


def test_operands() -> None:
    i = first("@!%p1 ld.global.v2.b32 { %r1, _ }, [ %rd1 + -8 ];")
    assert i.guard == Register("%p1", "pred", negated=True)
    assert i.operands == (Vector((Register("%r1", "b32"), None)), Address(Register("%rd1", "b64"), -8))
    assert (i.opcode, i.types, i.has("v2")) == ("ld", ("b32",), True)
    assert first("mov.u32 %r1, %ctaid.x;").operands[1] == Special("%ctaid.x")
    assert first("add.f32 %r1, %r2, 0fBF800000;").operands[2] == Immediate(0xBF800000, "f32")
    assert first("add.s32 %r1, %r2, -0x10;").operands[2] == Immediate(-16)
    assert first("mov.u64 %rd1, sm+16;").operands[1] == Symbol("sm", 16)
    paired = first("setp.lt.s32 %p1|%p2, %r1, 0;")
    assert paired.pair
    assert len(paired.operands) == 4


def test_scopes_of_inline_assembly_do_not_share_names() -> None:
    scope = "{\n.reg .pred done;\nWAIT:\nsetp.eq.s32 done, %r1, 0;\n@!done bra WAIT;\n}\n"
    k = parse(entry(scope + scope)).entries[0]
    labels = [item.name for item in k.body if isinstance(item, Label)]
    assert len(set(labels)) == 2
    jumps = [i.operands[0] for i in k.instructions if i.opcode == "bra"]
    assert jumps == [Symbol(name) for name in labels]


def test_locations_skip_inline_assembly_and_follow_inlining() -> None:
    body = """.loc 1 7 2
    mov.u32 %r1, 0;
    // begin inline asm
    .loc 1 8 2
    mov.u32 %r2, 0;
    // end inline asm
    .loc 2 5 1, function_name $L__info_string0, inlined_at 1 9 4
    mov.u32 %r3, 0;
    .loc 1 0 4
    mov.u32 %r4, 0;"""
    text = entry(body) + '.file 1 "a.py"\n.file 2 "/lib" "b.py"\n.section .debug_str { .b8 1 }\n'
    one, two, three, four, _ = parse(text).entries[0].instructions
    assert [str(i.location) for i in (one, two, three, four)] == ["a.py:7", "a.py:7", "/lib/b.py:5", "/lib/b.py:5"]
    assert three.location is not None
    assert str(three.location.outermost) == "a.py:9"


def test_variables_and_their_values() -> None:
    text = HEAD + (
        ".const .align 4 .b8 c[4] = {0, 0, 128, 63};\n.extern .shared .align 16 .b8 sm[];\n.global .u64 g[2] = {c, generic(c)+4};\n"
        ".global .f32 pi = 0f40490FDB;\n.shared .align 4 .f32 t[4][8];"
    )
    c, sm, g, pi, t = parse(text).variables
    assert c.values == (0, 0, 128, 63)
    assert (sm.size, sm.external, sm.align) == (0, True, 16)
    assert g.values == (Symbol("c"), Symbol("c", 4))
    assert pi.values == (0x40490FDB,)
    assert (t.size, t.space) == (128, "shared")


def test_calls_and_tables_of_branches() -> None:
    text = HEAD + (
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
        ".func (.param .b32 r) f(.param .b32 x)\n{\nret;\n}\n"
        ".entry k()\n{\n.reg .b32 %r<3>;\n{ // callseq 0, 0\n.param .b32 p0;\n.param .b32 v0;\nst.param.b32 [p0+0], %r1;\n"
        "call.uni (v0), f, (p0);\nld.param.b32 %r2, [v0+0];\n}\nts: .branchtargets A, B;\nbrx.idx %r1, ts;\nA:\nB:\nret;\n}\n"
    )
    module = parse(text)
    assert [(f.name, f.entry, f.declared_only) for f in module.functions] == [
        ("vprintf", False, True),
        ("f", False, False),
        ("k", True, False),
    ]
    k = module.entries[0]
    call = next(i for i in k.instructions if i.opcode == "call")
    assert isinstance(call.operands[0], Vector)
    assert call.operands[1] == Symbol("f")
    assert k.tables == {"ts": ("A", "B")}


@pytest.mark.parametrize(
    ("body", "line", "reason"),
    [
        ("mov.u32 %r1, %zz;", 8, "nor"),
        ("mov.u32 ], 0;", 8, "operand"),
        (".nonsense 4;", 8, "nonsense"),
        ("add.s32 %r1", 8, "'"),
    ],
)
def test_refused_with_its_line(body: str, line: int, reason: str) -> None:
    with pytest.raises(PtxError, match=reason) as error:
        parse(entry(body).replace("\nret;\n}", "\n}") if body == "add.s32 %r1" else entry(body), "k.ptx")
    assert error.value.line == line
    assert "k.ptx:8" in str(error.value)
