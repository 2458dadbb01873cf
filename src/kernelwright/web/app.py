"""The application: a store and folders in, an ASGI application out. It follows the store from when it is served until it ends."""

from __future__ import annotations

import hmac
import mimetypes
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.middleware.gzip import GZipMiddleware

from kernelwright import __version__
from kernelwright.core.errors import KernelwrightError
from kernelwright.store import Store
from kernelwright.web import run_routes, submissions
from kernelwright.web.app_state import State, state_of
from kernelwright.web.guard import COOKIE, LOGIN, Guard
from kernelwright.web.listing import Listing
from kernelwright.web.privacy import Veil
from kernelwright.web.questions import Questions
from kernelwright.web.queue import Queue
from kernelwright.web.reports import Reports

SITE = resources.files("kernelwright.web").joinpath("site")
TITLE = "Kernelwright"
WEEK = 7 * 24 * 3600


class Problem(BaseModel):
    """Every answer that is no success."""

    error: str
    line: int | None = None


PROBLEMS: dict[int | str, dict[str, Any]] = {code: {"model": Problem} for code in (400, 401, 403, 404, 413, 415, 422)}


def create_app(
    store: Store,
    *,
    place: str = "",
    folder: Path,
    reports: Sequence[Path] = (),
    hosts: Iterable[str] = ("localhost", "127.0.0.1", "::1"),
    token: str = "",
    model: str = "builtin",
    abreast: int = 1,
) -> FastAPI:
    """See `serve` of server.py for what each is."""
    listing = Listing(store)
    here = State(
        store,
        listing,
        Queue(store, listing, place, folder, abreast=abreast),
        Questions(),
        Reports(reports),
        place,
        model,
        token,
    )

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        listing.start()
        here.queue.start()
        yield
        here.ended.set()
        here.queue.stop()
        listing.stop()
        here.questions.stop()

    app = FastAPI(
        title=TITLE, version=__version__, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json",
        lifespan=life, responses=PROBLEMS,
    )  # fmt: skip
    app.state.here = here
    app.include_router(run_routes.router)
    app.include_router(submissions.router)
    app.add_api_route(LOGIN, login, methods=["POST"], status_code=204, response_class=Response)
    app.add_api_route("/{path:path}", page, methods=["GET", "HEAD"], include_in_schema=False)
    app.add_exception_handler(KernelwrightError, _ours)
    app.add_exception_handler(RequestValidationError, _misfit)
    app.add_exception_handler(AnyHTTPException, _http)
    app.add_exception_handler(Exception, _unforeseen)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=6)
    app.add_middleware(Guard, hosts=hosts, token=token)
    return app


def login(request: Request, token: Annotated[str, Body(embed=True, max_length=200)]) -> Response:
    """Exchange the token of the address for a cookie that no script can read."""
    known = state_of(request).token
    if known and not hmac.compare_digest(token.encode(errors="replace"), known.encode()):
        raise HTTPException(401, "this is not the token that kernelwright serve printed")
    answer = Response(status_code=204)
    if known:
        answer.set_cookie(COOKIE, known, max_age=WEEK, httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return answer


def page(path: str) -> Response:
    """The built page: its files by their names, and index.html for every other address that is none of the API's."""
    if path.startswith("api/"):
        raise HTTPException(404, "there is no such address")
    name, _, file = path.rpartition("/")
    place = SITE.joinpath("assets", file) if name == "assets" and file and not file.startswith(".") else None
    if name == "assets":
        if place is None or not place.is_file():
            raise HTTPException(404, "there is no such file")
        kind = mimetypes.guess_type(file)[0] or "application/octet-stream"
        return Response(place.read_bytes(), media_type=kind, headers={"Cache-Control": f"public, max-age={WEEK}, immutable"})
    index = SITE.joinpath("index.html")
    if not index.is_file():
        raise HTTPException(404, "the page was not built; run: make web")
    return Response(index.read_bytes(), media_type="text/html", headers={"Cache-Control": "no-cache"})


async def _ours(request: Request, error: Exception) -> JSONResponse:
    told = {"error": Veil().text(str(error)), "line": getattr(error, "line", None)}
    return JSONResponse(told, status_code=400)


async def _misfit(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    return JSONResponse({"error": f"{where}: {first['msg']}" if where else str(first["msg"]), "line": None}, status_code=422)


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, AnyHTTPException)
    return JSONResponse({"error": str(error.detail), "line": None}, status_code=error.status_code, headers=error.headers)


async def _unforeseen(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": f"internal error: {type(error).__name__}", "line": None}, status_code=500)
