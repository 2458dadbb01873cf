"""Running something elsewhere: entry point, message and limits in; a reply, or the reason why there is none, out.

1. `fork_server.py`   `ForkServer` starts one process that imports torch once (`fork_main.py`) and forks workers from it;
2. `worker.py`        one worker as the parent holds it: its channel, its end, its `processes.py`; never trusted;
3. `channel.py`, `bundle.py`  the bounded boundary: framed JSON, file descriptors, trees of tensors in sealed memory;
4. `sandbox.py`       closes a worker in (`landlock.py`, `seccomp.py`, `limits.py`, `system_calls.py`);
5. `exclusive.py`     any number of workers at once, or one measurement alone on the machine.

The parent's side imports neither torch nor numpy.
"""
