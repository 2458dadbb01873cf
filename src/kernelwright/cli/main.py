"""The door: argv in, exit code out. Commands are a table; only the one asked for is imported, so that `--help` stays fast.

Exit codes: 0 what was asked for holds; 1 it does not; 2 the request could not be understood; 130 interrupted.
With --json, stdout carries exactly one JSON object, also when something goes wrong.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import typer

from kernelwright import __version__
from kernelwright.core.errors import KernelwrightError

COMMANDS: dict[str, tuple[str, str, str]] = {
    "verify": ("verify", "verify_command", "Judge a kernel: is it right, is it honest, how fast is it."),
    "generate": ("generate", "generate_command", "Make a verified kernel for a task."),
    "migrate": ("migrate", "migrate_command", "Migrate a kernel to another language or device, with proof."),
    "tune": ("tune", "tune_command", "Search for a faster variant of a kernel, within a budget."),
    "explain": ("explain", "explain_command", "Print what a kernel of somebody computes: formulas and PyTorch code."),
    "sketch": ("sketch", "sketch_command", "Print the sketch of a task; check it; run it against the reference."),
    "bench": ("bench", "bench_command", "Make, judge and time kernels for whole suites, and report; compare two reports."),
    "optimize": ("programs.optimize", "optimize_command", "Make a whole model faster, or leave it as it is."),
    "run": ("run", "run_command", "Run a Triton or CUDA program on the CPU as compiled for a GPU; check it for errors."),
    "profile": ("profile.command", "profile_command", "Profile a kernel on a GPU that is not here: counted and predicted."),
    "task": ("task", "task_command", "Describe and check a task."),
    "audit": ("audit", "audit_command", "Run the gallery of cheats and honest kernels through the judge."),
    "runs": ("history.runs", "runs_command", "List the runs in the store; forget old ones."),
    "show": ("history.show", "show_command", "Show a run: its steps with their reasons, its best over time, its cost."),
    "diff": ("history.diff", "diff_command", "Compare two runs or two kernels: speed, sketch, options, code."),
    "learn": ("knowledge.learn", "learn_command", "Learn skills from finished runs."),
    "skills": ("knowledge.skills", "skills_command", "What the team reads: list, show, compare, switch off, install."),
    "resume": ("history.runs", "resume_command", "Go on with a run that was interrupted."),
    "serve": ("serve", "serve_command", "Show runs and benchmarks in a browser, and start jobs from there."),
    "export": ("export", "export_command", "Make a package of a kernel: torch operator, wheel, kernels layout, C."),
    "doctor": ("doctor", "doctor_command", "Show what this machine can run and what is missing."),
    "config": ("config_view", "config_command", "Show every setting and where its value came from."),
}
"""name → (module of this folder, function, one line of help). A module that is not there (yet) is no command."""

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of `kernelwright` and `kw`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(run(arguments))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; every failure leaves as one sentence."""
    try:
        outcome = build_app(arguments)(args=arguments, prog_name="kernelwright", standalone_mode=False)
        sys.stdout.flush()
        if outcome == INTERRUPTED:  # typer's own answer to Ctrl-C
            raise KeyboardInterrupt
        return outcome if isinstance(outcome, int) else 0
    except KernelwrightError as error:
        return _say(str(error), error.exit_code, arguments)
    except typer.TyperException as error:
        return _usage(error, arguments)
    except (KeyboardInterrupt, typer.Abort):
        return _say("interrupted", INTERRUPTED, arguments)
    except BrokenPipeError:
        # The reader of our output went away (`| head`): no complaint, and none at interpreter exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if not os.environ.get("KERNELWRIGHT_DEBUG"):
            hint = "run again with KERNELWRIGHT_DEBUG=1 to see where, and please report it"
            return _say(f"internal error: {type(error).__name__}: {error} ({hint})", 2, arguments)
        raise


def build_app(arguments: Sequence[str]) -> typer.Typer:
    """The typer application. The command named first is real; the others are only lines of the help page."""
    app = typer.Typer(
        help="PyTorch in; a verified, faster kernel out.",
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    wanted = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, (module, function, line) in COMMANDS.items():
        if importlib.util.find_spec(f"kernelwright.cli.{module}") is None:
            continue
        if name == wanted:
            found = getattr(importlib.import_module(f"kernelwright.cli.{module}"), function)
            app.command(name, short_help=line)(found)
        else:
            app.command(name, help=line)(_placeholder())
    return app


def _root(
    version: bool = typer.Option(
        False, "--version", is_eager=True, help="Print the version.", callback=lambda on: _version(on)
    ),
) -> None:
    """PyTorch in; a verified, faster kernel out."""


def _version(on: bool) -> None:
    if on:
        print(f"kernelwright {__version__}")
        raise typer.Exit


def _placeholder() -> Callable[[], None]:
    def command() -> None:
        raise AssertionError("a command that was not loaded was run")

    return command


def _terminate(signum: int, frame: FrameType | None) -> None:
    """SIGTERM leaves through the same doors as Ctrl-C, so that no worker stays behind."""
    raise SystemExit(128 + signum)


def _usage(error: Any, arguments: list[str]) -> int:
    code = int(getattr(error, "exit_code", 2))
    if "--json" in arguments:
        return _say(error.format_message(), code, arguments)
    error.show()
    return code


def _say(sentence: str, code: int, arguments: list[str]) -> int:
    print(f"kernelwright: {sentence}", file=sys.stderr)
    if "--json" in arguments:
        print(json.dumps({"error": sentence}))
    return code
