"""Variants for the sizes that occur: a judged dynamic kernel and a list of sizes with counts in, a kernel file with several variants and a
table that chooses among them out, or the answer that one is best everywhere.

1. The worker designs the task as if each of the most frequent sizes were its example (what `likely` asks for then), all sizes dynamic.
2. The variants race at each of these sizes, the kernel that was given among them; size_tree.py makes the table.
3. Each variant that the table chooses is judged alone, at sizes that nobody listed: it must be right for all. A wrong one is dropped and
   the table made again.
4. The file with all of them is judged, and kept where its calls take less time than the first kernel's.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from kernelwright.core.errors import ConfigError, KernelwrightError
from kernelwright.core.job import JobSpec
from kernelwright.core.kernel import Kernel
from kernelwright.core.size_choice import SizeTable, as_json, from_json
from kernelwright.judge.timing.race import Race
from kernelwright.run.attempts import Attempt
from kernelwright.run.folder import JobFolder
from kernelwright.run.journal import Journal
from kernelwright.run.observer import Observer
from kernelwright.run.workbench import Workbench
from kernelwright.search.races import Tuned
from kernelwright.search.size_tree import Measured, seconds_of, table_of
from kernelwright.target import Target

if TYPE_CHECKING:
    from kernelwright.compiler.designer import Design
    from kernelwright.workers.channel import Channel

MOST_SIZES = 8
"""Settings of the sizes that are measured: the most frequent ones."""
DESIGNS = 2
"""Of each of them."""
MOST_VARIANTS = 8
SECONDS = 600.0
GAIN = 0.02


@dataclass(frozen=True)
class _Offer:
    """What the worker made: names and labels of the sizes, the settings with their counts, the variants."""

    labels: Mapping[str, str]
    points: list[tuple[dict[str, int], int]]
    kernels: list[str]
    sketches: list[str]


def tune_sizes(bench: Workbench, journal: Journal, folder: JobFolder, observer: Observer, seed: Attempt) -> Tuned:
    """Variants for the job's shapes; the seed must be correct, and be lowered by rule from its sketch."""
    if seed.sketch is None:
        raise ConfigError("--shapes needs a kernel that carries its sketch: variants are made from designs")
    with ExitStack() as stack:
        observer.say("tuning: a design for each of the sizes that occur")
        made = _Variants(bench, stack, seed.sketch)
        measured = _measured(bench, stack, made.offer, observer)
        first = sum(one.cost(0) for one in measured)
        wrong: set[int] = set()
        while True:
            right = [_without(one, wrong) for one in measured]
            table = table_of(right, made.offer.labels, f"{Target.host().title} on {datetime.date.today().isoformat()}")
            fault = _fault(bench, made.offer, table, wrong)
            if not fault:
                break
            journal.step("dropped", fault)
        gain = first / seconds_of(right, table)
        told = f"{len(made.offer.kernels)} variants at {len(measured)} settings of the sizes"
        if table.variants() == (0,) or gain < 1 + GAIN:
            journal.step("tuned", f"no gain found: {told}; the first kernel is best, or as good", gain=1.0)
            return Tuned(seed, 1.0, f"{told}: the first kernel is best, or as good", len(made.offer.kernels))
        observer.say("judging the variants with their table")
        kernel, sketch = made.combined(table)
        verdict = bench.judged(kernel)
        reason = f"{gain:.2f}x the first kernel over the calls that occur, {told}, {len(table.variants())} of them kept"
        journal.step(
            "judged",
            f"{reason}: {verdict.reason}",
            {"kernel": kernel.source},
            verdict.model_dump_json(),
            status=str(verdict.status),
        )
        if not verdict.ok:
            return Tuned(
                seed, 1.0, f"{told}: the file with all variants was rejected: {verdict.reason}", len(made.offer.kernels)
            )
        folder.keep(kernel, sketch, verdict)
        kept = len(table.variants())
        path = ((f"{kept} variants chosen by size" if kept > 1 else "designed for the sizes that occur", gain),)
        journal.step("tuned", reason, {"kernel": kernel.source}, path=path, gain=gain)
        attempt = Attempt(seed.number + 1, seed.design, seed.author, sketch, kernel, verdict, True)
        return Tuned(attempt, gain, reason, len(made.offer.kernels), path)


