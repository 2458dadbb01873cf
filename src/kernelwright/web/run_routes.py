"""Routes of the runs: the list, one run, its texts, its kernel as a file, and the stream of changes."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import PlainTextResponse
from sse_starlette.sse import EventSourceResponse

from kernelwright.core.errors import StoreError
from kernelwright.store import RunRecord
from kernelwright.store.summary import report
from kernelwright.web import curves, live
from kernelwright.web.app_state import State, state_of
from kernelwright.web.command_line import command
from kernelwright.web.privacy import Veil, shown_job

router = APIRouter(prefix="/api")
RunName = Annotated[str, Path(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")]
Hash = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")]
MOST_TEXT = 1_000_000


@router.get("/runs")
def runs(
    request: Request,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    search: Annotated[str, Query(max_length=200)] = "",
    status: Annotated[str, Query(max_length=40)] = "",
    dsl: Annotated[str, Query(max_length=40)] = "",
    target: Annotated[str, Query(max_length=100)] = "",
) -> dict[str, Any]:
    """A page of the list: what runs comes first, then the newest."""
    found = state_of(request).listing.page(offset=offset, limit=limit, search=search, status=status, dsl=dsl, target=target)
    return {**found, "trouble": Veil().text(found["trouble"])}


@router.get("/live")
def stream(request: Request) -> EventSourceResponse:
    """What changes, as events."""
    here = state_of(request)
    return EventSourceResponse(live.changes(here.listing, here.ended), ping=15)


@router.get("/runs/{run}")
def one(request: Request, run: RunName, after: Annotated[int, Query(ge=0, le=10_000_000)] = 0) -> dict[str, Any]:
    """One run; with `after`, of its steps only those behind this number."""
    here = state_of(request)
    record = _load(here, run)
    told = report(record)
    parents = record.parents()
    veil = Veil()
    job = record.job
    told["job"] = shown_job(job)
    told["command"] = veil.text(command({**job, **shown_job(job)}))
    told["texts"] = {"task": job.get("task_source") if job.get("command") == "migrate" else job.get("source"),
                     "given": job.get("source") if job.get("command") == "migrate" else job.get("kernel")}  # fmt: skip
    told["steps"] = veil.data([curves.told(step, parents[step.number]) for step in record.steps if step.number > after])
    told["curve"] = curves.curve(record)
    told["population"] = curves.population(record)
    told["row"] = here.listing.row(record.id)
    told["held"] = here.store.holder(record.id) is not None
    told["said"] = veil.text(here.queue.said(record))
    told["damaged"] = list(record.damaged)
    return told


@router.get("/runs/{run}/texts/{name}")
def text(request: Request, run: RunName, name: Hash) -> dict[str, Any]:
    """A text that this run refers to: a prompt, an answer, a sketch, a kernel, a verdict."""
    here = state_of(request)
    record = _load(here, run)
    if name not in _named(record):
        raise HTTPException(404, "this run refers to no such text")
    data = here.store.get(name)
    if data is None:
        raise HTTPException(404, "this text is no longer kept")
    decoded = data.decode(errors="replace")
    cut = len(decoded) > MOST_TEXT
    return {"text": Veil().text(decoded[:MOST_TEXT]), "cut": cut}


@router.get("/runs/{run}/kernel.py", response_model=None, responses={200: {"content": {"text/x-python": {}}}})
def kernel(request: Request, run: RunName) -> PlainTextResponse:
    """The best kernel, as a file."""
    here = state_of(request)
    record = _load(here, run)
    data = here.store.get(record.best) if record.best else None
    if data is None:
        raise HTTPException(404, "this run has no kernel")
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", str(record.job.get("task", "kernel"))).strip("_")[:60] or "kernel"
    headers = {"Content-Disposition": f'attachment; filename="{name}_kernel.py"'}
    return PlainTextResponse(data.decode(errors="replace"), headers=headers, media_type="text/x-python")


def _load(here: State, run: str) -> RunRecord:
    """By its whole name: a page knows it."""
    try:
        record = here.store.load_run(run)
    except StoreError as error:
        raise HTTPException(404, f"there is no run {run}") from error
    if record.id != run:
        raise HTTPException(404, f"there is no run {run}")
    return record


def _named(record: RunRecord) -> set[str]:
    found = {record.best, *(step.result for step in record.steps)}
    for step in record.steps:
        found |= set(step.inputs.values())
    return {name for name in found if name}
