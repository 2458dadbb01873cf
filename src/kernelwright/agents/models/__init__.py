"""Language models behind one door: an Ask in, an Answer out, never more spent than the run allows.

1. `ask.py`: the nouns Ask and Answer, Tool and Call; an ask's key is its identity. A model that calls tools is asked again with their
   results: each round is an Ask and an Answer of its own, so memory, limits and replay hold for it.
2. `model.py`: the Model protocol and `open_model`, which reads a spec (`openai:NAME`, `anthropic:NAME`, `URL:NAME`, `mailbox:DIR`,
   `replay:FILE`) and puts `guarded.py` around the `source.py` it names: memory, limits, concurrency, recording.
3. `remote.py`: servers of the OpenAI and Anthropic dialects, with streaming and time-outs; `failures.py` when to try again and what to
   say; `prices.py` what they cost.
4. `mailbox.py`: each ask a file, each answer a file. `replay.py`: strict recordings.
5. `limits.py`: Limits and the Ledger that keeps to them. `secrets.py`: where keys come from and how they are kept out of text.

Nothing here runs, parses or trusts what a model says: an answer is text.
"""

from __future__ import annotations

from kernelwright.agents.models.ask import Answer, Ask, Call, Exchange, Finish, Form, Tool
from kernelwright.agents.models.limits import Ledger, Limits, Spent
from kernelwright.agents.models.model import Model, open_model
from kernelwright.core.errors import BudgetReached, ModelError

__all__ = [
    "Answer", "Ask", "BudgetReached", "Call", "Exchange", "Finish", "Form", "Ledger", "Limits", "Model", "ModelError", "Spent", "Tool",
    "open_model",
]  # fmt: skip
