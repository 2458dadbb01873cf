"""The roles that turn a task into a kernel, and the order in which they speak. docs/agents.md tells it for people.

1. `order.py`      what was asked for, as data; `fulfil` and `resume`. `minds.py` who thinks, `effort.py` how hard.
2. `generate.py`   a job from start to result: `drafts.py` (built-in Designer and Coder, in a worker), then the team, then `final.py`.
3. `conductor.py`  the table: (what happened, what may be spent) → the next move. `team.py` carries moves out.
4. `roles.py`      what Designer, Coder and adviser are asked: `brief.py` (the task), `attempts.py` (what was tried), `librarian.py`
   (skills and lessons), rendered by `prompts.py` from prompts/*.md.
5. `answers.py`    code and patches out of an answer. `proof.py`: is a sketch right? `distil.py`, `bounds.py`: a verdict in a few lines.
6. `workbench.py`  the tools with their memory (`memory.py`): everything is found out once for a run. `journal.py` and `folder.py`:
   what is written down. `observer.py`: who looks on.
7. `task_from_code.py`, `task_writer.py`, `examiner.py`: new tasks, from code and from prose.

The Verifier is the judge, unchanged (kernelwright.judge).
"""
