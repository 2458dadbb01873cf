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
    from kernelwright.cli import generate, migrate
    from kernelwright.cli.progress import watching
    from kernelwright.core import config
    from kernelwright.jobs.migrate.steps import Migrated
    from kernelwright.jobs.start import resume

    place = config.load({"store": store}).settings.store
    with watching(run) as observer:
        done = resume(run, place, observer)
    if isinstance(done.result, Migrated):
        return migrate.report(done, as_json=as_json)
    return generate.report(done, show_sketch=show_sketch, as_json=as_json)
