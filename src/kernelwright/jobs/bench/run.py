"""All entries of a benchmark: several at a time, each finished one on disk at once, and somebody told about it.

In: entries and options. Out: a ledger with a record for every entry. Tasks are generated and judged by `jobs` threads; the judge lets
only one of them time, while the others wait (judge/verify.py). A second start with `resume` does what is left.
"""

from __future__ import annotations

import os
import platform
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from importlib import metadata
from pathlib import Path
from typing import Any, Self

from kernelwright import __version__
from kernelwright.jobs.bench.collect import Entry
from kernelwright.jobs.bench.contest import Contest, lost
from kernelwright.jobs.bench.kernels import Kernels
from kernelwright.jobs.bench.ledger import Ledger
from kernelwright.jobs.bench.model_budget import Models
from kernelwright.jobs.bench.record import Machine, Options, Record
from kernelwright.judge import Judge
from kernelwright.judge.verify import default_threads
from kernelwright.run.drafts import Drafter
from kernelwright.target.cpu import describe_host
from kernelwright.workers.exclusive import Exclusive

Tell = Callable[[Record, int, int], None]
"""Called with each finished record, how many are done and how many there are."""


class ExclusiveDrafter(Drafter):
    """Designs while nothing is timed."""

    def __init__(self, exclusive: Exclusive) -> None:
        super().__init__()
        self._exclusive = exclusive

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def close(self) -> None:
        """End its workers at once; a design under way fails."""
        self.__exit__()

    def ask(self, entry: str, message: dict[str, Any], *, timeout: float) -> dict[str, Any]:
        with self._exclusive.sharing():
            return super().ask(entry, message, timeout=timeout)


def run(
    entries: list[Entry],
    options: Options,
    out: Path,
    *,
    resume: bool,
    jobs: int,
    tell: Tell,
    max_cost: float | None = None,
) -> Ledger:
    """Do what is not done yet."""
    kernels = Kernels(Path(options.kernels)) if options.kernels else None
    ledger = Ledger(out, options, describe_machine(), resume=resume, planned=len(entries))
    left = [entry for entry in entries if entry.key not in ledger.records]
    done = len(entries) - len(left)
    if not left:
        return ledger
    with (
        Models(options.model, max_cost=max_cost) as models,
        Judge(tasks_at_once=jobs) as judge,
        ExclusiveDrafter(judge.exclusive) as drafter,
        ThreadPoolExecutor(jobs) as pool,
    ):
        contest = Contest(judge, drafter, options, out, models, kernels)

        stopping = threading.Event()

        def one(entry: Entry) -> Record:
            if ledger.fatal(entry.key):
                record = lost(entry, options)
            else:
                ledger.begin(entry.key)
                record = contest.enter(entry)
            if stopping.is_set():  # its workers were taken away: this is no outcome of the task's
                raise KeyboardInterrupt
            ledger.finish(record)
            return record

        waiting: set[Future[Record]] = set()
        queue = iter(left)
        try:
            # No more than one task waits for a thread: the order of beginnings in the ledger is the order of work.
            for entry in queue:
                waiting.add(pool.submit(one, entry))
                if len(waiting) > jobs:
                    ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    done = _told(ended, done, len(entries), tell)
            while waiting:
                ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                done = _told(ended, done, len(entries), tell)
        except BaseException:
            stopping.set()
            pool.shutdown(wait=False, cancel_futures=True)
            judge.close()
            drafter.close()
            raise
    return ledger


def _told(ended: set[Future[Record]], done: int, total: int, tell: Tell) -> int:
    for future in ended:
        done += 1
        tell(future.result(), done, total)
    return done


def describe_machine() -> Machine:
    """This machine, as the report names it."""
    host = describe_host()
    return Machine(
        cpu=host.title or host.name,
        cores=host.cores,
        threads=default_threads(),
        memory_gb=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        system=_system(),
        python=platform.python_version(),
        torch=metadata.version("torch"),
        compiler=_first_line(["g++", "--version"]),
        kernelwright=__version__,
        commit=_first_line(["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]),
    )


def _system() -> str:
    """Distribution and kernel: `Debian GNU/Linux 12 (bookworm), Linux 6.1`."""
    kernel = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {kernel}"
    except (OSError, KeyError):
        return kernel


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout.splitlines() or [""])[0].strip() if done.returncode == 0 else ""
