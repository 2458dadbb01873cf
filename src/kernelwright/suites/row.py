"""One row of a suite's table, and how it becomes the source of a task file.

In: a `Row`: sizes by upper-case name, layers and forward as Python lines, inputs as expressions over the sizes.
Out: the text of a KernelBench-style file. Sizes that the layers use become arguments of `Model.__init__`, in lower case, and
are passed by `get_init_inputs`: so a row exercises constructor arguments without spelling them out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

SIZE_NAME = re.compile(r"\b[A-Z][A-Z0-9]*\b")
FACTORIES = ("arange", "rand", "randint", "randn", "randperm", "zeros")


class SuiteTask(NamedTuple):
    """A task of a suite: `name` is unique in the suite, `family` groups the report, `source` is a whole task file."""

    name: str
    family: str
    source: str


@dataclass(frozen=True)
class Row:
    """What a task computes. `forward` is an expression, or lines that end in `return`; `dyn` lists other sizes to run."""

    name: str
    family: str
    forward: str
    inputs: Mapping[str, str]
    sizes: Mapping[str, int] = field(default_factory=dict)
    layers: str = ""
    dyn: tuple[Mapping[str, int], ...] = ()
    dynamic: str = ""
    """What varies from call to call, as `get_dynamic` says it."""


def at(**sizes: tuple[int, ...]) -> tuple[Mapping[str, int], ...]:
    """Further sizes of a row, one of each name at a time: `at(B=(1, 3), T=(7, 64))`."""
    return tuple(dict(zip(sizes, values, strict=True)) for values in zip(*sizes.values(), strict=True))


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").split("\n") if line.strip()]


def sizes_of(row: Row, text: str) -> list[str]:
    """The row's sizes that occur in a text, in the table's order."""
    used = set(SIZE_NAME.findall(text))
    return [name for name in row.sizes if name in used]


def render(row: Row, suite: str) -> str:
    """The task file of a row."""
    used = " ".join((row.forward, row.layers, *row.inputs.values()))
    factories = [name for name in FACTORIES if re.search(rf"(?<![\w.]){name}\(", used)]
    imports = ["import torch"] if re.search(r"\btorch\.", used) else []
    if re.search(r"\bF\.", used):
        imports.append("import torch.nn.functional as F")
    imports.append(f"from torch import {', '.join(['nn', *factories])}")
    constants = [f"{name} = {value}" for name, value in row.sizes.items()]
    blocks = [[f'"""{suite}/{row.name} ({row.family})."""'], imports]
    if constants:
        blocks.append(constants)
    return "\n\n".join("\n".join(block) for block in blocks) + "\n\n\n" + "\n\n\n".join((model(row), *functions(row))) + "\n"


def model(row: Row) -> str:
    parameters = sizes_of(row, row.layers)
    text = ["class Model(nn.Module):"]
    if row.layers:
        layers = row.layers
        for name in parameters:
            layers = re.sub(rf"\b{name}\b", name.lower(), layers)
        text.append(f"    def __init__({', '.join(['self', *(name.lower() for name in parameters)])}):")
        text += ["        super().__init__()", *(f"        {line}" for line in lines(layers)), ""]
    body = lines(row.forward)
    if len(body) == 1 and not body[0].startswith("return"):
        body = [f"return {body[0]}"]
    text.append(f"    def forward(self, {', '.join(row.inputs)}):")
    return "\n".join((*text, *(f"        {line}" for line in body)))


def functions(row: Row) -> list[str]:
    made = f"[{', '.join(row.inputs.values())}]"
    init = f"def get_init_inputs():\n    return [{', '.join(sizes_of(row, row.layers))}]"
    if not row.dyn:
        return [f"def get_inputs():\n    return {made}", init]
    free = list(dict.fromkeys(name for sizes in row.dyn for name in sizes))
    local = made
    for name in free:
        local = re.sub(rf"\b{name}\b", name.lower(), local)
    make = f"def make_inputs({', '.join(f'{name.lower()}={name}' for name in free)}):\n    return {local}"
    calls = [f"make_inputs({', '.join(f'{name.lower()}={value}' for name, value in sizes.items())})" for sizes in row.dyn]
    dyn = (
        "def get_inputs_dyn_list():\n    return [\n        make_inputs(),\n"
        + "".join(f"        {call},\n" for call in calls)
        + "    ]"
    )
    varying = [f'def get_dynamic():\n    return "{row.dynamic}"'] if row.dynamic else []
    return [make, "def get_inputs():\n    return make_inputs()", dyn, *varying, init]
