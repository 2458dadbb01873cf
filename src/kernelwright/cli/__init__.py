"""The command line: one module a command, each imported only when it is the one asked for.

- `main.py`         the table of commands, and the door at which every error becomes one sentence;
- `verify.py`       task and kernel in, verdict out;      `panel.py`  how a verdict looks on a terminal;
- `doctor.py`       what this machine can run;            `config_view.py`  the settings and where they came from;
- `task.py`, `sketch.py`, `audit.py`, `generate.py`       describe a task; its sketch; the gallery of cheats; make a kernel.
"""
