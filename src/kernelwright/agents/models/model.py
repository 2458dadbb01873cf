"""The Model protocol, and `open_model`: a spec in, a model with memory, limits and recording around it out.

| spec | who answers |
| --- | --- |
| `openai:NAME`, `anthropic:NAME` | the provider, or the server that `base_url` names, in that dialect |
| `http://host/v1:NAME` | any OpenAI-compatible server (vLLM, Ollama, llama.cpp …) |
| `mailbox:DIR` | whoever writes answer files into a folder |
| `replay:FILE` | a recording, strictly |
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kernelwright.agents.models.ask import Answer, Ask
from kernelwright.agents.models.limits import Ledger, Limits
from kernelwright.core.errors import ConfigError

if TYPE_CHECKING:
    from kernelwright.store import Store

OnText = Callable[[str], None]
"""Called with each piece of an answer as it arrives, from any thread."""

FORMS = "builtin, openai:NAME, anthropic:NAME, http://host/v1:NAME, mailbox:DIR or replay:FILE"


class Model(Protocol):
    """Answers questions. Safe for threads: several may ask at once, up to the limit of concurrency."""

    name: str
    ledger: Ledger

    @property
    def tools(self) -> bool:
        """Whether it may be offered tools."""
        ...

    def ask(self, ask: Ask, on_text: OnText | None = None) -> Answer:
        """The answer; ModelError (one sentence) when there is none, BudgetReached when the run may not spend more."""
        ...

    def close(self) -> None:
        """Let go of connections and of waiting asks. May be called twice."""
        ...


def open_model(
    spec: str,
    *,
    store: Store | None,
    limits: Limits,
    base_url: str | None = None,
    record: Path | None = None,
    ledger: Ledger | None = None,
    run: str = "",
) -> Model:
    """The model that a spec names. `record` appends every answer to a file for `replay:`; `ledger` is shared by a run's models; `run`
    is part of an answer's identity in the store: what one run was told is no answer to another."""
    from kernelwright.agents.models.guarded import GuardedModel
    from kernelwright.agents.models.source import Source

    kind, _, rest = spec.partition(":")
    source: Source
    if kind == "replay" and rest:
        from kernelwright.agents.models.replay import Replay

        source = Replay(Path(rest).expanduser())
        store = None  # what is on file needs no memory, and must not be answered from it
    elif kind == "mailbox" and rest:
        from kernelwright.agents.models.mailbox import Mailbox

        source = Mailbox(Path(rest).expanduser())
    elif kind in ("openai", "anthropic", "http", "https") and rest:
        from kernelwright.agents.models.remote import open_remote

        source = open_remote(spec, limits, base_url or None)
    elif spec == "builtin":
        raise ConfigError("builtin is not a language model: it needs no asking")
    else:
        raise ConfigError(f"model {spec!r} is not understood; write {FORMS}")
    return GuardedModel(source, store=store, ledger=ledger or Ledger(limits), record=record, run=run)
