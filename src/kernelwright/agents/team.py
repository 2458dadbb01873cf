"""The team at work: the Conductor decides, the roles answer, the judge judges, until the Conductor stops.

In: a workbench (task, judge, drafter, memory), the models of the roles, a journal. Out: the best attempt. The built-in kernel is the
first seed, and only a better verdict replaces it. One loop; each move is one method that ends in a `Turn`. What a model says is parsed
(`answers.py`), never executed: sketches go to the interpreter, kernels to the judge's sandbox.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from kernelwright.agents import answers, bounds, distil, roles
from kernelwright.agents.asking import Asking, Said
from kernelwright.agents.brief import Brief, brief_of
from kernelwright.agents.conductor import Allowance, Decision, Kind, Move, Table, Turn, standard
from kernelwright.agents.conductor.check import LONGEST
from kernelwright.agents.excerpt import without_sketch
from kernelwright.agents.librarian import Librarian
from kernelwright.agents.models import Ask, Model
from kernelwright.agents.toolbox import Toolbox
from kernelwright.core.errors import (
    BudgetReached,
    ConfigError,
    JudgeError,
    KernelwrightError,
    ModelError,
    StoreError,
    TaskError,
    ToolMissing,
)
from kernelwright.core.kernel import Kernel
from kernelwright.core.verdict import Verdict
from kernelwright.run import attempts
from kernelwright.run.attempts import Attempt, Author
from kernelwright.run.drafts import DraftError
from kernelwright.run.journal import Journal
from kernelwright.run.observer import Observer
from kernelwright.run.proof import Proof
from kernelwright.run.workbench import Workbench

Keep = Callable[[Attempt], None]

FATAL = (TaskError, ConfigError, JudgeError, ToolMissing, StoreError)
"""What no model can help with. That the built-in mind has no kernel, or died over the task, is not among it."""


@dataclass
class Team:
    """One run. `seed` is called once for the built-in mind's best kernel; `keep` whenever there is a better result than before."""

    bench: Workbench
    designer: Model
    coder: Model
    journal: Journal
    librarian: Librarian
    seed: Callable[[], Attempt]
    keep: Keep
    observer: Observer = field(default_factory=Observer)
    table: Table = field(default_factory=standard)
    turns: tuple[Turn, ...] = ()
    tried: list[Attempt] = field(default_factory=list)
    best: Attempt | None = None
    seeded: Attempt | None = None
    _design: int = 0
    _sketch: str = ""
    _proof: Proof | None = None
    _current: Attempt | None = None
    _brief: Brief | None = None

    def __post_init__(self) -> None:
        toolbox = Toolbox(self.bench, self.librarian, lambda: self.brief, lambda: self.best)
        self._asking = Asking(self.bench, self.journal, self.observer, toolbox)

    def run(self) -> Decision:
        """Work until the Conductor stops; the reason is in the decision, the result in `best`."""
        effort = self.bench.job.effort
        allowance = Allowance(effort.designs, effort.repairs, effort.patches, effort.improvements, effort.renewals)
        while True:
            decision = self.table.next(self.turns, allowance)
            if len(self.turns) >= LONGEST:
                decision = Decision(Move.stop, f"a run of {LONGEST} turns ends, whatever its table says", "longest")
            self.observer.note(f"{decision.move.replace('_', ' ')}: {decision.reason}")
            if decision.move is Move.stop:
                self.journal.step("stop", decision.reason, rule=decision.rule, **self._spent())
                return decision
            self.turns += self._carry_out(decision)

    def _carry_out(self, decision: Decision) -> tuple[Turn, ...]:
        """The turns of a move: one, or one for each of several designs that were asked for at once."""
        budget = self.bench.job.budget
        if budget is not None and decision.move is not Move.seed and self.bench.seconds > budget:
            return (Turn(decision.move, Kind.exhausted, self._design, note=f"the budget of {budget:g} s is used up"),)
        try:
            if decision.move is Move.design and (abreast := self._abreast()) > 1:
                return self._designs_abreast(decision, abreast)
            return (MOVES[decision.move](self, decision),)
        except BudgetReached as error:
            return (Turn(decision.move, Kind.exhausted, self._design, note=str(error)),)
        except ModelError as error:
            return (Turn(decision.move, Kind.model_failed, self._design, note=str(error)),)

    # -- the moves -----------------------------------------------------------------------------------------------------------

    def _seed(self, decision: Decision) -> Turn:
        try:
            self.seeded = self.seed()
        except KernelwrightError as error:
            if isinstance(error, FATAL) or (isinstance(error, DraftError) and error.exit_code == 2):
                raise
            self.journal.step("seed", decision.reason, status="no_seed", error=str(error))
            return Turn(Move.seed, Kind.no_seed, author="builtin", error=str(error), note=str(error))
        self.tried.append(self.seeded)
        verdict = self.seeded.verdict
        if verdict.ok:
            self.best = self.seeded
        kind = distil.kind(verdict)
        return Turn(
            Move.seed, kind, 0, "builtin", gain=attempts.gain(verdict, None), roofline=_roofline(verdict), note=verdict.reason
        )

    def _new_design(self, decision: Decision) -> Turn:
        if not (self.turns[-1].move is Move.design and self.turns[-1].kind is Kind.unreadable):
            self._design = max(turn.design for turn in self.turns) + 1
        self._sketch, self._proof, self._current = "", None, None
        brief = self.brief
        library = self.librarian.library(brief, "design")
        return self._designed(decision, roles.design(brief, library, self.seeded, self.best, self.tried))

    def _abreast(self) -> int:
        """How many designs are asked for at once: several at the beginning, where the effort allows it; later each learns of the last."""
        effort = self.bench.job.effort
        begun = any(turn.move is Move.design for turn in self.turns)
        return 1 if begun else min(effort.designs_abreast, effort.designs)

    def _designs_abreast(self, decision: Decision, count: int) -> tuple[Turn, ...]:
        """Several designs by different approaches; the best of them is gone on from, and its turn is the last."""
        library = self.librarian.library(self.brief, "design")
        asks = [
            replace(
                roles.design(self.brief, library, self.seeded, self.best, self.tried, roles.approach(number, count)),
                temperature=roles.TEMPERATURES[number % len(roles.TEMPERATURES)],
            )
            for number in range(count)
        ]
        made: list[tuple[Turn, tuple[str, Proof | None, Attempt | None]]] = []
        for said in self._asking.ask_all(self.designer, asks):
            self._design += 1
            self._sketch, self._proof, self._current = "", None, None
            made.append((self._received(decision, said), (self._sketch, self._proof, self._current)))
        useful = [one for one in made if one[0].kind is not Kind.declined] or made[:1]
        chosen = max(useful, key=lambda one: (_promise(one[0]), one[0].design))
        self._design, (self._sketch, self._proof, self._current) = chosen[0].design, chosen[1]
        if chosen[0].kind is not Kind.unreadable:
            self._asking.readable()
        return (*(turn for turn, _ in useful if turn is not chosen[0]), chosen[0])

    def _repair_design(self, decision: Decision) -> Turn:
        if self._proof is not None and self._proof.faults:
            complaint = "does not check" if self._proof.outcome == "malformed" else "computes something else than the reference"
            faults = self._proof.faults
        else:
            assert self._current is not None
            complaint = "was lowered by rule to a kernel that the judge rejects"
            faults = (distil.failure(self._current.verdict, self._current.kernel.source),)
        return self._designed(decision, roles.repair_design(self.brief, self._sketch, complaint, faults))

    def _designed(self, decision: Decision, ask: Ask) -> Turn:
        """A sketch is asked for."""
        return self._received(decision, self._asking.ask(self.designer, ask))

    def _received(self, decision: Decision, said: Said) -> Turn:
        """A sketch has come: it is proved; lowered by rule where it can be; judged."""
        before = self._sketch
        ask = said.ask
        if decision.move is Move.design and (why := answers.declined(said.text)):
            self._asking.readable()
            facts = {"role": ask.role, **said.answer.facts(), "design": self._design, "status": "declined"}
            self.journal.step(str(decision.move), decision.reason, {"prompt": said.ask.user}, said.text, **facts)
            return Turn(decision.move, Kind.declined, self._design, "designer", note=why)
        try:
            sketch = answers.code_block(said.whole(), what="sketch", must_contain="returns(")
        except answers.Unreadable as error:
            return self._unreadable(decision, "designer", said, error)
        self._asking.readable()
        answer = said.answer
        self._sketch = sketch
        self._proof = proof = self.bench.prove(sketch)
        facts = {
            "role": ask.role,
            **answer.facts(),
            "design": self._design,
            "status": proof.outcome,
            "faults": list(proof.faults) or None,
        }
        self.journal.step(str(decision.move), decision.reason, {"prompt": ask.user, "sketch": before}, sketch, **facts)
        if proof.outcome in ("malformed", "misdesigned"):
            kind = Kind.malformed if proof.outcome == "malformed" else Kind.misdesigned
            return Turn(
                decision.move,
                kind,
                self._design,
                "designer",
                distil.plain("\n".join(proof.faults)),
                False,
                note=proof.faults[0],
            )
        right = True if proof.outcome == "right" else None
        if not proof.kernel:
            self._current = None
            return Turn(decision.move, Kind.proved, self._design, "designer", sketch_right=right, note=proof.lowering)
        return self._judged(decision, proof.kernel, "rules", "lowered by rule from the sketch")

    def _code(self, decision: Decision) -> Turn:
        proved = self._proof is not None and self._proof.outcome in ("right", "unproved")
        sketch = self._sketch if proved else ""
        library = self.librarian.library(self.brief, "code")
        right = self._proof is not None and self._proof.outcome == "right"
        return self._written(decision, roles.code(self.brief, library, sketch, right), sketch)

    def _rewrite(self, decision: Decision) -> Turn:
        failed = [a for a in self.tried if a.design == self._design and not a.verdict.ok]
        library = self.librarian.library(self.brief, "code")
        return self._written(decision, roles.rewrite(self.brief, library, failed), failed[-1].sketch)

    def _written(self, decision: Decision, ask: Ask, sketch: str) -> Turn:
        """A whole kernel file is asked for and judged."""
        said = self._asking.ask(self.coder, ask)
        try:
            kernel = answers.code_block(said.whole(), what="kernel file", must_contain="ModelNew")
        except answers.Unreadable as error:
            return self._unreadable(decision, "coder", said, error)
        self._asking.readable()
        kernel = without_sketch(kernel)
        facts = {"role": ask.role, **said.answer.facts(), "design": self._design}
        self.journal.step(str(decision.move), decision.reason, {"prompt": said.ask.user, "sketch": sketch}, kernel, **facts)
        return self._judged(decision, kernel, "coder", "written by the Coder", sketch, said=answers.words(said.text))

    def _patch(self, decision: Decision) -> Turn:
        assert self._current is not None
        library = self.librarian.library(
            self.brief, "patch", distil.failure(self._current.verdict, self._current.kernel.source)
        )
        mismatch = self._current.verdict.mismatch
        known = self._current.sketch_right and mismatch is not None and mismatch.place
        seen = self.bench.recounted(self._current.sketch, mismatch) if known and mismatch else ""
        return self._patched(decision, roles.patch(self.brief, library, self._current, seen), self._current)

    def _improve(self, decision: Decision) -> Turn:
        base = self._fastest_of_design()
        said = self.bench.finding(
            "bounds", {"kernel": base.kernel.source}, lambda: {"bounds": bounds.explain(base.kernel.source)}
        )["bounds"]
        library = self.librarian.library(self.brief, "improve")
        return self._patched(decision, roles.improve(self.brief, library, base, said, self.tried), base)

    def _improve_best(self, decision: Decision) -> Turn:
        assert self.best is not None
        self._design = self.best.design
        self._sketch, self._proof = self.best.sketch, None
        return self._improve(decision)

    def _patched(self, decision: Decision, ask: Ask, base: Attempt) -> Turn:
        """Search/replace blocks are asked for, applied and judged."""
        said = self._asking.ask(self.coder, ask)
        source = without_sketch(base.kernel.source)
        try:
            kernel, change = answers.revised(said.whole(), source)
        except answers.Unreadable as error:
            return self._unreadable(decision, "coder", said, error)
        self._asking.readable()
        kernel = without_sketch(kernel)
        inputs = {"prompt": said.ask.user, "kernel": base.kernel.source, "sketch": base.sketch}
        facts = {"role": ask.role, **said.answer.facts(), "design": self._design}
        self.journal.step(str(decision.move), decision.reason, inputs, kernel, **facts)
        root = base.kernel.source if base.verdict.ok else base.base or base.kernel.source
        told = f"{answers.words(said.text)}\n{change}".strip()
        turn = self._judged(decision, kernel, "coder", "changed by the Coder", base.sketch, root, told)
        if not base.verdict.ok and turn.kind is Kind.correct:
            self.librarian.learn_fix(self.brief, distil.failure(base.verdict, base.kernel.source), change)
        return turn

    def _advise(self, decision: Decision) -> Turn:
        assert self._current is not None
        ask = roles.advice(self.brief, self.best, self._current, self.tried, [_line(turn) for turn in self.turns])
        said = self._asking.ask(self.designer, ask)
        word = roles.read_advice(said.text)
        facts = {"role": ask.role, **said.answer.facts(), "advice": word}
        self.journal.step("advise", decision.reason, {"prompt": said.ask.user}, said.text, **facts)
        return Turn(Move.advise, Kind.advised, self._design, note=word)

    # -- what moves share ----------------------------------------------------------------------------------------------------

    def _judged(
        self,
        decision: Decision,
        kernel: str,
        author: Author,
        how: str,
        sketch: str | None = None,
        base: str = "",
        said: str = "",
    ) -> Turn:
        """The verdict on a kernel, as a turn; a better one than the best so far becomes the run's result."""
        self.observer.say("judging")
        file = Kernel.from_source(kernel, dsl=self.bench.job.dsl)
        verdict = self.bench.judged(file)
        right = {"right": True, "misdesigned": False}.get(self._proof.outcome) if self._proof is not None else None
        design = self._sketch if sketch is None else sketch
        attempt = Attempt(len(self.turns), self._design, author, design, file, verdict, right, base, said)
        gained = attempts.gain(verdict, self.best.verdict if self.best else None)
        self.tried.append(attempt)
        self._current = attempt
        self.journal.step(
            "judged",
            f"{how}: {verdict.reason}",
            {"kernel": kernel} if author == "coder" else {"kernel": kernel, "sketch": self._sketch},
            verdict.model_dump_json(),
            status=str(verdict.status),
            speedup=verdict.timing.speedup if verdict.timing else None,
            design=self._design,
            author=author,
        )
        self.observer.note(f"  {verdict.status}: {verdict.reason}")
        if verdict.ok and (self.best is None or attempts.better(verdict, self.best.verdict)):
            self.best = attempt
            self.keep(attempt)
        return Turn(
            decision.move, distil.kind(verdict), self._design, author, distil.identity(verdict), right, gained, _roofline(verdict),
            note=verdict.reason,
        )  # fmt: skip

    def _unreadable(self, decision: Decision, author: Author, said: Said, error: answers.Unreadable) -> Turn:
        """An answer that cannot be used is journalled, and remembered for the next question."""
        facts = {
            "role": said.ask.role,
            **said.answer.facts(),
            "design": self._design,
            "status": "unreadable",
            "error": str(error),
        }
        self.journal.step(str(decision.move), decision.reason, {"prompt": said.ask.user}, said.text, **facts)
        self._asking.unreadable(str(error), said.text)
        return Turn(decision.move, Kind.unreadable, self._design, author, str(error), note=str(error))

    def _fastest_of_design(self) -> Attempt:
        fast = [a for a in self.tried if a.design == self._design and a.verdict.ok]
        return max(fast, key=lambda a: (attempts.speed(a.verdict) or 0.0, -a.number))

    def _spent(self) -> dict[str, Any]:
        spent = self.designer.ledger.spent
        return {
            "calls": spent.calls,
            "tokens": spent.tokens,
            "dollars": round(spent.cost_usd, 6),
            "seconds": round(self.bench.seconds, 3),
        }

    @property
    def brief(self) -> Brief:
        """The task as the roles see it, looked at when it is first needed."""
        if self._brief is None:
            self._brief = brief_of(self.bench)
        return self._brief