def _measured(bench: Workbench, stack: ExitStack, offer: _Offer, observer: Observer) -> list[Measured]:
    """A race at each setting of the sizes; what was measured before a run was killed is recalled."""
    open_race: list[Race] = []

    def seconds(sizes: dict[str, int]) -> dict[str, Any]:
        if not open_race:
            open_race.append(stack.enter_context(Race(bench.judge, bench.task)))
        open_race[0].at(sizes)
        return {"places": [asdict(place) for place in open_race[0].race(offer.kernels)]}

    found = []
    kernels = [Kernel.from_source(source).hash for source in offer.kernels]
    for number, (sizes, count) in enumerate(offer.points, start=1):
        observer.say(f"tuning: race {number} of {len(offer.points)}")
        key = {"kernels": kernels, "sizes": sizes}
        places = bench.finding("size race", key, lambda sizes=sizes: seconds(sizes))["places"]  # type: ignore[misc]
        found.append(Measured(sizes, count, tuple(place["seconds"] for place in places)))
    if any(one.seconds[0] is None for one in found):
        raise KernelwrightError("the kernel could not be measured at one of the sizes, so there is nothing to compare with")
    return found


def _without(one: Measured, wrong: set[int]) -> Measured:
    return replace(one, seconds=tuple(None if number in wrong else at for number, at in enumerate(one.seconds)))


def _fault(bench: Workbench, offer: _Offer, table: SizeTable, wrong: set[int]) -> str:
    """What is wrong with the first wrong variant that the table chooses, which is out from now on; "" where all are right for all sizes."""
    for number in table.variants():
        if number:  # the first was judged
            verdict = bench.tried(Kernel.from_source(offer.kernels[number], dsl=bench.job.dsl))
            if not verdict.ok:
                wrong.add(number)
                return f"variant {number} is dropped: {verdict.reason}"
    return ""


class _Variants:
    """The parent's side of the worker, which is opened when the first thing is to be done that is not remembered."""

    def __init__(self, bench: Workbench, stack: ExitStack, sketch: str) -> None:
        self._bench, self._stack, self._sketch = bench, stack, sketch
        self._worker: Any = None
        found = bench.finding(
            "size variants", {"shapes": bench.job.shapes, "sketch": sketch}, lambda: self._ask({"op": "offer"})
        )
        self.offer = _Offer(
            found["labels"],
            [(dict(sizes), int(count)) for sizes, count in found["points"]],
            found["kernels"],
            found["sketches"],
        )

    def combined(self, table: SizeTable) -> tuple[Kernel, str]:
        """The file with the variants that the table chooses, and the sketch of the first of them."""
        told = {"variants": list(table.variants()), "tree": as_json(table.renumbered().tree), "evidence": list(table.evidence)}
        chosen = table.variants()
        told["evidence"] = [
            f"Variants {', '.join(map(str, chosen))} of those that were measured are 0 … {len(chosen) - 1} here.",
            *table.evidence,
        ]
        made = self._bench.finding("size table", told, lambda: self._ask({"op": "combine", **told}))
        return Kernel.from_source(made["kernel"], dsl=self._bench.job.dsl), self.offer.sketches[chosen[0]]

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        from kernelwright.workers.channel import ChannelError

        try:
            if self._worker is None:
                self._worker = self._bench.drafter.open("search.size_variants:serve")
                self._stack.callback(self._worker.stop)
                opening = {"op": "open", "job": self._bench.job.as_json(), "sketch": self._sketch}
                self._told(self._worker.request(opening, timeout=SECONDS)[0])
            return self._told(self._worker.request(message, timeout=SECONDS)[0])
        except ChannelError as error:
            raise KernelwrightError(f"the designer of variants was lost: {error}") from error

    def _told(self, reply: dict[str, Any]) -> dict[str, Any]:
        if not reply.pop("ok"):
            raise ConfigError(str(reply["error"]))
        return reply


# ---------------------------------------------------------------- the worker


