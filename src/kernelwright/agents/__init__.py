"""The roles that turn a task into a kernel, and the order in which they speak.

1. `drafts.py` (Designer and Coder, built-in minds): a Task becomes sketches, best guess first, each lowered to a kernel file. It
   runs in a worker process of its own, because it executes the task file and imports half of torch.
2. the Verifier is the judge, unchanged (kernelwright.judge).
3. `generate.py` (Conductor): takes drafts in order, has them judged, keeps the fastest correct one within effort and budget.
4. `folder.py`: what is left on disk: kernel.py, sketch.py, verdict.json, journal.jsonl.
"""
