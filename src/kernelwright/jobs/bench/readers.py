"""Other projects' task folders, as text of task files of ours: a folder in, items out; None where the folder is of no such kind.

- robust-kbench: a folder for each task with `func_forward.py` (`Model`, `get_inputs` with keywords) and `config_forward.json`, which
  lists the keywords; further settings of the inputs become further shapes.
- flashinfer-trace: `definitions/**/NAME.json` (axes, inputs, a reference function `run`) and `workloads/**/NAME.jsonl` (sizes of the
  variable axes). Workloads whose inputs lie in files are not read; such a task is named with this reason.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.core.errors import TaskError
from kernelwright.core.task.task import read_text

MOST_SHAPES = 4
DEFAULT_AXIS = 128
"""For a variable axis of a definition that has no workload."""


@dataclass(frozen=True)
class Item:
    """A task as text, or the reason why it is none."""

    name: str
    path: str
    source: str | None
    problem: str = ""
    family: str = ""


class Unreadable(Exception):
    """Why a foreign task cannot be made one of ours, in words."""


def read(folder: Path) -> list[Item] | None:
    """The folder's tasks, when it has one of the known formats."""
    if (folder / "definitions").is_dir():
        found = sorted((folder / "definitions").rglob("*.json"))
        return [_item(path.stem, path, lambda path=path: _flashinfer(folder, path)) for path in found]
    kernels = sorted(folder.rglob("func_forward.py"))
    if kernels:
        return [_item(path.parent.name, path, lambda path=path: _robust(path)) for path in kernels]
    return None


def _item(name: str, path: Path, make: Any) -> Item:
    try:
        source, family = make()
    except (Unreadable, TaskError) as error:
        return Item(name, str(path), None, getattr(error, "reason", str(error)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return Item(name, str(path), None, f"the file is not of the expected form: {type(error).__name__}: {error}"[:300])
    return Item(name, str(path), source, family=family)


def _robust(path: Path) -> tuple[str, str]:
    source = read_text(path)
    settings = path.with_name("config_forward.json")
    config = json.loads(settings.read_text()) if settings.exists() else {}
    shared = _first(config, "single_shared_configs")
    init = {**_first(config, "single_init_configs"), **shared}
    inputs = [{**_first(config, "single_input_configs"), **shared}]
    inputs += [{**each, **shared} for each in config.get("multi_input_configs", ())]
    inputs = [each for place, each in enumerate(inputs) if each not in inputs[:place]]
    added = [
        "",
        "",
        "_drawn = get_inputs",
        "",
        "",
        "def get_inputs():",
        f"    return list(_drawn(**{inputs[0]!r}))",
        "",
        "",
        "def get_init_inputs():",
        f"    return {init!r}",
    ]
    if len(inputs) > 1:
        calls = "".join(f"        list(_drawn(**{each!r})),\n" for each in inputs[:MOST_SHAPES])
        added += ["", "", "def get_inputs_dyn_list():", f"    return [\n{calls}    ]"]
    return source.rstrip() + "\n".join(added) + "\n", ""


def _first(config: dict[str, Any], name: str) -> dict[str, Any]:
    found = config.get(name) or [{}]
    return dict(found[0])


def _flashinfer(folder: Path, path: Path) -> tuple[str, str]:
    definition = json.loads(path.read_text())
    if "def run(" not in definition["reference"]:
        raise Unreadable("its reference defines no function run")
    constants = {name: axis["value"] for name, axis in definition["axes"].items() if axis.get("type") == "const"}
    free = [name for name in definition["axes"] if name not in constants]
    loads = _workloads(folder, path.stem)
    shapes = [{name: load["axes"].get(name, DEFAULT_AXIS) for name in free} for load in loads] or [
        dict.fromkeys(free, DEFAULT_AXIS)
    ]
    shapes = [each for place, each in enumerate(shapes) if each not in shapes[:place]][:MOST_SHAPES]
    given = loads[0].get("inputs", {}) if loads else {}
    made = ", ".join(_tensor(name, spec, given.get(name, {})) for name, spec in definition["inputs"].items())
    names = ", ".join(definition["inputs"])
    lines = [
        definition["reference"].rstrip(),
        "",
        "import torch",
        "",
        *(f"{name} = {value}" for name, value in constants.items()),
        "",
        "",
        "class Model(torch.nn.Module):",
        f"    def forward(self, {names}):",
        f"        return run({names})",
        "",
        "",
        f"def make_inputs({', '.join(free)}):",
        f"    return [{made}]",
        "",
        "",
        "def get_inputs():",
        f"    return make_inputs({_keywords(shapes[0])})",
        "",
        "",
        "def get_init_inputs():",
        "    return []",
    ]
    if len(shapes) > 1:
        calls = ", ".join(f"make_inputs({_keywords(each)})" for each in shapes)
        lines += ["", "", "def get_inputs_dyn_list():", f"    return [{calls}]"]
    return "\n".join(lines) + "\n", str(definition.get("op_type", ""))


def _workloads(folder: Path, name: str) -> list[dict[str, Any]]:
    found = sorted((folder / "workloads").rglob(f"{name}.jsonl")) if (folder / "workloads").is_dir() else []
    rows = [json.loads(line) for file in found for line in file.read_text().splitlines() if line.strip()]
    return [row.get("workload", row) for row in rows]


def _tensor(name: str, spec: dict[str, Any], given: dict[str, Any]) -> str:
    kind = given.get("type", "random")
    if kind == "scalar" or spec["shape"] is None:
        return repr(given.get("value", 1))
    if kind != "random":
        raise Unreadable(f"the values of its input {name} lie in a {kind} file, which is not read")
    shape = "(" + "".join(f"{axis}, " for axis in spec["shape"]) + ")"
    dtype = str(spec["dtype"])
    if dtype.startswith(("float8", "float4")):
        raise Unreadable(f"its input {name} is {dtype}, which is not supported on a CPU")
    if dtype == "bool":
        return f"torch.rand({shape}) < 0.5"
    if dtype.startswith("int"):
        raise Unreadable(f"its input {name} holds integers ({dtype}) whose range the definition does not tell")
    return f"torch.randn({shape}, dtype=torch.{dtype})"


def _keywords(shape: dict[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in shape.items())
