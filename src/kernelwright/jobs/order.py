"""An order: everything that was asked for, as plain data, so that the same can be done again. `fulfil` does it, `resume` goes on.

In: an Order (from the command line, or from a run in the store). Out: `Fulfilled`: the folder, the result, the run's name. The task's
text is part of the order: a resumed run works on what it began with, also when the file has changed meanwhile.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelwright.agents.team_models import TeamModels
from kernelwright.core import effort as efforts
from kernelwright.core.errors import ConfigError, StoreError, ToolMissing
from kernelwright.core.task import Task
from kernelwright.core.verdict import Track
from kernelwright.jobs.generate import Generated, generate
from kernelwright.run.folder import JobFolder, default_path, open_folder
from kernelwright.run.memo import Memory
from kernelwright.run.observer import Observer
from kernelwright.run.workbench import Job

if TYPE_CHECKING:
    from kernelwright.agents.models import Model
    from kernelwright.judge import Judge
    from kernelwright.run.drafts import Drafter
    from kernelwright.store import RunRecord, Store

BUILTIN = "builtin"


@dataclass(frozen=True)
class Order:
    """What `kernelwright generate` was asked for. No key is ever in it: keys come from the environment at every start."""

    path: str
    source: str
    class_name: str
    dsl: str = "cpp"
    target: str = "auto"
    track: Track = "pure"
    effort: str = "quick"
    budget: float | None = None
    timing: bool = True
    compile_contender: bool = True
    out: str | None = None
    model: str = BUILTIN
    designer_model: str = ""
    coder_model: str = ""
    base_url: str = ""
    max_cost: float | None = None
    max_tokens: int | None = None
    record: str | None = None
    knowledge: bool = True
    store: str = ""
    tune_seconds: float = 0.0
    kernel: str = ""

    @property
    def task(self) -> Task:
        return Task.from_source(self.source, path=self.path, class_name=self.class_name)

    @property
    def uses_models(self) -> bool:
        return any(spec not in ("", BUILTIN) for spec in (self.model, self.designer_model, self.coder_model))

    def as_json(self) -> dict[str, Any]:
        return {"command": "generate", "task": self.task.name, **asdict(self)}

    @classmethod
    def from_json(cls, job: dict[str, Any]) -> Order:
        """The order of a run; one that another version wrote, with fields unknown here, is refused in one sentence."""
        fields = {key: value for key, value in job.items() if key not in ("command", "task")}
        try:
            if job.get("command") != "generate":
                raise TypeError("it is not a run of generate")
            return cls(**fields)
        except TypeError as error:
            raise ConfigError(f"this run cannot be resumed: {error}") from error


@dataclass(frozen=True)
class Fulfilled:
    """What came of an order."""

    folder: JobFolder
    generated: Generated
    run: str


def fulfil(order: Order, observer: Observer | None = None) -> Fulfilled:
    """A new run. Without a model, a store that cannot be opened is no reason to stop; with one, it is: what is paid for is kept."""
    with ExitStack() as stack:
        tools = _tools(stack)
        store = open_store(order.store, stack, needed=order.uses_models)
        place = Path(order.out) if order.out else default_path(order.task.name, order.dsl)
        run = store.begin({**order.as_json(), "out": str(place.resolve())}) if store else None
        return _work(order, store, run, observer or Observer(), stack, tools)


def resume(prefix: str, place: str = "", observer: Observer | None = None) -> Fulfilled:
    """Go on with a run: it is repeated from its start, and what it had found out or paid for is recalled."""
    from kernelwright.store import Store

    with ExitStack() as stack:
        store = stack.enter_context(Store.open(place or None))
        run = store.resume(prefix)
        tools = _tools(stack)
        return _work(Order.from_json(run.job), store, run, observer or Observer(), stack, tools)


def open_store(place: str, stack: ExitStack, *, needed: bool) -> Store | None:
    """The store, or None where there is none and nothing that is paid for depends on it."""
    from kernelwright.store import Store

    try:
        return stack.enter_context(Store.open(place or None))
    except (StoreError, ToolMissing):
        if needed:
            raise
        return None


def _tools(stack: ExitStack) -> tuple[Drafter, Judge]:
    """Who designs and who judges. First of all, since both import torch in the background, which takes longer than all the rest."""
    from kernelwright.judge import Judge
    from kernelwright.run.drafts import Drafter

    return stack.enter_context(Drafter()), stack.enter_context(Judge())


def _work(
    order: Order, store: Store | None, run: Any, observer: Observer, stack: ExitStack, tools: tuple[Drafter, Judge]
) -> Fulfilled:
    task = order.task
    name = run.id if run is not None else None
    folder = open_folder(Path(order.out) if order.out else None, task.name, order.dsl, run=name)
    designer, coder = open_models(order, store, run, stack) if order.uses_models else (None, None)
    record = Path(order.record) if order.record else None
    memory = Memory(name or "", store, record=record, replay=_replayed(order))
    minds = TeamModels(designer, coder, store, run, memory, order.knowledge)
    job = Job(
        task,
        order.dsl,
        order.track,
        efforts.preset(order.effort),
        order.budget,
        order.timing,
        order.compile_contender,
        order.target,
        tune_seconds=order.tune_seconds or efforts.preset(order.effort).tune_seconds,
        kernel=order.kernel,
    )
    drafter, judge = tools
    return Fulfilled(folder, generate(job, judge, drafter, folder, minds=minds, observer=observer), folder.run)


def open_models(order: Order, store: Store | None, run: Any, stack: ExitStack) -> tuple[Model, Model]:
    """One ledger for both roles; a resumed run counts what it has paid before."""
    from kernelwright.agents.models import Ledger, Limits, open_model
    from kernelwright.core import config

    limits = replace(Limits.of(config.load().settings), max_cost_usd=order.max_cost, max_tokens=order.max_tokens)
    ledger = Ledger(limits, _spent(store, run))
    record = Path(order.record) if order.record else None
    opened: dict[str, Model] = {}

    def model(spec: str) -> Model:
        if spec in ("", BUILTIN):
            raise ConfigError("with a model for one role, name one for the other too (--model is for both)")
        if spec not in opened:
            opened[spec] = open_model(
                spec, store=store, limits=limits, base_url=order.base_url or None, record=record, ledger=ledger
            )
            stack.callback(opened[spec].close)
        return opened[spec]

    return model(order.designer_model or order.model), model(order.coder_model or order.model)


def _spent(store: Store | None, run: Any) -> Any:
    """What the run's finished steps have cost."""
    from kernelwright.agents.models import Spent

    record: RunRecord | None = store.load_run(run.id) if store is not None and run is not None else None
    spent = Spent()
    for step in record.steps if record is not None else ():
        facts = step.facts
        if "tokens_out" in facts and not facts.get("recalled"):
            spent = Spent(
                spent.calls + 1,
                spent.tokens_in + int(facts.get("tokens_in", 0)),
                spent.tokens_out + int(facts["tokens_out"]),
                spent.cost_usd + float(facts.get("cost_usd") or 0.0),
                spent.unpriced + (facts.get("cost_usd") is None),
            )
    return spent


def _replayed(order: Order) -> Path | None:
    for spec in (order.designer_model, order.coder_model, order.model):
        if spec.startswith("replay:"):
            return Path(spec.removeprefix("replay:"))
    return None
