"""`kernelwright resume RUN`: go on where a run stopped. It is repeated from its start; what it had paid for or found out is recalled."""

from __future__ import annotations

from typing import Annotated

import typer


def resume_command(
    run: Annotated[str, typer.Argument(help="A run's name, or the beginning of it.")],
    store: Annotated[str | None, typer.Option(help="Folder or database URL of the store.")] = None,
    show_sketch: Annotated[bool, typer.Option("--show-sketch", help="Print the sketch too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Go on with a run that was interrupted."""
    from contextlib import ExitStack

    from kernelwright.cli.generate import report
    from kernelwright.cli.progress import watching
    from kernelwright.core import config
    from kernelwright.jobs.order import resume
    from kernelwright.store import Store

    place = config.load({"store": store}).settings.store
    with ExitStack() as stack:
        opened = stack.enter_context(Store.open(place or None))
        if opened.load_run(run).job.get("command") == "migrate":
            from kernelwright.cli import migrate as door
            from kernelwright.jobs.migrate import order as migration

            found = opened.resume(run)
            with watching(run) as observer:
                moved = migration.resume(found.job, opened, found, observer, stack)
            return door.report(moved, as_json=as_json)
    with watching(run) as observer:
        done = resume(run, place, observer)
    return report(done, show_sketch=show_sketch, as_json=as_json)
