"""Routes that begin something: jobs, what becomes of a run, and questions; and what there is to choose from."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, HTTPException, Path, Request

from kernelwright import __version__
from kernelwright.web.app_state import state_of
from kernelwright.web.command_line import command
from kernelwright.web.forms import DesignForm, JobForm, JudgeForm, SketchForm, TaskForm
from kernelwright.web.privacy import Veil, shown_model
from kernelwright.web.run_routes import RunName

router = APIRouter(prefix="/api")
Token = Annotated[str, Path(pattern=r"^[0-9a-f]{24}$")]


@router.get("/about")
def about(request: Request) -> dict[str, Any]:
    """What can be chosen: languages, targets, efforts, models, tasks of suites."""
    from kernelwright import suites
    from kernelwright.compiler.language import languages
    from kernelwright.core.effort import PRESETS
    from kernelwright.judge import offdevice
    from kernelwright.target import known_targets

    here = state_of(request)
    known = [{"name": name, "title": found.title, "timed": offdevice.timed(name)} for name, found in languages().items()]
    return {
        "version": __version__,
        "languages": known,
        "targets": ["auto", *known_targets()],
        "efforts": list(PRESETS),
        "models": list(dict.fromkeys(["builtin", shown_model(here.model)])),
        "suites": {name: [task.name for task in suites.load(name)] for name in suites.NAMES},
    }


@router.post("/jobs", status_code=201)
def submit(request: Request, form: JobForm) -> dict[str, str]:
    """Begin a job; the run that it became."""
    here = state_of(request)
    return {"run": here.queue.submit(form.job(configured=here.model, store=here.place))}


@router.post("/command")
def shown(request: Request, form: JobForm) -> dict[str, str]:
    """The command that does the same."""
    here = state_of(request)
    job = form.job(configured=here.model, store=here.place).as_json()
    job |= {name: shown_model(str(job[name])) for name in ("model", "designer_model", "coder_model") if job.get(name)}
    return {"command": Veil().text(command(job))}


@router.post("/runs/{run}/cancel")
def cancel(request: Request, run: RunName) -> dict[str, str]:
    """End a run's process; the run can be resumed."""
    return {"state": state_of(request).queue.cancel(run)}


@router.post("/runs/{run}/resume")
def resume(request: Request, run: RunName) -> dict[str, str]:
    """Go on with a run that ended."""
    here = state_of(request)
    if here.listing.row(run) is None:
        raise HTTPException(404, f"there is no run {run}")
    here.queue.resume(run)
    return {"state": "queued"}


@router.post("/questions/task", status_code=202)
def describe(request: Request, form: TaskForm) -> dict[str, str]:
    """What the judge knows of a task: its inputs and outputs, its trials, what it cannot tell."""
    return {"question": state_of(request).questions.describe(form)}


@router.post("/questions/design", status_code=202)
def design(request: Request, form: DesignForm) -> dict[str, str]:
    """The built-in designer's first sketch of a task."""
    return {"question": state_of(request).questions.design(form)}


@router.post("/questions/kernel", status_code=202)
def judge(request: Request, form: JudgeForm) -> dict[str, str]:
    """The judge's verdict on a kernel."""
    return {"question": state_of(request).questions.judge(form)}


@router.post("/questions/sketch", status_code=202)
def sketch(request: Request, form: SketchForm) -> dict[str, str]:
    """A sketch's faults; with a task, whether it computes the same."""
    return {"question": state_of(request).questions.sketch(form)}


@router.post("/questions/machine", status_code=202)
def machine(request: Request) -> dict[str, str]:
    """What this machine can run, and what is missing."""
    return {"question": state_of(request).questions.doctor()}


@router.get("/questions/{name}")
def answer(request: Request, name: Token) -> dict[str, Any]:
    """What became of a question."""
    found = state_of(request).questions.find(name)
    if found is None:
        raise HTTPException(404, "this question is not known (any more); ask again")
    return found.as_json()


@router.get("/reports")
def reports(request: Request) -> list[dict[str, Any]]:
    """Reports of benchmarks, the newest first."""
    return state_of(request).reports.listing()


ReportName = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]


@router.get("/reports/{report}")
def report(request: Request, report: ReportName) -> dict[str, Any]:
    """One report, as report.json has it."""
    found: dict[str, Any] = Veil().data(state_of(request).reports.report(report).model_dump(mode="json"))
    return found


@router.get("/reports/{report}/texts")
def texts(request: Request, report: ReportName, key: str) -> dict[str, str]:
    """Kernel, sketch, task and verdict of one of its tasks."""
    return state_of(request).reports.texts(report, key)


@router.get("/reports/{report}/against/{after}")
def against(request: Request, report: ReportName, after: ReportName) -> dict[str, Any]:
    """What changed from one report to another."""
    return state_of(request).reports.compared(report, after)


@router.post("/reports", status_code=201)
def bring(request: Request, text: Annotated[str, Body(embed=True, max_length=8_000_000)]) -> dict[str, str]:
    """Look at a report.json of another machine."""
    return {"report": state_of(request).reports.bring(text)}
