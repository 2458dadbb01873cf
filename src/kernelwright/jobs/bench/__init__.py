"""Whole suites through generation and judge, and a report that one wants to read.

1. `collect.py`    paths and names of suites → entries, one for each task (`family.py` groups them, `readers.py` other formats);
2. `probe.py`      is the task usable, does it fit in memory, how long does its reference take: in a sandboxed worker;
3. `contest.py`    one entry → one record: generate (`models.py`: who thinks) or take a kernel (`kernels.py`), have it judged;
4. `run.py`        all entries, several at a time, timing alone; `ledger.py` keeps every finished task on disk at once;
5. `metrics.py`    records → fast_p, geometric means with intervals, groups;
6. `report.py`     the whole as a model (`record.py` owns the nouns), written as JSON, Markdown (`markdown.py`) and one page of
                   HTML (`page.py` and `assets/`);
7. `compare.py`    two reports: what got better or worse beyond noise; `readme.py` the table of the README.
"""
