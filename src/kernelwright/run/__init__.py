"""One run: its tools, its journal, and what it has found out, so that nothing is done twice.

1. `workbench.py`  the tools: look at the task, draft, prove, judge; each is done once for a run (`memo.py`)
2. `drafts.py`     the built-in Designer and Coder as a worker (`preload.py`);   `proof.py` is a sketch right?
3. `attempts.py`   what was tried;   `journal.py`, `folder.py` what is written down;   `observer.py` who looks on
"""
