"""What a model may find out before it answers, where it can call tools: the same sandbox, judge and budget as for its answers.

In: a role and calls with untrusted arguments. Out: texts. Each result is a finding of the run, so a resumed or replayed run gives the same
ones without doing anything twice. Nothing that a tool says is a verdict of the run: what counts is judged when it is answered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from kernelwright.agents import bounds, distil
from kernelwright.agents.brief import Brief
from kernelwright.agents.excerpt import without_sketch
from kernelwright.agents.librarian import Librarian
from kernelwright.agents.models import Call, Tool
from kernelwright.core.kernel import Kernel
from kernelwright.judge.timing.race import STAGES, Race
from kernelwright.run.attempts import Attempt
from kernelwright.run.proof import check_text
from kernelwright.run.workbench import Workbench

LONGEST = 6_000
"""Characters of one result."""
SKETCH = ("sketch", "the whole sketch")
KERNEL = ("kernel", "the whole kernel file, with its class ModelNew")

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("check_sketch", "Parse and check a sketch. Answers its faults with their lines. Costs nothing.", (SKETCH,)),
        Tool(
            "run_sketch",
            "Check a sketch, run it in the interpreter beside the reference, and lower it by rule. Answers where it is wrong.",
            (SKETCH,),
        ),
        Tool("time_sketch", "Lower a sketch by rule and race its kernel against the best one so far.", (SKETCH,)),
        Tool("build_and_run", "Build a kernel file and hold it against the reference, without the clock. Answers the errors.", (KERNEL,)),
        Tool("time_against_best", "Race a kernel file against the best one so far, side by side. It must be correct.", (KERNEL,)),
        Tool("profile", "What bounds a kernel: hot lines, loops left scalar, port pressure; off the device its resources.", (KERNEL,)),
        Tool("read_skill", "Read one of the skills by its name; an empty name lists them.", (("name", "a skill's name, or nothing"),)),
        Tool("search_kernels", "Search kernels of earlier runs of this kind of task.", (("words", "what to look for"),)),
    )
}  # fmt: skip
OFFERED: dict[str, tuple[str, ...]] = {
    "designer": ("check_sketch", "run_sketch", "time_sketch", "read_skill", "search_kernels"),
    "coder": ("build_and_run", "time_against_best", "profile", "read_skill", "search_kernels"),
}
"""Which role may call which tools."""


@dataclass
class Toolbox:
    """The tools of one run. `best` is asked for at each call: the best kernel changes while the run goes on."""

    bench: Workbench
    librarian: Librarian
    brief: Callable[[], Brief]
    best: Callable[[], Attempt | None]

    def offered(self, role: str) -> tuple[Tool, ...]:
        """The tools of a role; what needs a clock is left out where there is none."""
        clock = self.bench.job.timing
        return tuple(TOOLS[name] for name in OFFERED.get(role, ()) if clock or not name.startswith("time_"))

    def call(self, role: str, call: Call) -> str:
        """The result of one call; what is wrong with the call is a result, too."""
        if call.tool not in {tool.name for tool in self.offered(role)}:
            return f"there is no tool {call.tool!r}; there are {', '.join(tool.name for tool in self.offered(role))}"
        given = call.given
        wanted = [name for name, _ in TOOLS[call.tool].parameters]
        if missing := [name for name in wanted if name not in given]:
            return f"{call.tool} needs {', '.join(wanted)}; {missing[0]} is missing"
        return _cut(ACTIONS[call.tool](self, given[wanted[0]]))

    def _check_sketch(self, sketch: str) -> str:
        faults = check_text(sketch, track=self.bench.job.track)
        return "\n".join(faults) or "the sketch checks"

    def _run_sketch(self, sketch: str) -> str:
        proof = self.bench.prove(sketch)
        if proof.faults:
            return "\n".join([f"the sketch is {proof.outcome}", *proof.faults])
        right = "agrees with the reference" if proof.outcome == "right" else "checks; the interpreter did not finish"
        return f"the sketch {right}; " + ("the rules lower it" if proof.kernel else f"no rule lowers it: {proof.lowering}")

    def _time_sketch(self, sketch: str) -> str:
        proof = self.bench.prove(sketch)
        return self._time_against_best(proof.kernel) if proof.kernel else self._run_sketch(sketch)

    def _build_and_run(self, kernel: str) -> str:
        file = Kernel.from_source(without_sketch(kernel) + "\n", dsl=self.bench.job.dsl)
        verdict = self.bench.tried(file)
        return verdict.reason if verdict.ok else distil.failure(verdict, file.source)

    def _time_against_best(self, kernel: str) -> str:
        best = self.best()
        file = Kernel.from_source(kernel + "\n", dsl=self.bench.job.dsl)
        verdict = self.bench.tried(file)
        if not verdict.ok:
            return distil.failure(verdict, file.source)
        if best is None or best.verdict.timing is None:
            return "it is correct; there is no timed kernel to race it against"
        contenders = [best.kernel, file]

        def race() -> dict[str, Any]:
            with Race(self.bench.judge, self.bench.task) as running:
                return {"places": [asdict(place) for place in running.race([one.source for one in contenders], STAGES)]}

        first, second = self.bench.finding("tool race", {"kernels": [one.hash for one in contenders]}, race)["places"]
        if not first["seconds"] or not second["seconds"]:
            return f"the race did not finish: {second['fault'] or first['fault'] or 'no time was measured'}"
        ratio = first["seconds"] / second["seconds"]
        ours, theirs = second["seconds"] * 1e3, first["seconds"] * 1e3
        return f"it is correct and {ratio:.2f}x as fast as the best ({ours:.3g} ms against {theirs:.3g} ms)"

    def _profile(self, kernel: str) -> str:
        said = self.bench.finding("bounds", {"kernel": kernel}, lambda: {"bounds": bounds.explain(kernel)})["bounds"]
        if said:
            return str(said)
        verdict = self.bench.tried(Kernel.from_source(kernel + "\n", dsl=self.bench.job.dsl))
        return distil.speed(verdict) if verdict.ok else distil.failure(verdict, kernel)

    def _read_skill(self, name: str) -> str:
        known = {skill.name: skill for skill in self.librarian.skills(self.brief())}
        found = known.get(name.strip())
        if found is not None:
            return f"{found.title}\n\n{found.text}"
        return "\n".join(f"{skill.name}: {skill.title} ({', '.join(skill.families)})" for skill in known.values())

    def _search_kernels(self, words: str) -> str:
        found = self.librarian.search(self.brief(), words)
        return "\n\n".join(f"{one.reason}\n{one.text}" for one in found) or "no kernel of such a task is known"


ACTIONS: dict[str, Callable[[Toolbox, str], str]] = {
    "check_sketch": Toolbox._check_sketch,
    "run_sketch": Toolbox._run_sketch,
    "time_sketch": Toolbox._time_sketch,
    "build_and_run": Toolbox._build_and_run,
    "time_against_best": Toolbox._time_against_best,
    "profile": Toolbox._profile,
    "read_skill": Toolbox._read_skill,
    "search_kernels": Toolbox._search_kernels,
}


def told(call: Call) -> str:
    """A call in a line."""
    return f"{call.tool}({', '.join(f'{name}: {len(value):,} characters' for name, value in call.arguments)})"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… ({len(text) - LONGEST:,} characters left out)"
