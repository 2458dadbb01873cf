"""Memory: what was paid for, built or judged is never paid for, built or judged twice; what worked is found again.

1. `store.py`: the Store, the one door of this room. Memos by hash, contents, runs, lessons, pruning.
2. `run.py`: a Run writes its steps, each durable before the next begins; `journal.py` has them in the database. Resume is replay:
   the job runs again from its start, memos answer what was done, and steps that are in the journal are not written twice.
3. `contents.py`: bytes under their SHA-256, in a folder, or in the database where several machines share one.
4. `lessons.py`: kernels, sketches and fixes that worked, ranked for a new task.
5. `nouns.py`: Step, RunRecord, Lesson: what is read back. `pruning.py`: forgetting.
6. `tables.py`: the tables; the database, its locks, and its failures as sentences.

The default is SQLite (write-ahead log, a full sync for each step) and a folder of files, in the user's data folder.
"""

from __future__ import annotations

from kernelwright.core.errors import StoreError
from kernelwright.store.nouns import Lesson, Pruned, RunRecord, Step
from kernelwright.store.run import Run
from kernelwright.store.store import Store

__all__ = ["Lesson", "Pruned", "Run", "RunRecord", "Step", "Store", "StoreError"]
