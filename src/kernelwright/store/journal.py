"""The journal of one job in the database: begin or queue, append, finish, resume, list, load; what changed since.

Facts that the readers of a journal know by name: `status`, `speedup` (a judged kernel); `role`, `tokens_in`, `tokens_out`,
`cost_usd`, `recalled` (an answer of a model, see Answer.facts); `seconds`. Others are kept and shown as they are.

A resumed run replays its job from the start. A step that is in the journal (same kind, inputs and result) is then recognised and
not written again, so that the journal of a run that was killed ten times reads like that of one that was not.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from kernelwright.core.errors import StoreError
from kernelwright.store import tables
from kernelwright.store.nouns import Identity, RunRecord, Step
from kernelwright.store.run import Run
from kernelwright.store.tables import Database, misfits

RUNNING, INTERRUPTED, QUEUED = "running", "interrupted", "queued"


def begin(database: Database, job: Mapping[str, Any], run_id: str | None) -> Run:
    """Open the journal of a new run."""
    run = Run(run_id or f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}", dict(job), database)
    now = time.time()
    values = {"id": run.id, "job": _dump(run.job), "status": RUNNING, "owner": owner(), "started": now, "touched": now}
    try:
        with database.write() as connection:
            connection.execute(tables.runs.insert().values(**values))
    except sa.exc.IntegrityError as error:
        raise StoreError(f"{database.title}: there is a run {run.id} already") from error
    return run


def queue(database: Database, job: Mapping[str, Any], run_id: str) -> None:
    """Put down a run that nobody works on yet: `resume` takes it."""
    now = time.time()
    values = {"id": run_id, "job": _dump(dict(job)), "status": QUEUED, "owner": "", "started": now, "touched": now}
    with database.write() as connection:
        connection.execute(tables.runs.insert().values(**values))


def set_aside(database: Database, run_id: str, status: str) -> bool:
    """Another status for a run that nobody works on; False where somebody does."""
    table = tables.runs
    with database.write() as connection:
        row = connection.execute(sa.select(table.c.status, table.c.owner).where(table.c.id == run_id)).first()
        if row is None or (row.status == RUNNING and alive(row.owner)):
            return False
        connection.execute(_row(run_id).values(status=status, owner="", touched=time.time()))
    return True


def holder(database: Database, run_id: str) -> int | None:
    """The process of this machine that works on a run, if one does."""
    with database.read() as connection:
        row = connection.execute(sa.select(tables.runs.c.status, tables.runs.c.owner).where(tables.runs.c.id == run_id)).first()
    if row is None or row.status != RUNNING or not alive(row.owner):
        return None
    host, _, process, _ = row.owner.split("|")
    return int(process) if host == socket.gethostname() else None


def append(
    database: Database,
    run_id: str,
    kind: str,
    reason: str,
    inputs: dict[str, str],
    result: str | None,
    facts: dict[str, Any],
    *,
    seconds: float,
) -> int:
    """Write a step and the time the run has used; its number is the next one of the run."""
    now = time.time()
    values = {"kind": kind, "reason": reason, "inputs": _dump(inputs), "result": result, "facts": _dump(facts), "at": now}
    with database.write() as connection:
        highest = sa.func.max(sa.cast(tables.steps.c.number, sa.Integer))  # a damaged number counts as none
        last = connection.execute(sa.select(highest).where(tables.steps.c.run == run_id)).scalar()
        number = int(last or 0) + 1
        connection.execute(tables.steps.insert().values(run=run_id, number=number, **values))
        connection.execute(_row(run_id).values(touched=now, seconds=seconds))
    return number


def finish(database: Database, run_id: str, status: str, best: str | None, *, seconds: float) -> None:
    """Close a run."""
    with database.write() as connection:
        values = {"status": status, "best": best, "owner": "", "touched": time.time(), "seconds": seconds}
        connection.execute(_row(run_id).values(**values))


def resume(database: Database, prefix: str) -> Run:
    """Open the journal of an earlier run again, for one process only."""
    record = load(database, prefix)
    table = tables.runs
    with database.write() as connection:
        held = connection.execute(sa.select(table.c.owner).where(table.c.id == record.id)).scalar() or ""
        if held != owner() and alive(held):
            raise StoreError(
                f"run {record.id} is being worked on by process {held.split('|')[2]}; wait for it, or stop it first"
            )
        same = sa.true() if "owner" in record.damaged else table.c.owner == held  # what is no text compares with nothing
        taken = table.update().where(table.c.id == record.id, same).values(status=RUNNING, owner=owner(), touched=time.time())
        if connection.execute(taken).rowcount != 1:
            raise StoreError(f"run {record.id} was resumed by another process at this moment")
    past: dict[Identity, list[int]] = {}
    for step in record.steps:
        past.setdefault(step.identity, []).append(step.number)
    return Run(record.id, record.job, database, past, record.seconds)


def listing(database: Database) -> list[RunRecord]:
    """All runs, the newest first, without their steps."""
    with database.read() as connection:
        rows = connection.execute(sa.select(tables.runs).order_by(tables.runs.c.started.desc(), tables.runs.c.id)).all()
    return [_record(row, ()) for row in rows]


def touched(database: Database, since: float) -> list[RunRecord]:
    """The runs that were written to since then, without their steps."""
    with database.read() as connection:
        rows = connection.execute(sa.select(tables.runs).where(tables.runs.c.touched >= since)).all()
    return [_record(row, ()) for row in rows]


def names(database: Database) -> set[str]:
    """The ids of all runs."""
    with database.read() as connection:
        return set(connection.execute(sa.select(tables.runs.c.id)).scalars())


def told(database: Database, runs: Sequence[str] | None = None) -> Iterator[tuple[str, Step]]:
    """The steps that `summary` counts (a speed, a price), of some runs or of all, in the order of each run."""
    table = tables.steps
    facts = table.c.facts
    wanted = sa.or_(facts.contains('"speedup"'), facts.contains('"tokens_out"'))
    query = sa.select(table).where(wanted).order_by(table.c.run, table.c.number)
    if runs is not None:
        query = query.where(table.c.run.in_(runs))
    with database.read() as connection:
        for row in connection.execute(query):
            with suppress(ValueError, TypeError):
                yield row.run, Step(row.number, row.kind, row.reason, {}, row.result, _parse(row.facts), float(row.at))


def lengths(database: Database, runs: Sequence[str] | None = None) -> dict[str, int]:
    """How many steps each run has."""
    table = tables.steps
    query = sa.select(table.c.run, sa.func.count()).group_by(table.c.run)
    if runs is not None:
        query = query.where(table.c.run.in_(runs))
    with database.read() as connection:
        return {str(run): int(count) for run, count in connection.execute(query)}


def load(database: Database, prefix: str) -> RunRecord:
    """The run whose id begins so, with its steps. StoreError when there is none, or more than one."""
    table = tables.runs
    with database.read() as connection:
        rows = connection.execute(sa.select(table).where(table.c.id.startswith(prefix, autoescape=True)).limit(9)).all()
        exact = [row for row in rows if row.id == prefix]
        if not rows or not prefix:
            raise StoreError(f"there is no run {prefix!r} in {database.title}; `kernelwright runs` lists them")
        if len(rows) > 1 and not exact:
            raise StoreError(f"{prefix!r} could be each of {', '.join(row.id for row in rows)}; write more of it")
        row = (exact or rows)[0]
        found = connection.execute(
            sa.select(tables.steps).where(tables.steps.c.run == row.id).order_by(tables.steps.c.number)
        ).all()
    return _record(row, tuple(found))


def owner() -> str:
    """This process, so that no other can be mistaken for it: host, boot, process id, and when it started."""
    return "|".join((socket.gethostname(), _boot(), str(os.getpid()), _birth(os.getpid())))


def alive(held: str) -> bool:
    """Whether the process of an owner mark still runs. One on another machine is given the benefit of the doubt."""
    match held.split("|"):
        case [host, boot, process, birth] if process.isdecimal():
            return host != socket.gethostname() or (boot == _boot() and _birth(int(process)) == birth)
    return False  # nobody, or a mark that is damaged


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _birth(process: int) -> str:
    """When a process started, in clock ticks since boot; "" when it is not there (process ids are used again)."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _record(row: Any, rows: tuple[Any, ...]) -> RunRecord:
    steps: list[Step] = []
    damaged: list[str] = []
    for found in rows:
        try:
            if misfits(found, tables.steps):
                raise ValueError("not what was written")
            inputs, facts = _parse(found.inputs), _parse(found.facts)
            steps.append(Step(found.number, found.kind, found.reason, inputs, found.result, facts, found.at))
        except ValueError:
            damaged.append(f"step {found.number}")
    wrong = set(misfits(row, tables.runs))
    job: dict[str, Any] = {}
    try:
        job = _parse(row.job)
    except ValueError:
        wrong.add("job")
    if row.owner and row.owner.count("|") != 3:
        wrong.add("owner")
    status = INTERRUPTED if row.status == RUNNING and not alive(row.owner) else row.status
    started, touched, seconds = (0.0 if name in wrong else getattr(row, name) for name in ("started", "touched", "seconds"))
    return RunRecord(row.id, job, status, row.best, started, touched, seconds, tuple(steps), (*sorted(wrong), *damaged))


def _row(run_id: str) -> sa.Update:
    return tables.runs.update().where(tables.runs.c.id == run_id)


def _dump(data: dict[str, Any]) -> str:
    return json.dumps(data, sort_keys=True, default=str)


def _parse(text: str) -> dict[str, Any]:
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("not an object")
    return data
