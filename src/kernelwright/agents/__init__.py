"""The roles that turn a task into a kernel, and the order in which they speak. docs/agents.md tells it for people.

1. `conductor/`    the table: (what happened, what may be spent) → the next move. `team.py` carries moves out, `team_models.py` who thinks.
2. `roles.py`      what Designer, Coder and adviser are asked: `brief.py` (the task), `eager.py` (what PyTorch takes), `showing.py`
   (what was tried), `excerpt.py` (a kernel file, cut to what matters), `librarian.py` (skills and lessons), rendered by `prompts.py`
   from prompts/*.md.
3. `asking.py`     a question put to a model, with `toolbox.py` where it can call tools. `answers.py`: code and patches out of an answer.
   `distil.py`, `bounds.py`: a verdict in a few lines. `knowledge/`: skills, lessons, what runs have learnt.
4. `finish_race.py` the last race of a run, before a winner is named.
5. `task_from_code.py`, `task_writer.py`, `examiner.py`: new tasks, from code and from prose.

The tools that a run works with (drafts, proofs, verdicts, each remembered) are those of `kernelwright.run`.
The Verifier is the judge, unchanged (kernelwright.judge).
"""