def serve(channel: Channel) -> None:
    """The worker: answers until the parent is done."""
    from kernelwright.run.drafts import describe_failure
    from kernelwright.workers.channel import ChannelClosed

    session: _Session | None = None
    while True:
        try:
            message, _ = channel.receive(None)
        except ChannelClosed:
            return
        try:
            if message["op"] == "open":
                session, reply = _Session(message), {}
            else:
                assert session is not None
                reply = session.offer() if message["op"] == "offer" else session.combine(message)
            channel.send({"ok": True, **reply})
        except KernelwrightError as error:
            channel.send({"ok": False, "error": str(error)})
        except Exception as error:
            channel.send({"ok": False, "error": describe_failure("the built-in designer", error)})


class _Session:
    def __init__(self, message: dict[str, Any]) -> None:
        from kernelwright.compiler.hardware import capabilities_of
        from kernelwright.compiler.language import language
        from kernelwright.core.task.dynamic_probe import dynamic_of
        from kernelwright.core.task.load import load_task
        from kernelwright.run.drafts import state_of
        from kernelwright.sketch.parse import parse

        self.job = JobSpec.from_json(message["job"])
        assert self.job.task is not None
        self.coder = language(self.job.dsl)
        self.machine = capabilities_of(self.coder, self.job.target)
        self.loaded = load_task(self.job.task)
        self.state = state_of(self.loaded)
        dynamic = dynamic_of(self.loaded, self.job.task.dynamic)
        if not dynamic:
            raise ConfigError("--shapes is for a task whose sizes vary: say which with --dynamic")
        self.dynamic = dynamic
        self.first = parse(message["sketch"])
        if not any(size.dynamic for size in self.first.sizes):
            raise ConfigError("--shapes is for a kernel whose sizes vary; the sketch of this one has fixed sizes")
        self.sketches = [self.first]

    def offer(self) -> dict[str, Any]:
        from kernelwright.core.task import tree
        from kernelwright.core.task.shape_counts import counted, parse_shapes
        from kernelwright.search.codegen_options import code_of
        from kernelwright.sketch.print import to_source

        inputs = self.loaded.draw(0)[0]
        own = [tuple(tensor.shape) for tensor in tree.tensors(inputs)]
        task = self.job.task
        assert task is not None
        every = counted(parse_shapes(self.job.shapes), self.dynamic, own, task.class_name)
        names = [symbol.name for symbol in self.dynamic.symbols]
        points = [(dict(zip(names, sizes, strict=True)), count) for sizes, count in list(every.items())[:MOST_SIZES]]
        kernels = [self._lowered(self.first)]
        codes = {code_of(kernels[0])}
        for sizes, _ in points:
            for design in self._designed(inputs, sizes)[:DESIGNS]:
                text = self._lowered(design.sketch)
                if len(kernels) < MOST_VARIANTS and code_of(text) not in codes:
                    codes.add(code_of(text))
                    kernels.append(text)
                    self.sketches.append(design.sketch)
        labels = {name: self.dynamic.label(name) for name in names}
        return {"labels": labels, "points": points, "kernels": kernels, "sketches": [to_source(s) for s in self.sketches]}

    def _designed(self, inputs: list[Any], sizes: dict[str, int]) -> list[Design]:
        """Designs that are right for all sizes, and meant for these."""
        from kernelwright.compiler.designer import design_task
        from kernelwright.judge.reference.resize import resized

        symbols = tuple(replace(symbol, example=sizes[symbol.name]) for symbol in self.dynamic.symbols)
        try:
            return design_task(
                self.job.task, capabilities=self.machine, track=self.job.track, effort="standard",
                dynamic=replace(self.dynamic, symbols=symbols), example=resized(inputs, self.dynamic, sizes, 0, "follow"),
            )  # fmt: skip
        except KernelwrightError:
            return []  # no design of its own at this size: the first kernel serves it

    def _lowered(self, sketch: Any) -> str:
        return self.coder.lower(sketch, state=self.state, capabilities=self.machine)

    def combine(self, message: dict[str, Any]) -> dict[str, Any]:
        from kernelwright.compiler.language import HasVariants

        if len(self.sketches) == 1:
            self.offer()  # after a resumed run's recollection the worker is new
        first, *others = (self.sketches[number] for number in message["variants"])
        if not others:
            return {"kernel": self._lowered(first)}
        assert isinstance(self.coder, HasVariants)
        table = SizeTable(from_json(message["tree"]), tuple(message["evidence"]))
        return {"kernel": self.coder.lower(first, state=self.state, shapes=others, capabilities=self.machine, table=table)}
