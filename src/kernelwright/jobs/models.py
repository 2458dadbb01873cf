"""The models of a job, opened: who thinks as a ModelChoice in, one Model for each role out, with one ledger for both.

A resumed run counts what it has paid before.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelwright.core.errors import ConfigError
from kernelwright.core.job import BUILTIN, ModelChoice

if TYPE_CHECKING:
    from kernelwright.agents.models import Model, Spent
    from kernelwright.store import Run, Store


def open_models(choice: ModelChoice, store: Store | None, run: Run | None, stack: ExitStack) -> tuple[Model, Model]:
    """The Designer's model and the Coder's; they close with the stack."""
    from kernelwright.agents.models import Ledger, Limits, open_model
    from kernelwright.core import config

    limits = replace(Limits.of(config.load().settings), max_cost_usd=choice.max_cost, max_tokens=choice.max_tokens)
    ledger = Ledger(limits, _spent(store, run))
    record = Path(choice.record) if choice.record else None
    opened: dict[str, Model] = {}

    def model(spec: str) -> Model:
        if spec in ("", BUILTIN):
            raise ConfigError("with a model for one role, name one for the other too (--model is for both)")
        if spec not in opened:
            opened[spec] = open_model(
                spec,
                store=store,
                limits=limits,
                base_url=choice.base_url or None,
                record=record,
                ledger=ledger,
                run=run.id if run is not None else "",
            )
            stack.callback(opened[spec].close)
        return opened[spec]

    return model(choice.designer or choice.model), model(choice.coder or choice.model)


def _spent(store: Store | None, run: Run | None) -> Spent:
    """What the run's finished steps have cost."""
    from kernelwright.agents.models import Spent

    spent = Spent()
    for step in store.load_run(run.id).steps if store is not None and run is not None else ():
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
