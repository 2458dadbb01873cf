"""docs/architecture.md is true, and the shape of the source is what it says: rooms, borders, sizes, names."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "kernelwright"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FILES = sorted(SOURCE.rglob("*.py"))
MOST_LINES, MOST_FILES, MOST_BORDERS = 500, 20, 12


def between(name: str) -> str:
    """The part of the page between two marks."""
    found = re.search(rf"<!-- {name}[^\n]*-->\n(.*?)<!-- /{name} -->", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in FILES:
        yield path, ast.parse(path.read_text())


def test_the_picture_of_the_rooms_is_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "rooms")
    agreed = [re.findall(r"\w+", layer) for layer in layers if layer != "__main__"]
    rooms = {room for layer in agreed for room in layer}
    drawn = [[word for word in re.split(r"\s+", line) if word in rooms] for line in between("rooms").splitlines()[1:-1]]
    firsts = [line[: len(layer)] for line, layer in zip(drawn, agreed, strict=True)]
    assert [sorted(line) for line in firsts] == [sorted(layer) for layer in agreed]
    assert {path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()} <= rooms


def test_generate_crosses_few_borders_and_each_file_knows_the_next() -> None:
    way = re.findall(r"`(\w+/[\w/]+\.py)`", between("way"))
    assert all((SOURCE / path).is_file() for path in way)
    rooms = [path.split("/")[0] for path in way]
    assert sum(one != other for one, other in pairwise(rooms)) <= MOST_BORDERS
    known = "\n".join((SOURCE / path).read_text() for path in way)
    for path in way[1:]:
        module = "kernelwright." + path.removesuffix(".py").replace("/", ".")
        room, name = module.rsplit(".", 1)
        entry = module.removeprefix("kernelwright.") + ":"
        ways = (module, entry, f"from {room} import {name}", f'("{name}", "')
        assert any(text in known for text in ways), path


def test_every_path_that_the_page_names_exists() -> None:
    for path in re.findall(r"`((?:compiler|core|agents|tests|jobs|run|search|target)/[\w/]+(?:\.py|/)?)`", PAGE):
        assert (SOURCE / path).exists() or (ROOT / path).exists(), path


def test_files_and_folders_fit_in_the_head() -> None:
    assert [str(path.relative_to(SOURCE)) for path in FILES if len(path.read_text().splitlines()) > MOST_LINES] == []
    full = [folder for folder in SOURCE.rglob("*") if folder.is_dir() and len(list(folder.glob("*.py"))) > MOST_FILES]
    assert full == []


def test_no_language_is_asked_for_by_its_name() -> None:
    said = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in FILES
        if "backends" not in path.parts
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if re.search(r"(dsl|language|name) (==|in) \(?\"(cpp|cuda_c|triton|tilelang)\"", line)
    ]
    assert not said


KNOWN = {
    "compiler/backends/tilelang/interpreter.py: _box",
}
"""Private names that are still imported; none may be added."""


def test_private_names_stay_in_their_file() -> None:
    said = {
        f"{path.relative_to(SOURCE)}: {alias.name}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kernelwright")
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    }
    assert said <= KNOWN


SAME_JOB = {
    *("generate", "task", "tune", "verify", "migrate", "bench", "sketch"),  # a command of the door, and what it asks for
    *(
        "nodes",
        "parse",
        "types",
        "module",
        "expressions",
        "operations",
        "interpreter",
        "library",
    ),  # of a language: ours, PTX, a backend's
    *("arithmetic", "flow", "memory", "table"),  # of PTX: executed, and read back
    *(
        "dtypes",
        "build",
        "limits",
        "nouns",
        "lessons",
        "journal",
        "report",
        "models",
        "run",
        "worker",
        "compare",
        "bounds",
        "sampling",
        "skills",
        "literals",
        "contents",
        "emit",
        "codegen_options",
    ),
    *("race", "races", "finish_race", "partition", "candidate", "regions", "record", "reference", "hardware"),
    *("loops", "tiles", "values", "reader", "forward", "program", "source", "elements", "schedule", "kernel", "runtime"),
    "__init__",
}
"""Words that files of different rooms share: each is the same thing in its own room. A new file takes a word of its own."""
NEW = 3
"""How many shared names may come before somebody looks at the list again."""


def test_files_of_sibling_rooms_have_names_of_their_own() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path in FILES:
        places[path.stem].add(path.relative_to(SOURCE).parts[0])
    shared = {name: rooms for name, rooms in places.items() if len(rooms) > 1 and name not in SAME_JOB}
    assert len(shared) <= NEW


EXTRA = '''
"""An operator with a schedule family of its own, and a language, in a package of somebody else."""

from kernelwright.compiler.backends.cpp import Cpp
from kernelwright.compiler.frontend.operators.table import rule
from kernelwright.compiler.graph.values import CustomKernel
from kernelwright.compiler.schedule.custom import parallel_nest
from kernelwright.sketch import nodes


@rule("signbit")
def signbit(result, x):
    value = CustomKernel(x.shape, nodes.DType.bool, None, (x,))

    def write(builder, group):
        region = (nodes.At(nodes.Sym("i")), nodes.Span(nodes.Int(0), nodes.Int(x.shape[1])))
        tile = nodes.Load(x.tensor, region)
        negative = nodes.Binary("lt", tile, nodes.Full((), 0.0, x.dtype))
        body = [nodes.Store(builder.placed[id(value)], region, negative)]
        builder.kernel("signs", parallel_nest([("i", x.shape[0])], body))

    value.write = write
    value.group = [value]
    return value


class Other(Cpp):
    name = "other"
    title = "C++ by another name"
    sign = r"^# other"
    precedence = 0


LANGUAGE = Other()
'''

SHEET = """
title = "A GPU of tomorrow"
kind = "cuda"
arch = "sm_90"
cores = 200
bandwidth = 9e12
shared_memory = 262144
registers = 65536
features = ["tensor_core"]
source = "made up for a test"

[peak_flops]
float32 = 90e12
"""

USED = """
import torch
from kernelwright.compiler.designer import design_module
from kernelwright.compiler.language import language
from kernelwright.core.kernel import Kernel
from kernelwright.target import Target

class Signs(torch.nn.Module):
    def forward(self, x):
        return torch.signbit(x)

design = design_module(Signs().eval(), [torch.randn(3, 5)])[0]
assert [step.name for step in design.sketch.steps] == ["signs"]
text = language("other").lower(design.sketch)
space = {}
exec(compile(text, "kernel.py", "exec"), space)
x = torch.randn(3, 5)
torch.testing.assert_close(space["ModelNew"]()(x), torch.signbit(x))
assert Kernel.from_source("# other\\nimport ctypes").dsl == "other"
assert Target.load("tomorrow").cores == 200
"""


def test_a_package_adds_a_schedule_family_a_language_and_a_target(tmp_path: Path) -> None:
    import os
    import subprocess
    import sys

    (tmp_path / "extra.py").write_text(EXTRA)
    known = tmp_path / "extra-1.dist-info"
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1\n")
    groups = "[kernelwright.dsl]\nother = extra:LANGUAGE\n[kernelwright.operators]\nextra = extra:signbit\n"
    (known / "entry_points.txt").write_text(groups)
    (tmp_path / "tomorrow.toml").write_text(SHEET)
    place = os.environ | {"PYTHONPATH": str(tmp_path), "KERNELWRIGHT_TARGETS": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", USED], env=place, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    pytest.main([__file__])