MOVES: dict[Move, Callable[[Team, Decision], Turn]] = {
    Move.seed: Team._seed,
    Move.design: Team._new_design,
    Move.repair_design: Team._repair_design,
    Move.code: Team._code,
    Move.patch: Team._patch,
    Move.rewrite: Team._rewrite,
    Move.improve: Team._improve,
    Move.improve_best: Team._improve_best,
    Move.advise: Team._advise,
}


def _promise(turn: Turn) -> tuple[int, float]:
    """How well a design came out: correct and how fast; right but not lowered; lowered and wrong; faulty; none at all."""
    if turn.kind is Kind.correct:
        return 4, turn.gain or 0.0
    if turn.kind is Kind.unreadable:
        return 0, 0.0
    return {Kind.proved: 3, Kind.malformed: 1, Kind.misdesigned: 1, Kind.declined: 0}.get(turn.kind, 2), 0.0


def _line(turn: Turn) -> str:
    """A turn in a line, for the adviser."""
    fast = f", {turn.gain:.2f}x the best before it" if turn.gain is not None else ""
    return f"{turn.move.replace('_', ' ')} (design {turn.design}): {turn.kind.replace('_', ' ')}{fast}; {turn.note}"


def _roofline(verdict: Verdict) -> float | None:
    return verdict.timing.roofline_fraction if verdict.timing else None
