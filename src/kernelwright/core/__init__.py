"""The nouns that every room speaks of, and what all rooms share: imports nothing of ours but itself.

- `task/`        what to compute: a Task (text and hash), and how its file is run, scaled and measured;
- `kernel.py`    a kernel file with its hash and language;      `verdict.py`  what the judge says of it;
- `job.py`       everything that was asked for, from the door to the worker;
- `effort.py`    how hard a job tries: the one table of presets;
- `plugins.py`   languages and operators of any package, by entry points;      `tools.py`  what of this machine they need;
- `errors.py`    what can go wrong, each in one sentence;       `config.py`   settings and where they came from;
- `folders.py`   where data and caches of the user lie.

Importing anything here but `task/load.py` and its kin imports no torch.
"""
