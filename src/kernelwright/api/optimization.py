"""`kernelwright.optimize(model, inputs)`: a whole program, ahead of time, accepted only if it is faster end to end.

In: a model and inputs as it is called with. Out: `Optimized`: the faster callable or the model itself, and why. The order of steps:

1. eager's graph node by node: where the time goes; pieces are tried from the dearest on, within a budget (the torch.compile backend)
2. several designs of each piece are built, held against eager and raced; what is found stays in the cache, so a second call goes on
3. the whole, Dynamo's guards included, against the model in turns: accepted where the interval of its gain lies above 1 and above what
   eager gains over itself
4. a journal in the store, a report in a folder, a module that patches the user's class (`patch`)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from kernelwright.api.bounds import tensors
from kernelwright.api.explanation import RECORDS, Explanation, Record
from kernelwright.api.race import Outcome, race
from kernelwright.jobs.start import open_store

DESIGNS = 2
"""Designs of a piece that are raced: more cost builds, and the first is the Designer's best guess."""


@dataclass
class Optimized:
    """Called like the model. `accepted` says whether ours serves; `outcome` is the race of the whole, None where nothing was to race."""

    model: Any
    run: Callable[..., Any]
    accepted: bool
    why: str
    outcome: Outcome | None
    records: list[Record] = field(default_factory=list)
    name: str = ""

    def __call__(self, *args: Any, **named: Any) -> Any:
        with torch.no_grad():
            return self.run(*args, **named)

    @property
    def explanation(self) -> Explanation:
        """What became of each graph and piece."""
        return Explanation(self.records)

    def data(self) -> dict[str, Any]:
        """All that was found out, as JSON."""
        return {
            "name": self.name,
            "accepted": self.accepted,
            "why": self.why,
            "whole": asdict(self.outcome) if self.outcome is not None else None,
            "before": _summed([r.before for r in self.records]),
            "after": _summed([r.after or r.before for r in self.records]),
            "graphs": [
                {
                    "operators": r.operators,
                    "used": r.used,
                    "gain": r.gain,
                    "low": r.low,
                    "high": r.high,
                    "why": r.why,
                    "seconds": r.seconds,
                    "pieces": [asdict(row) for row in r.rows],
                }
                for r in self.records
            ],
        }

    def write(self, folder: Path) -> None:
        """`report.json` and `report.md`."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").write_text(json.dumps(self.data(), indent=1) + "\n")
        (folder / "report.md").write_text(_markdown(self))


def optimize(
    model: Any,
    inputs: Sequence[Any],
    *,
    budget: float = 300.0,
    designs: int = DESIGNS,
    seconds: float = 1.0,
    store: str = "",
    out: Path | str | None = None,
    name: str = "",
) -> Optimized:
    """The model faster, or unchanged. `budget` bounds the seconds that go into designs, builds and races of a graph; `store` names the
    store of runs (without one, or without SQLAlchemy, nothing is journalled); `out` is a folder for the report."""
    name = name or type(model).__name__
    with ExitStack() as stack:
        opened = open_store(store, stack, needed=False)
        run = opened.begin({"command": "optimize", "task": name, "dsl": "cpp", "budget": budget}) if opened else None
        made = _optimized(model, inputs, budget, designs, seconds)
        made.name = name
        if run is not None:
            for record in made.records:
                for row in record.rows:
                    run.step("piece", row.why or "faster", {"operators": row.operators}, facts=asdict(row))
                run.step("graph", record.why or "faster", {"number": str(record.number)}, facts={"gain": record.gain})
            run.step("whole", made.why, facts=asdict(made.outcome) if made.outcome is not None else {})
            run.finish("done" if made.accepted else "failed")
    if out is not None:
        made.write(Path(out))
    return made


def _optimized(model: Any, inputs: Sequence[Any], budget: float, designs: int, seconds: float) -> Optimized:
    known = len(RECORDS)
    compiled = torch.compile(model, backend="kernelwright", options={"budget": budget, "designs": designs})
    with torch.no_grad():
        want = [t.clone() if isinstance(t, torch.Tensor) else t for t in tensors(model(*inputs))]
        compiled(*inputs)
        compiled(*inputs)
        records = RECORDS[known:]
        if not any(r.used for r in records):
            why = next((r.why for r in records if r.why), "Dynamo made no graph of it")
            return Optimized(model, model, False, f"no graph is faster with ours: {why}", None, records)
        if [_kind(t) for t in tensors(compiled(*inputs))] != [_kind(t) for t in want]:
            return Optimized(model, model, False, "results have other shapes or dtypes", None, records)
        outcome = race(lambda: model(*inputs), lambda: compiled(*inputs), seconds=seconds)
    busy = "" if outcome.quiet else ", on a busy machine"
    if not outcome.won:
        return Optimized(model, model, False, f"the whole is not faster beyond doubt{busy}", outcome, records)
    return Optimized(model, compiled, True, f"faster end to end{busy}", outcome, records)


def _kind(value: Any) -> Any:
    return (value.shape, value.dtype) if isinstance(value, torch.Tensor) else type(value)


def _summed(found: Sequence[dict[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for one in found:
        for name, seconds in one.items():
            total[name] = total.get(name, 0.0) + seconds
    return dict(sorted(total.items(), key=lambda item: -item[1]))


def _markdown(made: Optimized) -> str:
    data, outcome = made.data(), made.outcome
    before, after = data["before"], data["after"]
    rows = [row for record in made.records for row in record.rows]
    lines = [f"# {made.name}: {'accepted' if made.accepted else 'left as it is'}", "", f"{made.why}."]
    if outcome is not None:
        lines += [
            "",
            f"End to end, in turns: eager {outcome.eager * 1e3:.3f} ms, ours {outcome.ours * 1e3:.3f} ms: "
            f"{outcome.gain:.2f}x [{outcome.low:.2f}, {outcome.high:.2f}], noise {outcome.noise:.1%}, {torch.get_num_threads()} thread(s).",
        ]
    lines += ["", "## Where the time went", "", "| operator | before ms | after ms |", "| --- | --- | --- |"]
    for name in dict.fromkeys([*before, *after]):
        lines.append(f"| {name} | {_ms(before.get(name))} | {_ms(after.get(name))} |")
    lines += ["", "Node by node, eagerly; calls of kernels cost a little more so than in the graph.", ""]
    for title, chosen in (("In use", [r for r in rows if r.used]), ("Tried and refused", [r for r in rows if not r.used])):
        lines += [f"## {title}", "", "| piece | times | share of its graph | gain | why |", "| --- | --- | --- | --- | --- |"]
        for row in chosen:
            gain = f"{row.gain:.2f}x" if row.gain else "–"
            lines.append(f"| {row.operators} | {row.times} | {row.share:.1%} | {gain} | {row.why} |")
        lines.append("")
    lines += ["## Graphs", "", "```", str(made.explanation), "```", ""]
    return "\n".join(lines)


def _ms(seconds: float | None) -> str:
    return f"{seconds * 1e3:.3f}" if seconds is not None else "–"
