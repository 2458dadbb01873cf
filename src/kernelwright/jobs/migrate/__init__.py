"""Migration: a kernel in one language in, the same kernel in another language or for another device out, with proof.

1. `source.py`      what is migrated: the kernel's sketch, carried along in the file or lifted from the program (kernelwright.lift)
2. `reference.py`   what it is held against: the task; without one, the sketch itself as a task, to which the source kernel must agree
3. `reschedule.py`  the sketch for the new device: only what breaks one of its rules is changed, each change with its reason
4. `device_rules.py` rules that a device has of its own (Ascend: no float64, aligned blocks)
5. `worker.py`      the worker that lifts, re-schedules and lowers, because the task's and the kernel's files have to run for that
6. `steps.py`       the steps in order, each in the journal; both kernels go to the judge
7. `report.py`      migration.md: what was kept, what was changed and why, the two programs side by side, both verdicts

docs/migrate.md tells it for people.
"""
