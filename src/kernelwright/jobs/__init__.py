"""What can be asked for: a JobSpec in, a result and a journal out.

`generate.py` (a kernel for a task, tuned where asked), `migrate/` (a kernel in another language), `bench/` (whole suites).
"""
